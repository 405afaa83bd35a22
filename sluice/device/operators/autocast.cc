// Autocast on xla: LibTorch's own lists of operations, and the scope that keeps its cache of cast weights
// fresh.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "sluice/device/device.h"
#include "sluice/device/program/record.h"

namespace sluice::device {

void register_autocast() {
  static auto* rest =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastXLA, __FILE__, __LINE__);
  rest->fallback(torch::CppFunction::makeFallthrough());
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastXLA, __FILE__, __LINE__);
  torch::Library& m = *library;  // the name that LibTorch's macros use
#define SLUICE_LOWER_PRECISION(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, lower_precision_fp)
#define SLUICE_FP32(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, fp32)
#define SLUICE_FP32_SET_OPT_DTYPE(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, fp32_set_opt_dtype)
#define SLUICE_PROMOTE(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(SLUICE_LOWER_PRECISION)
  AT_FORALL_FP32(SLUICE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(SLUICE_FP32_SET_OPT_DTYPE)
  AT_FORALL_PROMOTE(SLUICE_PROMOTE)
#undef SLUICE_LOWER_PRECISION
#undef SLUICE_FP32
#undef SLUICE_FP32_SET_OPT_DTYPE
#undef SLUICE_PROMOTE
}

}  // namespace sluice::device

namespace sluice {

Autocast::Autocast(at::Device device, bool enabled)
    : type_(device.type()), enabled_(enabled && (type_ == c10::kXLA || type_ == c10::kCPU)) {
  if (!enabled_) return;
  previous_ = at::autocast::is_autocast_enabled(type_);
  previous_dtype_ = at::autocast::get_autocast_dtype(type_);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_dtype(type_, at::kBFloat16);
  at::autocast::set_autocast_enabled(type_, true);
}

Autocast::~Autocast() {
  if (!enabled_) return;
  at::autocast::set_autocast_enabled(type_, previous_);
  at::autocast::set_autocast_dtype(type_, previous_dtype_);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace sluice
