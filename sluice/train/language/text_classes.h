// The classification of texts: shards with texts and their classes, and the steps of a model that predicts
// the class.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/data/dataset.h"
#include "sluice/models/language/language.h"
#include "sluice/text/tokenizer.h"
#include "sluice/train/options.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Encodes texts for a model.
class TextEncoder {
 public:
  // `longest`: the most tokens of a row. `options`: the model's; a roberta's begin and end tokens are put
  // around a text if the tokenizer has no template.
  TextEncoder(const text::Tokenizer& tokenizer, const models::LanguageOptions& options, int64_t longest,
              bool cut);
  // Cutting off a text's end keeps the template's tokens around it. Threads: any number.
  std::vector<int64_t> operator()(std::string_view text) const;
  // Returns a text that is the same only for encoders that give the same ids.
  std::string name() const;

 private:
  text::Tokenizer tokenizer_;
  std::vector<int64_t> begin_, end_;
  int64_t longest_;
  bool cut_;
};

// Rows of ids and classes: the columns ids [N, L], labels [N] and lengths [N], in batches of the shapes.
std::unique_ptr<data::WebDataset> text_classes(const TrainOptions& options, const std::string& shards,
                                               bool training, const TextEncoder& encoder,
                                               const std::vector<data::LengthShape>& shapes, int64_t padding);
// Cross-entropy, accuracy and the options' metrics. `options` must outlive the steps.
Steps text_classification(const TrainOptions& options, models::LanguageModelPtr model);

}  // namespace sluice::train
