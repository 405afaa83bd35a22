#include "sluice/kernels/install.h"

#include <mutex>
#include <set>
#include <string>

#include "sluice/kernels/convolution/convolution.h"
#include "sluice/kernels/gemm/product.h"
#include "sluice/kernels/gemm/product_update.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/rows/attention.h"
#include "sluice/kernels/rows/gelu.h"
#include "sluice/kernels/rows/layer_norm.h"
#include "sluice/kernels/rows/moments.h"
#include "sluice/kernels/rows/normalization.h"
#include "sluice/kernels/rows/pooling.h"
#include "sluice/kernels/rows/softmax.h"
#include "sluice/kernels/rows/update.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

class Library : public stablehlo::KernelLibrary {
 public:
  bool has(const stablehlo::ConvolutionCall& call) const override { return has_convolution(call); }
  bool has(const stablehlo::ProductCall& call) const override { return has_product(call); }
  bool has(const stablehlo::AttentionCall& call) const override { return has_attention(call); }
  bool has_with_update(const stablehlo::ProductCall& call) const override { return has_product_update(call); }
};

base::Status register_all(const pjrt::Plugin& plugin) {
  using pjrt::register_custom_call;
  SLUICE_OK(register_custom_call<call_convolution>(plugin, stablehlo::ConvolutionCall::kTarget));
  SLUICE_OK(register_custom_call<call_product>(plugin, stablehlo::ProductCall::kTarget));
  SLUICE_OK(register_custom_call<call_moments>(plugin, stablehlo::kMomentsTarget));
  SLUICE_OK(register_custom_call<call_channel_sums>(plugin, stablehlo::kChannelSumsTarget));
  SLUICE_OK(register_custom_call<call_sum_of_rows>(plugin, stablehlo::kSumOfRowsTarget));
  SLUICE_OK(register_custom_call<call_normalize>(plugin, stablehlo::kNormalizeTarget));
  SLUICE_OK(
      register_custom_call<call_normalization_gradient>(plugin, stablehlo::kNormalizationGradientTarget));
  SLUICE_OK(register_custom_call<call_max_pooling>(plugin, stablehlo::kMaxPoolingTarget));
  SLUICE_OK(register_custom_call<call_max_pooling_gradient>(plugin, stablehlo::kMaxPoolingGradientTarget));
  SLUICE_OK(register_custom_call<call_softmax>(plugin, stablehlo::kSoftmaxTarget));
  SLUICE_OK(register_custom_call<call_softmax_gradient>(plugin, stablehlo::kSoftmaxGradientTarget));
  SLUICE_OK(register_custom_call<call_layer_norm>(plugin, stablehlo::kLayerNormTarget));
  SLUICE_OK(register_custom_call<call_layer_norm_gradient>(plugin, stablehlo::kLayerNormGradientTarget));
  SLUICE_OK(register_custom_call<call_attention>(plugin, stablehlo::AttentionCall::kTarget));
  SLUICE_OK(register_custom_call<call_attention_gradient>(plugin, stablehlo::AttentionCall::kGradientTarget));
  SLUICE_OK(register_custom_call<call_gelu>(plugin, stablehlo::kGeluTarget));
  SLUICE_OK(register_custom_call<call_gelu_gradient>(plugin, stablehlo::kGeluGradientTarget));
  SLUICE_OK(register_custom_call<call_update>(plugin, stablehlo::UpdateCode::kTarget));
  SLUICE_OK(register_custom_call<call_product_update>(plugin, stablehlo::ProductCall::kUpdateTarget));
  return {};
}

}  // namespace

base::Result<const stablehlo::KernelLibrary*> install(const pjrt::Plugin& plugin, int local_replicas) {
  if (const auto opened = Onednn::open(); !opened) return tl::unexpected<Error>(opened.error());
  static std::mutex mutex;
  static auto& installed = *new std::set<std::string>;
  static const Library library;
  std::lock_guard lock(mutex);
  if (!installed.contains(plugin.path())) SLUICE_OK(register_all(plugin));
  installed.insert(plugin.path());
  share_threads(local_replicas);
  return &library;
}

}  // namespace sluice::kernels
