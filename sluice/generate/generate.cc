#include "sluice/generate/generate.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/models/eval_mode.h"

namespace sluice {
namespace generate_detail {

// The room for new tokens is rounded up too: runs of similar lengths then share a program.
constexpr int64_t kRoom = 64;

int64_t rounded(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Tokens on their way to the host.
class Coming {
 public:
  explicit Coming(const torch::Tensor& tokens) {
    if (tokens.device().is_cpu())
      host_ = tokens.clone();
    else
      fetch_ = fetch(tokens);
  }
  torch::Tensor take() const { return fetch_ ? fetch_.get()[0] : host_; }

 private:
  torch::Tensor host_;
  Fetch fetch_;
};

class Generation {
 public:
  Generation(models::LanguageModel& model, const std::vector<std::vector<uint32_t>>& prompts,
             const GenerateOptions& options)
      : model_(model),
        prompts_(prompts),
        options_(options),
        batch_(static_cast<int64_t>(prompts.size())),
        device_(model.device()),
        generator_(at::detail::createCPUGenerator(options.seed)),
        said_(prompts.size()),
        ended_(prompts.size(), false) {
    end_ =
        options.end.value_or(std::vector<uint32_t>(model.options().end.begin(), model.options().end.end()));
  }

  std::vector<std::vector<uint32_t>> run() {
    torch::Tensor tokens = choose(read_prompts());
    Coming coming(tokens);
    cut("prompt");
    for (int64_t step = 1; step < options_.tokens; ++step) {
      tokens = choose(model_.states({tokens.unsqueeze(1)}, *cache_).select(1, 0));
      Coming next(tokens);
      cut("token");
      if (!take(coming)) return said_;
      coming = next;
    }
    take(coming);
    return said_;
  }

 private:
  // Reads the prompts and returns the last token's states. All prompts end where the new tokens begin, and
  // are filled up in front.
  torch::Tensor read_prompts() {
    size_t longest = 0;
    for (const auto& prompt : prompts_) longest = std::max(longest, prompt.size());
    const int64_t length = generation_length(static_cast<int64_t>(longest));
    torch::Tensor ids = torch::zeros({batch_, length}, torch::kLong),
                  mask = torch::zeros({batch_, length}, torch::kBool);
    if (options_.sampling.repetition_penalty != 1)
      seen_ = torch::zeros({batch_, model_.options().vocabulary}, torch::kBool);
    for (int64_t row = 0; row < batch_; ++row) {
      const auto& prompt = prompts_[static_cast<size_t>(row)];
      const std::vector<int64_t> wide(prompt.begin(), prompt.end());
      const torch::Tensor own = torch::tensor(wide, torch::kLong);
      const int64_t begin = length - own.size(0);
      ids[row].slice(0, begin).copy_(own);
      mask[row].slice(0, begin).fill_(true);
      if (seen_.defined()) seen_[row].index_fill_(0, own, true);
    }
    if (seen_.defined()) seen_ = seen_.to(device_);
    cache_ = model_.make_cache(batch_, rounded(length + options_.tokens, kRoom));
    return model_.states({ids.to(device_), mask.to(device_)}, *cache_).select(1, length - 1);
  }

  // Returns the next tokens, int64 [batch], for states [batch, width]. An ended sequence repeats its end
  // token.
  torch::Tensor choose(const torch::Tensor& states) {
    const torch::Tensor logits = limited_logits(model_.logits(states), options_.sampling, seen_);
    torch::Tensor tokens = options_.sampling.greedy ? logits.argmax(-1) : draw_tokens(logits, generator_);
    if (done_.defined()) tokens = torch::where(done_, torch::full_like(tokens, int64_t{end_[0]}), tokens);
    for (const uint32_t end : end_) {
      const torch::Tensor now = tokens.eq(static_cast<int64_t>(end));
      done_ = done_.defined() ? done_.logical_or(now) : now;
    }
    if (seen_.defined()) seen_ = seen_.scatter(1, tokens.unsqueeze(1), true);
    return tokens;
  }

  // Takes the tokens and returns whether any sequence continues.
  bool take(const Coming& coming) {
    const torch::Tensor tokens = coming.take();
    bool goes_on = false;
    for (size_t row = 0; row < prompts_.size(); ++row) {
      if (ended_[row]) continue;
      const auto token = static_cast<uint32_t>(tokens[static_cast<int64_t>(row)].item<int64_t>());
      said_[row].push_back(token);
      ended_[row] = std::find(end_.begin(), end_.end(), token) != end_.end();
      goes_on |= !ended_[row];
      if (options_.on_token) options_.on_token(row, token);
    }
    return goes_on;
  }

  void cut(const char* what) const {
    if (!device_.is_cpu()) sync(what);
  }

  models::LanguageModel& model_;
  const std::vector<std::vector<uint32_t>>& prompts_;
  const GenerateOptions& options_;
  const int64_t batch_;
  const torch::Device device_;
  const at::Generator generator_;
  std::vector<uint32_t> end_;
  std::optional<models::LanguageCache> cache_;
  torch::Tensor seen_, done_;
  std::vector<std::vector<uint32_t>> said_;
  std::vector<bool> ended_;
};

}  // namespace generate_detail

int64_t generation_length(int64_t longest) {
  if (longest > 256) return generate_detail::rounded(longest, 256);
  int64_t length = 16;
  while (length < longest) length *= 2;
  return length;
}

std::vector<uint32_t> checked_prompt(const models::LanguageOptions& model, std::vector<uint32_t> prompt,
                                     int64_t tokens) {
  const auto refuse = [&model](const auto&... what) {
    throw_error(Code::kInvalidArgument, base::str("model ", model.type, ": ", what...));
  };
  if (!models::is_decoder(model))
    throw_error(Code::kUnimplemented,
                base::str("model ", model.type,
                          " sees the whole text, so it cannot say what comes next; gpt2 and llama can"));
  if (prompt.empty()) {
    if (model.begin < 0) refuse("the prompt is empty, and the model has no begin token (bos_token_id)");
    prompt.push_back(static_cast<uint32_t>(model.begin));
  }
  for (size_t place = 0; place < prompt.size(); ++place)
    if (prompt[place] >= model.vocabulary)
      refuse("the prompt's token ", prompt[place], " at place ", place,
             " is not below the vocabulary's size, ", model.vocabulary,
             ": the tokenizer belongs to another model");
  const auto length = static_cast<int64_t>(prompt.size());
  if (length + tokens > model.positions)
    refuse("the prompt has ", length, " tokens, and ", tokens,
           " more are asked for; the model's positions serve ", model.positions,
           length < model.positions ? base::str(": ask for at most ", model.positions - length)
                                    : std::string(": cut the prompt"));
  return prompt;
}

std::vector<std::vector<uint32_t>> generate(models::LanguageModel& model,
                                            const std::vector<std::vector<uint32_t>>& prompts,
                                            const GenerateOptions& options) {
  check(options.sampling);
  if (options.tokens < 0)
    throw_error(Code::kInvalidArgument,
                base::str("expected a number of tokens of at least 0, found ", options.tokens));
  if (model.device().is_xla() && mesh().size("sequence") > 1)
    throw_error(Code::kInvalidArgument, base::str("the mesh ", mesh().str(),
                                                  " divides sequences, and generating reads one token at a ",
                                                  "time: give the devices of sequence to tensor or fsdp"));
  std::vector<std::vector<uint32_t>> checked;
  for (const auto& prompt : prompts)
    checked.push_back(checked_prompt(model.options(), prompt, options.tokens));
  if (prompts.empty() || options.tokens == 0) return std::vector<std::vector<uint32_t>>(prompts.size());
  const torch::NoGradGuard no_grad;
  const SharedRandom same_on_all_replicas;
  const models::EvalMode evaluation(model);
  return generate_detail::Generation(model, checked, options).run();
}

}  // namespace sluice
