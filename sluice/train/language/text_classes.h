// The classification of texts: shards with texts and their classes, and the steps of a model that tells them
// apart.
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

// Texts as a model is given them.
class TextEncoder {
 public:
  // `longest`: of a row, in tokens. `options`: of the model, whose begin and end tokens are put around a text
  // where the tokenizer has no template, if it is a roberta.
  TextEncoder(const text::Tokenizer& tokenizer, const models::LanguageOptions& options, int64_t longest,
              bool cut);
  // What the template puts around a text stays when its end is cut off. Threads: any number of them.
  std::vector<int64_t> operator()(std::string_view text) const;

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
