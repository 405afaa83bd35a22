#include "sluice/stablehlo/kernel_library.h"

namespace sluice::stablehlo {

Dims UpdateCode::to_words() const {
  Dims words = {static_cast<int64_t>(tensors), static_cast<int64_t>(units), static_cast<int64_t>(numbers),
                static_cast<int64_t>(steps.size())};
  for (const Step& step : steps) words.insert(words.end(), {static_cast<int64_t>(step.op), step.a, step.b});
  words.insert(words.end(), results.begin(), results.end());
  return words;
}

std::optional<UpdateCode> UpdateCode::from_words(const Dims& words) {
  constexpr size_t kHead = 4, kStep = 3;
  if (words.size() < kHead) return std::nullopt;
  for (size_t i = 0; i < kHead; ++i)
    if (words[i] < 0 || words[i] > int64_t{1} << 20) return std::nullopt;
  UpdateCode code;
  code.tensors = static_cast<size_t>(words[0]);
  code.units = static_cast<size_t>(words[1]);
  code.numbers = static_cast<size_t>(words[2]);
  const size_t steps = static_cast<size_t>(words[3]), results = kHead + steps * kStep;
  if (words.size() < results || words.size() - results > code.tensors) return std::nullopt;
  for (size_t at = kHead; at < results; at += kStep) {
    const int64_t registers = code.first_step() + static_cast<int64_t>(code.steps.size());
    const Step step{static_cast<Op>(words[at]), words[at + 1], words[at + 2]};
    if (words[at] < 0 || step.op > Op::kSqrt || step.a < 0 || step.a >= registers || step.b < 0 ||
        step.b >= registers)
      return std::nullopt;
    code.steps.push_back(step);
  }
  for (size_t at = results; at < words.size(); ++at) {
    if (words[at] < code.first_step() || words[at] >= code.first_step() + words[3]) return std::nullopt;
    code.results.push_back(words[at]);
  }
  return code;
}

}  // namespace sluice::stablehlo
