#include "sluice/kernels/install.h"

#include <mutex>
#include <set>
#include <string>

#include "sluice/kernels/convolution/convolution.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/recurrent/recurrent.h"
#include "sluice/kernels/registry.h"
#include "sluice/kernels/rows/attention.h"
#include "sluice/kernels/rows/gemm_update.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

class Library : public stablehlo::KernelLibrary {
 public:
  bool has(const stablehlo::ConvolutionCall& call) const override { return has_convolution(call); }
  bool has(const stablehlo::ProductCall& call) const override { return has_gemm(call); }
  bool has(const stablehlo::AttentionCall& call) const override { return has_attention(call); }
  bool has_recurrent() const override { return kernels::has_recurrent(); }
  bool has_with_update(const stablehlo::ProductCall& call) const override { return has_gemm_update(call); }
  bool leaves_out(std::string_view pattern) const override { return is_left_out(pattern); }
};

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
