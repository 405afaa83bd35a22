#include "sluice/kernels/registry.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "sluice/base/span.h"
#include "sluice/kernels/convolution/convolution.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/profile_call.h"
#include "sluice/kernels/recurrent/recurrent.h"
#include "sluice/kernels/rows/attention.h"
#include "sluice/kernels/rows/gelu.h"
#include "sluice/kernels/rows/gemm_update.h"
#include "sluice/kernels/rows/layer_norm.h"
#include "sluice/kernels/rows/moments.h"
#include "sluice/kernels/rows/normalization.h"
#include "sluice/kernels/rows/pooling.h"
#include "sluice/kernels/rows/softmax.h"
#include "sluice/kernels/rows/update.h"
#include "sluice/kernels/threads.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {
namespace {

using stablehlo::AttentionCall;
using stablehlo::ConvolutionCall;
using stablehlo::ProductCall;
using stablehlo::UpdateCode;

// Far above the extent of any window, and so small that no sum of products of two such extents overflows.
constexpr int64_t kMaxExtent = int64_t{1} << 30;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

constexpr Attribute kStride = Attribute::list("stride", 1, kMaxExtent),
                    kPadding = Attribute::list("padding", 0, kMaxExtent),
                    kDilation = Attribute::list("dilation", 1, kMaxExtent),
                    kWindow = Attribute::list("kernel", 1, kMaxExtent),
                    kKind =
                        Attribute::number("kind", 0, static_cast<int64_t>(ConvolutionCall::Kind::kBackward)),
                    kGroups = Attribute::number("groups", 1, kMaxExtent),
                    kChannelsFirst = Attribute::flag("channels_first"),
                    kTransposedA = Attribute::flag("transposed_a"),
                    kTransposedB = Attribute::flag("transposed_b"), kLogarithm = Attribute::flag("logarithm"),
                    kCausal = Attribute::flag("causal"), kScale = Attribute::real("scale"),
                    kDropout = Attribute::optional_flag("dropout"), kReverse = Attribute::flag("reverse"),
                    kRelu = Attribute::flag("relu"),
                    // UpdateCode::from_words checks these words.
    kCode = Attribute::list("code", kMin, kMax), kNumbers = Attribute::list("numbers", 0, kMax),
                    kProduct = Attribute::number("product", 0, kMax);

constexpr Row kRows[] = {
    {ConvolutionCall::kTarget,
     call_convolution,
     {kKind, kStride, kPadding, kDilation, kGroups, kChannelsFirst}},
    {ProductCall::kTarget,
     call_gemm,
     {kTransposedA, kTransposedB, Attribute::optional_flag("rectified"), Attribute::optional_flag("gated")}},
    {ProductCall::kUpdateTarget, call_gemm_update, {kCode, kNumbers, kProduct, kTransposedA, kTransposedB}},
    {UpdateCode::kTarget, call_update, {kCode, kNumbers}},
    {stablehlo::kMomentsTarget, call_moments},
    {stablehlo::kChannelSumsTarget, call_channel_sums},
    {stablehlo::kSumOfRowsTarget, call_sum_of_rows},
    {stablehlo::kSumOfPlanesTarget, call_sum_of_planes},
    {stablehlo::kNormalizeTarget, call_normalize},
    {stablehlo::kNormalizationGradientTarget, call_normalization_gradient},
    {stablehlo::kMaxPoolingTarget, call_max_pooling, {kWindow, kStride, kPadding, kDilation}},
    {stablehlo::kMaxPoolingGradientTarget,
     call_max_pooling_gradient,
     {kWindow, kStride, kPadding, kDilation}},
    {stablehlo::kSoftmaxTarget, call_softmax, {kLogarithm}},
    {stablehlo::kSoftmaxGradientTarget, call_softmax_gradient, {kLogarithm}},
    {stablehlo::kLayerNormTarget, call_layer_norm},
    {stablehlo::kLayerNormGradientTarget, call_layer_norm_gradient},
    {AttentionCall::kTarget, call_attention, {kCausal, kScale, kDropout}},
    {AttentionCall::kGradientTarget, call_attention_gradient, {kCausal, kScale, kDropout}},
    {stablehlo::kLstmTarget, call_lstm, {kReverse}},
    {stablehlo::kLstmGradientTarget, call_lstm_gradient, {kReverse}},
    {stablehlo::kGruTarget, call_gru, {kReverse}},
    {stablehlo::kGruGradientTarget, call_gru_gradient, {kReverse}},
    {stablehlo::kRnnTarget, call_rnn, {kReverse, kRelu}},
    {stablehlo::kRnnGradientTarget, call_rnn_gradient, {kReverse, kRelu}},
    {stablehlo::kGeluTarget, call_gelu},
    {stablehlo::kGeluGradientTarget, call_gelu_gradient},
};

template <size_t kRow>
base::Status answer_row(const pjrt::CustomCall& call) {
  return answer(kRows[kRow], call);
}

}  // namespace

std::span<const Row> registry() { return kRows; }

base::Status answer(const Row& row, const pjrt::CustomCall& call) {
  const UseThreads threads(call);
  if (!base::spans_are_recorded()) [[likely]]
    return row.handler(Call(row.target, row.attributes, call));
  const int64_t begin = base::span_clock();
  base::Status status = row.handler(Call(row.target, row.attributes, call));
  if (status) profile_call(row.target, call, begin, base::span_clock());
  return status;
}

base::Status register_all(const pjrt::Plugin& plugin) {
  base::Status status;
  const auto add = [&]<size_t... kRow>(std::index_sequence<kRow...>) {
    // The fold stops at the first error.
    (void)((status = pjrt::register_custom_call<answer_row<kRow>>(plugin, kRows[kRow].target)) && ...);
  };
  add(std::make_index_sequence<std::size(kRows)>());
  return status;
}

}  // namespace sluice::kernels
