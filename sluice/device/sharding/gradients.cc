#include "sluice/device/sharding/gradients.h"

#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <unordered_map>
#include <utility>

#include "sluice/device/program/trace.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/storage.h"

namespace sluice::device {
namespace {

using Parameter = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// The parameters that shard_parameters() has laid out. They belong to the trace's lock. A weak pointer keeps
// an address from being used again, so an address is one parameter.
std::unordered_map<const c10::TensorImpl*, Parameter>& parameters() {
  static auto& all = *new std::unordered_map<const c10::TensorImpl*, Parameter>();
  return all;
}

// Returns whether the program that is about to be compiled computes the gradient, and nobody chose a layout
// for it.
bool awaits_layout(const at::Tensor& gradient) {
  if (!on_device(gradient)) return false;
  const LazyStorage& storage = *LazyStorage::of(gradient);
  return storage.state == LazyStorage::State::kPending && storage.layout == nullptr;
}

void lay_out(const at::Tensor& gradient, const at::Tensor& parameter, const Mesh& mesh) {
  LazyStorage& storage = *LazyStorage::of(gradient);
  const bool covers = gradient.sizes() == parameter.sizes() && gradient.is_contiguous() &&
                      gradient.storage_offset() == 0 &&
                      static_cast<size_t>(gradient.numel()) * gradient.itemsize() == storage.nbytes();
  if (covers) storage.layout = fitting(LazyStorage::of(parameter)->layout, mesh, gradient.sizes());
}

}  // namespace

void lay_out_gradient_of(const at::Tensor& parameter) {
  const TraceLock lock = lock_trace();
  if (LazyStorage::of(parameter)->layout == nullptr) return;
  parameters().try_emplace(parameter.unsafeGetTensorImpl(), parameter.getIntrusivePtr());
}

void lay_out_gradients(const Mesh& mesh) {
  auto& all = parameters();
  for (auto item = all.begin(); item != all.end();) {
    const at::Tensor parameter(item->second.lock());
    if (!parameter.defined()) {
      item = all.erase(item);
      continue;
    }
    const at::Tensor& gradient = std::as_const(*parameter.unsafeGetTensorImpl()).grad();
    if (awaits_layout(gradient) && on_device(parameter)) lay_out(gradient, parameter, mesh);
    ++item;
  }
}

}  // namespace sluice::device
