#include "sluice/device/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/device/metrics.h"
#include "sluice/device/record.h"
#include "sluice/device/runtime.h"
#include "sluice/device/trace.h"

namespace sluice::device {
namespace {

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  fall_back(op, stack, "no row");
}

}  // namespace

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& why) {
  const std::string name = toString(op.schema().operator_name());
  if (runtime_options().strict) {
    throw Error(Code::kUnimplemented,
                base::str("--strict: ", name, " has no program on xla (", why,
                          ") and would run on the CPU; replace it, or run without --strict"));
  }
  Metrics& metrics = Metrics::get();
  int64_t count = 0;
  {
    std::scoped_lock lock(metrics.mutex);
    ++metrics.counters.fallbacks;
    count = ++metrics.fallbacks[name];
  }
  if (count == 1) {
    base::warn(name, " runs on the CPU (", why,
               "): its operands are copied to the host each time; this is said once");
  }
  at::native::cpu_fallback(op, stack, /*error_on_views=*/false);
}

void register_fallback() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

}  // namespace sluice::device
