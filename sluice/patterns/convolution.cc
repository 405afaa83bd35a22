// Matches the composites of convolutions for which the target has a kernel; both gradients of one at once if
// both are wanted and a kernel makes both, else each gradient separately. Activations have the channels last,
// so that consecutive layers agree. If no other layer sees a convolution's activations, they keep LibTorch's
// order, which saves reordering them.
// Makes "sluice_convolution" (stablehlo/kernel_library.h). A sum of such activations over all dimensions but
// the channels, such as a bias' gradient, becomes "sluice_sum_of_planes": XLA's code for a CPU adds one
// number after the other. With both gradients in one call nothing reads the weights after their gradient is
// made, so that their update needs no copy.
#include <algorithm>
#include <utility>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/lone_convolutions.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;
using stablehlo::ConvolutionCall;
using Kind = ConvolutionCall::Kind;

ConvolutionCall call_of(const Operation& op, Kind kind, Value x, Value w, Value y, bool is_lone) {
  return {kind,
          x.dims(),
          w.dims(),
          y.dims(),
          op.ints("stride"),
          op.ints("padding"),
          op.ints("dilation"),
          op.number("groups"),
          is_lone};
}

Values call(Rewriter& r, const KernelLibrary& kernels, const ConvolutionCall& call, const Operation& op) {
  if (!all_f32(op.operands) || !all_f32(op.results) || !kernels.has(call)) return {};
  const int64_t rank = op.operands[0].rank();
  // Every operand or result that is not a weight is an activation.
  const Dims weight = rows_layout(rank),
             activation = call.channels_first ? weight : channels_last_layout(rank);
  std::vector<Dims> layouts;
  switch (call.kind) {
    case Kind::kForward:
    case Kind::kData:
      layouts = {activation, weight, activation};
      break;
    case Kind::kWeights:
      layouts = {activation, activation, weight};
      break;
    case Kind::kBackward:
      layouts = {activation, weight, activation, activation, weight};
      break;
  }
  std::vector<Type> results;
  for (const Value result : op.results) results.push_back(result.type());
  return call_in_layouts(r.b, ConvolutionCall::kTarget, op.operands, results,
                         {{"kind", static_cast<int64_t>(call.kind)},
                          {"stride", call.stride},
                          {"padding", call.padding},
                          {"dilation", call.dilation},
                          {"groups", call.groups},
                          {"channels_first", static_cast<int64_t>(call.channels_first)}},
                         layouts);
}

bool is_sum_of_planes(const Operation& op) {
  if (!is_sum(op) || !all_f32(op.operands) || is_small(op.operands[0])) return false;
  Dims dims = op.attributes.list("dimensions");
  std::sort(dims.begin(), dims.end());
  Dims all_but_channels;
  for (int64_t d = 0; d < op.operands[0].rank(); ++d)
    if (d != 1) all_but_channels.push_back(d);
  return dims == all_but_channels;
}

}  // namespace

void convolution(Rewriter& r, const KernelLibrary& kernels) {
  const LoneConvolutions lone(r);
  r.each([&](const Operation& op) -> Values {
    if (lone.has(op) && is_sum_of_planes(op))
      return call_on_rows(r.b, stablehlo::kSumOfPlanesTarget, {op.operands[0]}, {op.results[0].type()});
    if (!op.is_composite(composites::kConvolutionGradients)) return {};
    const Values& in = op.operands;
    return call(r, kernels, call_of(op, Kind::kBackward, in[0], in[1], in[2], lone.has(op)), op);
  });
  r.open(composites::kConvolutionGradients);
  r.each([&](const Operation& op) -> Values {
    const Values &in = op.operands, &out = op.results;
    if (op.is_composite(composites::kConvolution))
      return call(r, kernels, call_of(op, Kind::kForward, in[0], in[1], out[0], lone.has(op)), op);
    if (op.is_composite(composites::kConvolutionOfX))
      return call(r, kernels, call_of(op, Kind::kData, out[0], in[1], in[0], lone.has(op)), op);
    if (op.is_composite(composites::kConvolutionOfW))
      return call(r, kernels, call_of(op, Kind::kWeights, in[0], out[0], in[1], lone.has(op)), op);
    return {};
  });
}

}  // namespace sluice::patterns
