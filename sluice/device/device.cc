#include "sluice/device/device.h"

#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/report/busy_clock.h"
#include "sluice/device/report/metrics.h"
#include "sluice/device/storage.h"

namespace sluice {

void keep_equal(const std::vector<at::Tensor>& parameters) {
  auto lock = device::lock_trace();
  for (const at::Tensor& parameter : parameters) {
    if (device::on_device(parameter)) device::LazyStorage::of(parameter)->keep_equal = true;
  }
}

void name_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named) {
  auto lock = device::lock_trace();
  for (const auto& [name, tensor] : named) {
    if (!device::on_device(tensor)) continue;
    auto& storage = *device::LazyStorage::of(tensor);
    storage.name = device::Names::add(name);
    if (storage.data) storage.data->name = storage.name;
  }
}

void label_tensors(const std::vector<std::pair<std::string, at::Tensor>>& named) {
  auto lock = device::lock_trace();
  for (const auto& [name, tensor] : named) {
    if (!device::on_device(tensor)) continue;
    auto& storage = *device::LazyStorage::of(tensor);
    storage.label = device::Names::add(name);
    if (storage.data) storage.data->name = storage.label;
  }
}

Counters counters() {
  auto lock = device::lock_trace();
  auto& metrics = device::Metrics::get();
  std::scoped_lock guard(metrics.mutex);
  Counters result = metrics.counters;
  result.busy_seconds = device::BusyClock::get().seconds();
  result.live_buffers = pjrt::Buffer::live();
  result.pending = static_cast<int64_t>(device::Trace::get().nodes.size());
  return result;
}

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  auto& metrics = device::Metrics::get();
  std::scoped_lock guard(metrics.mutex);
  return {metrics.fallbacks.begin(), metrics.fallbacks.end()};
}

}  // namespace sluice
