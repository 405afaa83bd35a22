// Functions of this process that programs call: custom calls of XLA's CPU plugin.
//
// A program names the function ("stablehlo.custom_call" with api_version = 4), which must be registered
// before the program is compiled or loaded. The function runs on one of the plugin's threads, once for each
// replica, and may wait for the other replicas' calls.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/pjrt/ffi_api.h"
#include "sluice/pjrt/plugin.h"
#include "sluice/stablehlo/type.h"

namespace sluice::pjrt {

// An operand or result: dense, last dimension fastest, valid during the call.
struct CallBuffer {
  stablehlo::DType dtype;
  std::span<const int64_t> dims;
  void* data;
  size_t elements() const;
  size_t bytes() const { return elements() * stablehlo::dtype_size(dtype); }
};

// The arguments of a handler, valid during the call.
class CustomCall {
 public:
  explicit CustomCall(const ffi::CallFrame* frame) : frame_(frame) {}

  size_t num_operands() const { return static_cast<size_t>(frame_->operands.size); }
  size_t num_results() const { return static_cast<size_t>(frame_->results.size); }
  // kUnimplemented for an element type that Sluice does not have.
  base::Result<CallBuffer> operand(size_t i) const;
  base::Result<CallBuffer> result(size_t i) const;

  // Return the attribute with this name: nullopt if there is none, kInvalidArgument if it has another type.
  base::Result<std::optional<int64_t>> number(std::string_view name) const;                    // i64
  base::Result<std::optional<double>> real(std::string_view name) const;                       // f64
  base::Result<std::optional<std::string_view>> text(std::string_view name) const;             // string
  base::Result<std::optional<std::span<const int64_t>>> numbers(std::string_view name) const;  // array<i64>

  // The id of the device on which the call runs.
  base::Result<int> device_id() const;

  // Schedules task(data) on a thread of the pool on which the plugin runs the program's own code. It runs at
  // once, or long after this call. Returns false, without calling it, if the plugin lends no threads.
  bool schedule(void (*task)(void*), void* data) const;

 private:
  const void* find(std::string_view name, int& type) const;
  const ffi::CallFrame* frame_;
};

using CustomCallFunction = base::Status (*)(const CustomCall&);

namespace internal {
// Runs the function for the frame, answers the request for metadata, and turns errors and exceptions into the
// plugin's errors.
ffi::Error* run_custom_call(ffi::CallFrame* frame, CustomCallFunction function) noexcept;
base::Status register_handler(const Plugin& plugin, std::string_view target, ffi::Handler handler);
template <CustomCallFunction kFunction>
ffi::Error* custom_call_entry(ffi::CallFrame* frame) {
  return run_custom_call(frame, kFunction);
}
}  // namespace internal

// Registers the function as `target` with the plugin, for its host platform. The first registration of a
// target with a plugin stays. kUnimplemented if the plugin takes no handlers. Threads: any.
template <CustomCallFunction kFunction>
base::Status register_custom_call(const Plugin& plugin, std::string_view target) {
  return internal::register_handler(plugin, target, internal::custom_call_entry<kFunction>);
}

}  // namespace sluice::pjrt
