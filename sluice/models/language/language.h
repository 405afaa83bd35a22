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

// What a model reads. All tensors are [batch, length], on one device.
struct LanguageInput {
  torch::Tensor ids;  // int64
  // bool, false where a sequence is filled up; such places have no influence on the others. Undefined:
  // nothing is filled up.
  torch::Tensor mask = {};
  // For several documents in one sequence, which do not see each other: both of int64 or int32, or none.
  torch::Tensor documents = {};  // the number of a place's document in its sequence, from 1; 0: filled up
  torch::Tensor positions = {};  // places in their document, from 0, below `length`
};

// The keys and values of what a model has read, so that a further token costs one step. Every step has the
// same shapes, and what changes from one to the next is on the device: all steps are one program.
struct LanguageCache {
  struct Layer {
    torch::Tensor keys, values;  // [batch, key-value heads, capacity, head width]
  };
  std::vector<Layer> layers;
  torch::Tensor visible;       // bool [batch, capacity]: the slots that hold a token
  torch::Tensor next;          // int64 [1]: the slot of the next token
  torch::Tensor positions;     // int64 [batch, 1]: its position in each sequence
  torch::Tensor cosine, sine;  // llama: the angles of all positions; longrope's beyond its limit behind them
  int64_t capacity = 0, used = 0;  // slots
};

class LanguageModel : public torch::nn::Module {
 public:
  explicit LanguageModel(LanguageOptions options) : options_(std::move(options)) {}
  const LanguageOptions& options() const { return options_; }

  // What the layers make of the tokens: [batch, length, width]. gpt2 and llama see what is before a place and
  // itself, roberta the whole sequence; with `documents` only what is of the same one. Without `positions`
  // they are counted from the sequence's first place, filled up or not, as transformers do; roberta's skip
  // the padding token. llama's rope types "dynamic" and "longrope" take their frequencies from `length`,
  // with a cache from the largest position that is read.
  // Throws sluice::Error for other shapes and types, and for sequences that are too long.
  virtual torch::Tensor states(const LanguageInput& input) = 0;
  // A cache without tokens, in the weights' element type and on their device.
  LanguageCache make_cache(int64_t batch, int64_t capacity) const;
  // The same states, of tokens that come behind those in the cache. At first any number of them, at most
  // `capacity`, with a mask where the sequences differ in length (filled up in front, so that all end alike);
  // then one at a time, without a mask. Positions are counted from each sequence's first token. Throws
  // sluice::Error where the cache has no room, and for models that see what comes later (roberta).
  virtual torch::Tensor states(const LanguageInput& input, LanguageCache& cache);
  // What the head's linear layer is given, [..., width] of states [..., width]: roberta's go through a dense
  // layer, its activation and a norm; the others' are the same.
  virtual torch::Tensor before_head(const torch::Tensor& states) { return states; }
  // The head's linear layer, so that a loss can go through the vocabulary in parts.
  struct Head {
    torch::Tensor weight;  // [vocabulary, width]; the table of words where the head is tied
    torch::Tensor bias;    // [vocabulary], or undefined
  };
  // Throws sluice::Error (kFailedPrecondition) for a classifier, which has none.
  virtual Head head() const = 0;
  torch::Device device() const;  // where the weights are

  // Of a classifier (LanguageOptions::classes), which has no head of words: f32 [batch, classes], from the
  // first token (roberta) or the last one that is not filled up: of the mask, else the last that is not the
  // padding token. Throws sluice::Error for other models, and for several documents in a sequence.
  virtual torch::Tensor classify(const LanguageInput& input);

  // f32 [..., vocabulary] of states [..., width].
  torch::Tensor logits(const torch::Tensor& states);
  // f32 [batch, length, vocabulary]: the logits of the states.
  torch::Tensor forward(const LanguageInput& input) { return logits(states(input)); }
  torch::Tensor forward(torch::Tensor ids, torch::Tensor mask = {}) {
    return forward(LanguageInput{std::move(ids), std::move(mask)});
  }

 private:
  LanguageOptions options_;
};
using LanguageModelPtr = std::shared_ptr<LanguageModel>;

// On the CPU, in f32, with fresh weights (drawn from LibTorch's CPU generator). Throws sluice::Error for
// options that make no model.
LanguageModelPtr language_model(const LanguageOptions& options);

// Whether a tensor of this name belongs to a model's head: of words, or of classes.
bool is_of_head(const std::string& name);
// What the names of all other tensors of such a model begin with: "transformer.", "model." or "roberta.".
std::string body_prefix(const LanguageOptions& options);

// Tensors of a file by the model's names: adds a prefix that the file leaves out (GPT-2's files on the hub),
// and leaves out what is no parameter (tables of masks and positions, a pooler) or a copy of another tensor
// (a tied head).
std::vector<std::pair<std::string, torch::Tensor>> with_own_names(
    const LanguageOptions& options, std::vector<std::pair<std::string, torch::Tensor>> tensors);

}  // namespace sluice::models
SLUICE_API_END
