// The probability that a language model gives to a text.
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

// Returns the logarithm of each target's probability at its position, in nats: f32 [batch, length] of targets
// int64 [batch, length], on the input's device. Computes the logits for a few positions at a time.
torch::Tensor target_log_likelihoods(models::LanguageModel& model, const models::LanguageInput& input,
                                     const torch::Tensor& targets);

// Throws sluice::Error (kUnimplemented) for a model that sees the whole text (roberta): it does not give a
// token's probability from the tokens before it.
void check_scores(const models::LanguageOptions& options);

// Tokens that are scored from `first` on, each given all before it.
struct Passage {
  std::vector<uint32_t> ids;
  size_t first = 1;  // at least 1
};

// Splits a document into passages that a model can read, so that every token but the first is scored once:
// each passage's first new token sees at least `length` - `stride` before it if the document has them.
// `length`: tokens that are read at a time; `stride`: from 1 to length.
std::vector<Passage> passages_of(const std::vector<uint32_t>& document, int64_t length, int64_t stride);

// Scores passages in batches of a few shapes: each has the same number of rows, and a length that is rounded
// up (generation_length), so that there are few programs.
class PassageScorer {
 public:
  // The model must be in evaluation mode and stay so.
  PassageScorer(models::LanguageModel& model, int64_t batch);

  // Returns the passage's number, from 0. Throws sluice::Error for a passage that is longer than the model's
  // positions + 1, has no token to be scored, or has an id outside the vocabulary.
  size_t add(Passage passage);
  // Returns for each passage added, by number, the sum of the logarithms of its scored tokens, in nats.
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
