// Matches the sum of a convolution's result, which nothing else reads, and a bias of its channels, if the
// call's activations have the channels first.
// Makes the bias an operand of the call, which adds it as it writes the result. (With the channels last other
// layers follow, and the compiler adds the bias in one pass with the first of them.)
#include <utility>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

using stablehlo::ConvolutionCall;

// Returns the call without a bias, of x or y's gradient and w, that made v, if v has only one reader. Else
// null.
const Operation* call_without_bias(const Rewriter& r, Value v) {
  const Operation* const call = r.call(v, ConvolutionCall::kTarget);
  const bool fits = call != nullptr && call->results.size() == 1 && call->operands.size() == 2 &&
                    call->number("channels_first") != 0 &&
                    call->number("kind") != static_cast<int64_t>(ConvolutionCall::Kind::kWeights);
  return fits && r.readers(v) == 1 ? call : nullptr;
}

// Returns the value that is broadcast along the channels. Else empty.
Value bias_along_channels(const Rewriter& r, Value x) {
  const Operation* const broadcast = r.made_by(x, "stablehlo.broadcast_in_dim");
  if (broadcast == nullptr || broadcast->attributes.list("broadcast_dimensions") != Dims{1}) return {};
  const Value bias = broadcast->operands[0];
  return bias.dim(0) == x.dim(1) ? bias : Value();
}

}  // namespace

void bias_of_convolution(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.add")) return {};
    for (const auto& [x, other] :
         {std::pair(op.operands[0], op.operands[1]), std::pair(op.operands[1], op.operands[0])}) {
      const Operation* const call = call_without_bias(r, x);
      const Value bias = call != nullptr ? bias_along_channels(r, other) : Value();
      if (!bias) continue;
      return call_on_rows(r.b, ConvolutionCall::kTarget, {call->operands[0], call->operands[1], bias},
                          {x.type()}, call->call);
    }
    return {};
  });
}

}  // namespace sluice::patterns
