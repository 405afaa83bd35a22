#include "sluice/kernels/install.h"

#include <mutex>
#include <set>
#include <string>

#include "sluice/base/export.h"
#include "sluice/kernels/convolution/convolution.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/kernels/gemm/gemm_update.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/registry.h"
#include "sluice/kernels/rows/attention.h"
#include "sluice/kernels/threads.h"

// jemalloc's settings, which it reads when the process starts; unused where another allocator serves it.
// XLA's CPU plugin takes the memory of a program's intermediate values anew for each launch, and LibTorch
// that of each result: what was freed stays the process's, large blocks too, and comes in huge pages:
// neighbouring rows of an image lie pages apart. (With a limit of ten seconds LibTorch's own operations took
// a third longer.)
extern "C" SLUICE_API const char* malloc_conf;
const char* malloc_conf = "thp:always,metadata_thp:auto,dirty_decay_ms:-1,oversize_threshold:0";

namespace sluice::kernels {
namespace {

class Library : public stablehlo::KernelLibrary {
 public:
  bool has(const stablehlo::ConvolutionCall& call) const override { return has_convolution(call); }
  bool has(const stablehlo::ProductCall& call) const override { return has_gemm(call); }
  bool has(const stablehlo::AttentionCall& call) const override { return has_attention(call); }
  bool has_with_update(const stablehlo::ProductCall& call) const override { return has_gemm_update(call); }
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
