#include "sluice/stablehlo/kernel_work.h"

#include <algorithm>
#include <numeric>

#include "sluice/stablehlo/kernel_library.h"

namespace sluice::stablehlo {
namespace {

double elements(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1.0,
                         [](double count, int64_t dim) { return count * static_cast<double>(dim); });
}

int64_t number(const KernelCall& call, std::string_view name) {
  const Dims found = call.attribute(name);
  return found.empty() ? 0 : found[0];
}

double of_convolution(const KernelCall& call) {
  using Kind = ConvolutionCall::Kind;
  const auto kind = static_cast<Kind>(number(call, "kind"));
  const Dims& y = kind == Kind::kForward   ? call.results.at(0)
                  : kind == Kind::kData    ? call.operands.at(0)
                  : kind == Kind::kWeights ? call.operands.at(1)
                                           : call.operands.at(2);
  const Dims& w = kind == Kind::kWeights ? call.results.at(0) : call.operands.at(1);
  const double taps = elements(w) / static_cast<double>(w.at(0));
  return (kind == Kind::kBackward ? 4 : 2) * elements(y) * taps;
}

// Returns the FLOPs of a product whose a is operand `first`, and whose b is the next one.
double of_product(const KernelCall& call, size_t first) {
  const Dims& a = call.operands.at(first);
  const Dims& b = call.operands.at(first + 1);
  const double n = static_cast<double>(b.at(b.size() - (number(call, "transposed_b") != 0 ? 2 : 1)));
  return 2 * elements(a) * n;
}

double of_product_update(const KernelCall& call) {
  const auto code = UpdateCode::from_words(call.attribute("code"));
  if (!code) return 0;
  return of_product(call, code->tensors - 1 + code->units + (code->numbers > 0 ? 1 : 0));
}

double of_attention(const KernelCall& call, const Dims& output, size_t q) {
  const bool packed = call.operands.at(q).size() == 3;
  const double batch = static_cast<double>(output.at(0)), heads = static_cast<double>(output.at(2)),
               size = static_cast<double>(output.at(3));
  const int64_t queries = output.at(1), keys = packed ? queries : call.operands.at(q + 1).at(1);
  double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  if (number(call, "causal") != 0) {
    pairs = 0;
    for (int64_t i = 0; i < queries; ++i) pairs += static_cast<double>(std::min(i + 1, keys));
  }
  return 4 * batch * heads * pairs * size;
}

struct RecurrentTarget {
  std::string_view target;
  size_t operands;  // the number without the sequences' lengths
};
constexpr RecurrentTarget kRecurrent[] = {{kLstmTarget, 4}, {kLstmGradientTarget, 7},
                                          {kGruTarget, 4},  {kGruGradientTarget, 6},
                                          {kRnnTarget, 3},  {kRnnGradientTarget, 4}};

}  // namespace

std::optional<double> flops_of(const KernelCall& call) {
  if (call.target == ConvolutionCall::kTarget) return of_convolution(call);
  if (call.target == ProductCall::kTarget) return of_product(call, 0);
  if (call.target == ProductCall::kUpdateTarget) return of_product_update(call);
  if (call.target == AttentionCall::kTarget) return of_attention(call, call.results.at(0), 0);
  if (call.target == AttentionCall::kGradientTarget) return 2 * of_attention(call, call.operands.at(0), 1);
  for (const auto& [target, operands] : kRecurrent) {
    if (call.target != target || call.operands.size() != operands) continue;
    const Dims& steps = call.operands[0];
    const double rows = elements(steps) / static_cast<double>(steps.back());
    return 2 * rows * elements(call.operands[1]);
  }
  return std::nullopt;
}

}  // namespace sluice::stablehlo
