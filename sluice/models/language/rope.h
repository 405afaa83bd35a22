// Rotary positions.
#pragma once

#include <torch/torch.h>

#include "sluice/models/language/language.h"

namespace sluice::models::language_detail {

// The rotation angles for queries and keys [batch, heads, length, head width].
class Rope {
 public:
  explicit Rope(const LanguageOptions& options);
  struct Angles {
    torch::Tensor cosine, sine;  // f32, [length, head width] or [batch, 1, length, head width]
  };
  // Returns angles on the device of the ids. With a cache, the input must have positions.
  Angles angles(const LanguageInput& input);
  Angles angles(const LanguageInput& input, LanguageCache& cache) const;

 private:
  // Returns the frequencies for sequences of `length`.
  torch::Tensor frequencies(int64_t length) const;
  torch::Tensor yarn(const torch::Tensor& plain) const;
  double attention_factor() const;
  // Returns [length, head width], on the CPU, with the frequencies for a sequence of `stretch`.
  Angles table(int64_t length, int64_t stretch) const;

  RopeOptions options_;
  int64_t width_, positions_;
  Angles last_;  // the angles of the last length, on the CPU
};
torch::Tensor rotate(const torch::Tensor& x, const Rope::Angles& angles);

}  // namespace sluice::models::language_detail
