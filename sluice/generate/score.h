// How likely a language model finds a text.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN
namespace sluice {

// The logarithm of each target's probability at its place, in nats: f32 [batch, length] of targets int64
// [batch, length], on the input's device. The logits are made for a few places at a time.
torch::Tensor target_log_likelihoods(models::LanguageModel& model, const models::LanguageInput& input,
                                     const torch::Tensor& targets);

// Throws sluice::Error (kUnimplemented) for a model that sees the whole text (roberta): it does not say how
// likely a token is given those before it.
void check_scores(const models::LanguageOptions& options);

// Tokens of which those from `first` on are scored, each given all before it.
struct Passage {
  std::vector<uint32_t> ids;
  size_t first = 1;  // at least 1
};

// A document in passages that a model can read, so that every token but the first is scored once: each
// passage's first new token sees at least `length` - `stride` before it where the document has them. length:
// tokens that are read at a time; stride: from 1 to length.
std::vector<Passage> passages_of(const std::vector<uint32_t>& document, int64_t length, int64_t stride);

// Scores passages in batches of few shapes: with as many rows each and a length that is rounded up
// (generation_length), so that few programs exist.
class PassageScorer {
 public:
  // The model is in evaluation mode and stays so.
  PassageScorer(models::LanguageModel& model, int64_t batch);

  // Gives the passage's number, from 0. Throws sluice::Error for a passage that is longer than the model's
  // positions + 1, has nothing to be scored, or an id that the vocabulary does not have.
  size_t add(Passage passage);
  // The sum of the logarithms of each passage's scored tokens, in nats, by number. All that were added.
  std::vector<double> finish();

 private:
  struct Waiting {
    size_t number;
    Passage passage;
  };
  void run(int64_t length, const std::vector<Waiting>& rows);

  models::LanguageModel& model_;
  const int64_t batch_;
  std::map<int64_t, std::vector<Waiting>> waiting_;  // by length
  std::vector<double> sums_;
};

}  // namespace sluice
SLUICE_API_END
