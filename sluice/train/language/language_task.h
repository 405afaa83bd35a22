// The training of a language model, as the options describe it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/models/language/language.h"
#include "sluice/text/token_batches.h"
#include "sluice/text/tokenizer.h"
#include "sluice/train/options.h"
#include "sluice/train/steps.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

// Checks what can be checked without data or device. Throws sluice::Error.
void check_language(const TrainOptions& options);

// A model with its data and steps. Throws sluice::Error.
class LanguageTask {
 public:
  // Opens the data and makes the model, on the CPU. `rows`: of one replica's batch.
  LanguageTask(const TrainOptions& options, int64_t rows);

  const models::LanguageModelPtr& model() const { return model_; }
  Sets sets() const;
  Steps steps() const;
  // The facts of the first epoch of each set of tokens: "train", "test", and the names of the other tests.
  std::vector<std::pair<std::string, text::TokenBatchFacts>> facts(int64_t replicas) const;

 private:
  void open_tokens(const std::string& name, const std::string& files, int64_t rows);
  void open_classes(const std::string& name, const std::string& shards, int64_t rows);
  std::vector<data::LengthShape> shapes(int64_t rows) const;
  text::TokenBatchOptions batch_options(bool training, int64_t rows) const;
  void find_tokenizer();
  void learn_vocabulary(const text::TokenSet& set);
  models::LanguageOptions model_options() const;
  int64_t fresh_classes() const;
  void make_model();
  void load_folder(bool over_mesh);
  void make_new(bool over_mesh);
  void add_masking(text::TokenBatchOptions& batches) const;

  const TrainOptions& options_;
  std::string tokenizer_path_;  // "": the run has no tokenizer
  std::optional<text::Tokenizer> tokenizer_;
  int64_t vocabulary_ = 0;  // of the data; 0: not known
  models::LanguageModelPtr model_;
  // "train", then "test" if there is one, then the other tests, which require "test".
  std::vector<std::pair<std::string, std::shared_ptr<const data::Dataset>>> sets_;
  // The token sets among sets_.
  std::vector<std::pair<std::string, std::shared_ptr<const text::TokenBatches>>> token_sets_;
};

}  // namespace sluice::train
