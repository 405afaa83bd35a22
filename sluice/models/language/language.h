// Language models: plain LibTorch modules that compute what Hugging Face's transformers compute, with the
// names of their parameters.
//
//   auto model = sluice::models::language_model(sluice::models::language_preset("gpt2"));
//   torch::Tensor logits = model->forward(ids, mask);
//
// Weights from and to folders of transformers: sluice/session/pretrained/pretrained.h.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/models/language/options.h"

SLUICE_API_BEGIN
namespace sluice::models {

class LanguageModel : public torch::nn::Module {
 public:
  explicit LanguageModel(LanguageOptions options) : options_(std::move(options)) {}
  const LanguageOptions& options() const { return options_; }

  // ids: int64 [batch, length]. mask: bool [batch, length], false where a sequence is filled up; such places
  // have no influence on the others. Without one nothing is masked. gpt2 and llama see what is before a place
  // and itself, roberta the whole sequence. Positions are counted from the sequence's first place, filled up
  // or not, as transformers do; roberta's skip the padding token. Gives logits f32 [batch, length,
  // vocabulary]. Throws sluice::Error for other shapes and for sequences that are too long.
  virtual torch::Tensor forward(torch::Tensor ids, torch::Tensor mask = {}) = 0;

 private:
  LanguageOptions options_;
};
using LanguageModelPtr = std::shared_ptr<LanguageModel>;

// On the CPU, in f32, with fresh weights (drawn from LibTorch's CPU generator). Throws sluice::Error for
// options that make no model.
LanguageModelPtr language_model(const LanguageOptions& options);

// Tensors of a file by the model's names: adds a prefix that the file leaves out (GPT-2's files on the hub),
// and leaves out what is no parameter (tables of masks and positions, a pooler) or a copy of another tensor
// (a tied head).
std::vector<std::pair<std::string, torch::Tensor>> with_own_names(
    const LanguageOptions& options, std::vector<std::pair<std::string, torch::Tensor>> tensors);

}  // namespace sluice::models
SLUICE_API_END
