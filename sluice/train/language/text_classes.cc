#include "sluice/train/language/text_classes.h"

#include <algorithm>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/train/classification.h"
#include "sluice/train/input/input.h"

namespace sluice::train {

TextEncoder::TextEncoder(const text::Tokenizer& tokenizer, const models::LanguageOptions& options,
                         int64_t longest, bool cut)
    : tokenizer_(tokenizer), longest_(longest), cut_(cut) {
  const auto frame = tokenizer.encode("", {.limits = false}).ids;
  if (frame.empty() && options.type == "roberta") {
    if (options.begin >= 0) begin_ = {options.begin};
    if (!options.end.empty()) end_ = {options.end.front()};
    return;
  }
  // Finds where the template has the text.
  constexpr char kWord[] = "a";
  const auto alone = tokenizer.encode(kWord, {.special_tokens = false, .limits = false}).ids;
  const auto framed = tokenizer.encode(kWord, {.limits = false}).ids;
  const auto at = std::search(framed.begin(), framed.end(), alone.begin(), alone.end());
  begin_.assign(framed.begin(), at);
  if (at != framed.end()) end_.assign(at + static_cast<std::ptrdiff_t>(alone.size()), framed.end());
}

std::vector<int64_t> TextEncoder::operator()(std::string_view text) const {
  std::vector<std::uint32_t> inside;
  tokenizer_.append_ids(text, inside);
  const auto room = longest_ - static_cast<int64_t>(begin_.size() + end_.size());
  if (static_cast<int64_t>(inside.size()) > room) {
    if (!cut_)
      throw_error(Code::kInvalidArgument,
                  base::str("a text of ", inside.size(), " tokens: expected at most ", room,
                            " for a row; choose a longer --length or --shapes, or --long-documents cut"));
    inside.resize(static_cast<size_t>(std::max<int64_t>(room, 0)));
  }
  std::vector<int64_t> ids = begin_;
  ids.insert(ids.end(), inside.begin(), inside.end());
  ids.insert(ids.end(), end_.begin(), end_.end());
  return ids;
}

std::string TextEncoder::name() const {
  std::string name = base::str(tokenizer_.fingerprint(), " ", longest_, cut_ ? " cut" : "");
  for (const std::vector<int64_t>* around : {&begin_, &end_}) {
    name += " |";
    for (const int64_t id : *around) name += base::str(" ", id);
  }
  return name;
}

std::unique_ptr<data::WebDataset> text_classes(const TrainOptions& options, const std::string& shards,
                                               bool training, const TextEncoder& encoder,
                                               const std::vector<data::LengthShape>& shapes,
                                               int64_t padding) {
  refuse_token_files(options.task, shards);
  auto set = std::make_unique<data::WebDataset>(shards);
  for (const std::string& extension : base::split(options.texts, ';'))
    set->decoder(extension, [encoder](std::string_view text) -> data::Value {
      const std::vector<int64_t> ids = encoder(text);
      data::Array array(data::ElementType::kInt64, {static_cast<int64_t>(ids.size())});
      std::copy(ids.begin(), ids.end(), array.data<int64_t>());
      return array;
    });
  set->to_tuple(options.texts, options.labels);
  set_reading(options, training, *set);
  data::LengthOptions lengths;
  lengths.length = [encoder](std::string_view text) { return static_cast<int64_t>(encoder(text).size()); };
  lengths.padding = {static_cast<double>(padding), 0};
  lengths.name = encoder.name();
  set->bucket_by_length(options.texts, shapes, lengths);
  if (training) {
    set->shuffle(options.shuffle).drop_last();
    if (options.streams != TrainOptions().streams) set->interleave(options.streams);
  } else {
    set->pad();
  }
  return set;
}

Steps text_classification(const TrainOptions& options, models::LanguageModelPtr model) {
  Steps steps = classification(options, [model](const Batch& batch) {
    const torch::Tensor &ids = batch.columns[0], &lengths = batch.columns.back();
    const torch::Tensor places = torch::arange(ids.size(1), lengths.options());
    return model->classify({.ids = ids, .mask = places.unsqueeze(0).lt(lengths.unsqueeze(1))});
  });
  steps.files = {{"config.json", models::language_config(model->options())}};
  return steps;
}

}  // namespace sluice::train
