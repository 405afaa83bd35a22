#include "sluice/generate/score.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/device.h"
#include "sluice/generate/generate.h"

namespace sluice {
namespace score_detail {

// The logits in memory at a time: 64 MiB of f32.
constexpr int64_t kLogits = int64_t{1} << 24;

// Returns the length of the batch in which a passage of `read` tokens is read.
int64_t length_of_batch(const models::LanguageOptions& options, int64_t read) {
  const int64_t length = std::min(generation_length(read), options.positions);
  // A longer sequence has other frequencies, even if its end is only filled up.
  const int64_t limit = options.rope.original_positions;
  return options.type == "llama" && options.rope.type == "longrope" && read <= limit ? std::min(length, limit)
                                                                                     : length;
}

}  // namespace score_detail

torch::Tensor target_log_likelihoods(models::LanguageModel& model, const models::LanguageInput& input,
                                     const torch::Tensor& targets) {
  const torch::Tensor states = model.states(input).flatten(0, 1), wanted = targets.flatten().unsqueeze(1);
  const int64_t rows = states.size(0),
                part = std::max<int64_t>(1, score_detail::kLogits / model.options().vocabulary);
  std::vector<torch::Tensor> parts;
  for (int64_t begin = 0; begin < rows; begin += part) {
    const int64_t end = std::min(rows, begin + part);
    const torch::Tensor logits = model.logits(states.slice(0, begin, end));
    parts.push_back(logits.gather(1, wanted.slice(0, begin, end)).squeeze(1) - logits.logsumexp(1));
  }
  return torch::cat(parts).view(targets.sizes());
}

void check_scores(const models::LanguageOptions& options) {
  if (!models::is_decoder(options))
    throw_error(Code::kUnimplemented, base::str("model ", options.type,
                                                " sees the whole text, so it does not say how likely each "
                                                "token is given those before it; gpt2 and llama do"));
}

std::vector<Passage> passages_of(const std::vector<uint32_t>& document, int64_t length, int64_t stride) {
  if (length < 1 || stride < 1 || stride > length)
    throw_error(Code::kInvalidArgument,
                base::str("expected a stride from 1 to the length, ", length, ", found ", stride));
  std::vector<Passage> passages;
  size_t scored = 1;
  for (size_t begin = 0; scored < document.size(); begin += static_cast<size_t>(stride)) {
    const size_t end = std::min(document.size(), begin + static_cast<size_t>(length) + 1);
    const auto at = [&document](size_t place) {
      return document.begin() + static_cast<std::ptrdiff_t>(place);
    };
    passages.push_back({{at(begin), at(end)}, scored - begin});
    scored = end;
  }
  return passages;
}

PassageScorer::PassageScorer(models::LanguageModel& model, int64_t batch) : model_(model), batch_(batch) {
  check_scores(model.options());
  if (batch < 1)
    throw_error(Code::kInvalidArgument, base::str("expected a batch of at least 1 passage, found ", batch));
  model_.eval();
}

size_t PassageScorer::add(Passage passage) {
  const models::LanguageOptions& options = model_.options();
  const auto refuse = [&options](const auto&... what) {
    throw_error(Code::kInvalidArgument, base::str("model ", options.type, ": ", what...));
  };
  if (passage.first < 1 || passage.first >= passage.ids.size())
    refuse("the passage has ", passage.ids.size(), " tokens, and the tokens from ", passage.first,
           " on are to be scored: expected at least one token to score and one before it");
  const auto read = static_cast<int64_t>(passage.ids.size()) - 1;
  if (read > options.positions)
    refuse("the passage has ", read + 1, " tokens, the model's positions serve ", options.positions,
           " tokens and the one after them");
  for (size_t place = 0; place < passage.ids.size(); ++place)
    if (passage.ids[place] >= options.vocabulary)
      refuse("the token ", passage.ids[place], " at place ", place, " is not below the vocabulary's size, ",
             options.vocabulary, ": the tokenizer belongs to another model");
  const int64_t length = score_detail::length_of_batch(options, read);
  auto& rows = waiting_[length];
  rows.push_back({sums_.size(), std::move(passage)});
  sums_.push_back(0);
  const size_t number = sums_.size() - 1;
  if (static_cast<int64_t>(rows.size()) == batch_) run(length, std::exchange(rows, {}));
  return number;
}

std::vector<double> PassageScorer::finish() {
  for (auto& [length, rows] : waiting_)
    if (!rows.empty()) run(length, std::exchange(rows, {}));
  return std::exchange(sums_, {});
}

void PassageScorer::run(int64_t length, const std::vector<Waiting>& rows) {
  const torch::NoGradGuard no_grad;
  torch::Tensor ids = torch::zeros({batch_, length}, torch::kLong), targets = torch::zeros_like(ids),
                mask = torch::zeros({batch_, length}, torch::kBool);
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::vector<int64_t> wide(rows[row].passage.ids.begin(), rows[row].passage.ids.end());
    const torch::Tensor own = torch::tensor(wide, torch::kLong);
    const auto at = static_cast<int64_t>(row);
    const int64_t read = own.size(0) - 1;
    ids[at].slice(0, 0, read).copy_(own.slice(0, 0, read));
    targets[at].slice(0, 0, read).copy_(own.slice(0, 1));
    mask[at].slice(0, 0, read).fill_(true);
  }
  const torch::Device device = model_.device();
  torch::Tensor likelihoods =
      target_log_likelihoods(model_, {ids.to(device), mask.to(device)}, targets.to(device));
  likelihoods = (device.is_cpu() ? likelihoods : local(likelihoods)).to(torch::kDouble);
  for (size_t row = 0; row < rows.size(); ++row) {
    const Passage& passage = rows[row].passage;
    sums_[rows[row].number] =
        likelihoods[static_cast<int64_t>(row)]
            .slice(0, static_cast<int64_t>(passage.first) - 1, static_cast<int64_t>(passage.ids.size()) - 1)
            .sum()
            .item<double>();
  }
}

}  // namespace sluice
