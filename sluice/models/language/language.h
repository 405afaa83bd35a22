// Language models: plain LibTorch modules that compute the same as Hugging Face's transformers, with the same
// names of parameters.
//
//   auto model = sluice::models::language_model(sluice::models::language_preset("gpt2"));
//   torch::Tensor logits = model->forward(ids, mask);
//
// sluice/session/pretrained/pretrained.h reads and writes weights in transformers' folders.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/mesh/rules.h"
#include "sluice/models/language/options.h"

SLUICE_API_BEGIN
namespace sluice::models {

// The input of a model. All tensors are [batch, length], on one device.
struct LanguageInput {
  torch::Tensor ids;  // int64
  // bool, false where a sequence is padded; such places have no influence on the others. Undefined: no
  // padding.
  torch::Tensor mask = {};
  // For several documents in one sequence, which do not see each other: both of int64 or int32, or neither.
  torch::Tensor documents = {};  // the number of a place's document in its sequence, from 1; 0: padding
  torch::Tensor positions = {};  // places in their document, from 0, below `length`
};

// The keys and values of the tokens read so far, so that a further token costs one step. Every step has the
// same shapes, and the values that change between steps are on the device: all steps are one program.
struct LanguageCache {
  struct Layer {
    torch::Tensor keys, values;  // [batch, key-value heads, capacity, head width]
  };
  std::vector<Layer> layers;
  torch::Tensor visible;       // bool [batch, capacity]: the slots that hold a token
  torch::Tensor next;          // int64 [1]: the slot of the next token
  torch::Tensor positions;     // int64 [batch, 1]: its position in each sequence
  torch::Tensor cosine, sine;  // llama: the angles of all positions; longrope appends those beyond its limit
  int64_t capacity = 0, used = 0;  // slots
};

// Returns how a model's parameters lie over a mesh (docs/sharding.md): the heads' projections, the
// feed-forward and the vocabulary over `tensor`, the tables of words and positions along their width over
// fsdp. The first rule that matches a name counts.
std::vector<ShardRule> language_shard_rules(const LanguageOptions& options);

class LanguageModel : public torch::nn::Module, public LaidOutModel {
 public:
  explicit LanguageModel(LanguageOptions options) : options_(std::move(options)) {}
  const LanguageOptions& options() const { return options_; }
  std::vector<ShardRule> shard_rules() const override { return language_shard_rules(options_); }

  // Returns the layers' output for the tokens: [batch, length, width]. In gpt2 and llama a place sees itself
  // and the places before it, in roberta the whole sequence; with `documents` only places of the same
  // document. Without `positions`, places are counted from the sequence's first one, padding or not, as in
  // transformers; roberta skips the padding token. llama's rope types "dynamic" and "longrope" take their
  // frequencies from `length`, with a cache from the largest position in the input. Throws sluice::Error for
  // other shapes and types, and for sequences that are too long.
  virtual torch::Tensor states(const LanguageInput& input) = 0;
  // Returns a cache without tokens, in the weights' element type and on their device.
  LanguageCache make_cache(int64_t batch, int64_t capacity) const;
  // Returns the states of tokens that follow the tokens in the cache. The first call may have any number of
  // tokens, at most `capacity`, and needs a mask if the sequences differ in length (padded in front, so that
  // all end alike); later calls have one token and no mask. Positions are counted from each sequence's first
  // token. Throws sluice::Error if the cache has no room, and for models that see later tokens (roberta).
  virtual torch::Tensor states(const LanguageInput& input, LanguageCache& cache);
  // Returns the input of the head's linear layer, [..., width] for states [..., width]. roberta applies a
  // dense layer, its activation and a norm; the other models return the states.
  virtual torch::Tensor before_head(const torch::Tensor& states) { return states; }
  // The head's linear layer, with which a loss can process the vocabulary in parts.
  struct Head {
    torch::Tensor weight;  // [vocabulary, width]; the table of words where the head is tied
    torch::Tensor bias;    // [vocabulary], or undefined
  };
  // Throws sluice::Error (kFailedPrecondition) for a classifier: it has no such head.
  virtual Head head() const = 0;
  torch::Device device() const;  // of the weights

  // Returns a classifier's f32 [batch, classes] (LanguageOptions::classes; a classifier has no head of
  // words). They come from the first token (roberta) or the last one before the padding: by the mask, else
  // the last that is not the padding token. Throws sluice::Error for other models, and for several documents
  // in a sequence.
  virtual torch::Tensor classify(const LanguageInput& input);

  // Returns f32 [..., vocabulary] for states [..., width].
  torch::Tensor logits(const torch::Tensor& states);
  // Returns the logits of the input's states: f32 [batch, length, vocabulary].
  torch::Tensor forward(const LanguageInput& input) { return logits(states(input)); }
  torch::Tensor forward(torch::Tensor ids, torch::Tensor mask = {}) {
    return forward(LanguageInput{std::move(ids), std::move(mask)});
  }

 private:
  LanguageOptions options_;
};
using LanguageModelPtr = std::shared_ptr<LanguageModel>;

// Makes a model on the CPU, in f32, with fresh weights (drawn from LibTorch's CPU generator). Throws
// sluice::Error for invalid options.
LanguageModelPtr language_model(const LanguageOptions& options);

// Returns whether a tensor of this name belongs to a model's head of words or of classes.
bool is_of_head(const std::string& name);
// Returns the prefix of the names of all other tensors of such a model: "transformer.", "model." or
// "roberta.".
std::string body_prefix(const LanguageOptions& options);

// Gives a file's tensors the model's names: adds a prefix that the file leaves out (GPT-2's files on the
// hub), and drops tensors that are no parameters (tables of masks and positions, a pooler) or that copy
// another tensor (a tied head).
std::vector<std::pair<std::string, torch::Tensor>> with_own_names(
    const LanguageOptions& options, std::vector<std::pair<std::string, torch::Tensor>> tensors);

// Returns the model's name of each of a file's tensors, as with_own_names does; "" for one that is dropped.
std::vector<std::string> own_names(const LanguageOptions& options, std::vector<std::string> names);

}  // namespace sluice::models
SLUICE_API_END
