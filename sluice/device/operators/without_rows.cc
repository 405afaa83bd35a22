// The kernels that are not rows: creation, views, copies between host and device, host reads.
#include <ATen/NativeFunctions.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/all.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/kaiser_window.h>
#include <torch/library.h>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/libtorch/overlap.h"
#include "sluice/device/operators/host_shapes.h"
#include "sluice/device/program/record.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/layouts.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

void check_device(const std::optional<at::Device>& device) {
  if (device && device->has_index() && device->index() != 0) {
    throw_error(
        Code::kInvalidArgument,
        base::str("there is one device, xla:0, which stands for all replicas of this process, found ",
                  device->str(), "; choose the number of replicas with --devices or sluice::DeviceOptions"));
  }
}

c10::ScalarType type_or_default(std::optional<at::ScalarType> dtype) {
  const auto type = dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype()));
  to_dtype(type);
  return type;
}

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout>, std::optional<at::Device> device,
                               std::optional<bool>, std::optional<at::MemoryFormat> format) {
  check_device(device);
  at::Tensor tensor = make_empty(size, type_or_default(dtype));
  if (format && *format != at::MemoryFormat::Contiguous && *format != at::MemoryFormat::Preserve) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return tensor;
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  check_device(device);
  const auto type = type_or_default(dtype);
  const size_t bytes = at::detail::computeStorageNbytes(size, stride, c10::elementSize(type));
  at::Tensor tensor = make_empty({static_cast<int64_t>(bytes / c10::elementSize(type))}, type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return tensor;
}

// Returns the zero gradients of autograd's formulas. A storage that was never written reads as zeros.
at::Tensor zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                       std::optional<at::Device> device, std::optional<bool>) {
  check_device(device);
  return make_empty(size, type_or_default(dtype));
}

at::Tensor new_empty_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                             std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                             std::optional<at::Device> device, std::optional<bool> pin) {
  if (device && device->type() != c10::kXLA) {
    return at::empty_strided(size, stride,
                             at::TensorOptions().dtype(dtype.value_or(self.scalar_type())).device(*device));
  }
  return empty_strided(size, stride, dtype.value_or(self.scalar_type()), layout, device, pin);
}

// Grows a storage, which keeps its elements; the new ones are zeros.
void grow(const at::Tensor& tensor, size_t bytes) {
  LazyStorage& storage = *LazyStorage::of(tensor);
  if (bytes <= storage.nbytes()) return;
  if (Watch* watch = Watch::current(); watch != nullptr && watch->outside(storage))
    watch->refuse("it resizes a tensor that lives outside");
  if (storage.state != LazyStorage::State::kEmpty && storage.nbytes() > 0) {
    const auto elements = static_cast<int64_t>(storage.nbytes() / tensor.itemsize());
    at::Tensor flat = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::XLA), tensor.dtype());
    flat.unsafeGetTensorImpl()->set_sizes_contiguous({elements});
    const Operand old = read(flat);
    set_pending(storage,
                record_internal("sluice::grow", old, {static_cast<int64_t>(bytes / tensor.itemsize())}));
  } else {
    if (storage.state == LazyStorage::State::kPending) Trace::get().unlink(storage);
    storage.state = LazyStorage::State::kEmpty;
    storage.data.reset();
  }
  storage.set_nbytes(bytes);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size,
                          std::optional<at::MemoryFormat> format) {
  TraceLock lock = lock_trace();
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (!self.sizes().equals(size)) impl->set_sizes_contiguous(size);
  if (format && *format != at::MemoryFormat::Contiguous && *format != at::MemoryFormat::Preserve)
    impl->empty_tensor_restride(*format);
  grow(self,
       (static_cast<size_t>(self.numel()) + static_cast<size_t>(self.storage_offset())) * self.itemsize());
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  if (source.device().type() != c10::kXLA) {
    throw_error(Code::kInvalidArgument,
                base::str("set_: expected a storage on xla:0, found one on ", source.device().str()));
  }
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.empty() && !size.empty())
    impl->set_sizes_contiguous(size);
  else
    impl->set_sizes_and_strides(size, stride);
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

// Does copy_ from self to dst; at least one of them is on the device.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool /*non_blocking*/) {
  if (on_device(self) && on_device(dst)) {
    check_internal_overlap("aten::copy_", dst);
    check_partial_overlap("aten::copy_", dst, self);
    TraceLock lock = lock_trace();
    if (copy_with_host(dst, self)) return dst;
    copy_value(dst, self);
    if (runtime_options().eager) cut("aten::copy_");
    return dst;
  }
  if (on_device(dst)) {
    check_internal_overlap("aten::copy_", dst);
    // The host converts and broadcasts first, so that only the tensor's own bytes are sent. The copy has the
    // present value: later writes to the host tensor must not show.
    at::Tensor host =
        self.to(dst.scalar_type()).expand(dst.sizes()).contiguous().resolve_conj().resolve_neg();
    if (host.is_alias_of(self)) host = host.clone();
    DataPtr data = upload_data({host}, layout_to_keep(dst));
    TraceLock lock = lock_trace();
    write(dst, std::move(data));
    return dst;
  }
  at::native::copy_(const_cast<at::Tensor&>(dst), download(self, "copy to the host"), false);
  return dst;
}

// Works like LibTorch's own function, which keeps strides only if Device::supports_as_strided allows it; for
// XLA it does not. LibTorch calls it by the tensor's device and by the wanted device: one of them is XLA.
at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                   std::optional<at::Layout> layout, std::optional<at::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<at::MemoryFormat> memory_format) {
  const bool preserve = memory_format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve;
  const at::Device target = device.value_or(self.device());
  if (!preserve || target.type() != c10::kXLA || self.is_contiguous() || !self.is_non_overlapping_and_dense())
    return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
  const auto options = self.options().dtype(dtype.value_or(self.scalar_type())).device(target);
  return at::empty_strided(self.sizes(), self.strides(), options).copy_(self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) { return download(self, ".item()").item(); }

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return on_device(other) && self.is_alias_of(other) && self.storage_offset() == other.storage_offset() &&
         self.sizes().equals(other.sizes()) && self.strides().equals(other.strides());
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  if (!self.sizes().equals(other.sizes())) return false;
  // Attention asks whether query, key and value are one tensor; that needs no read of the device.
  if (is_set_to(self, other)) return true;
  return at::all(at::eq(self, other)).item<bool>();
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }
at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
const at::Tensor& as_strided_in_place(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                                      std::optional<int64_t> offset) {
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset.value_or(self.storage_offset()));
  return self;
}
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}
at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

// Returns whether `self` may take the storage of `from`, for set_data and Module::to.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  auto dense = [](const at::Tensor& t) {
    return t.layout() == at::kStrided && (t.device().is_cpu() || t.device().type() == c10::kXLA);
  };
  return dense(self) && dense(from);
}

// LibTorch's lazy conjugation gives an operation resolved operands: copies, and the copy does the
// conjugation itself (read() and write() in storage.cc).
at::Tensor& conj_physical_out(const at::Tensor& self, at::Tensor& out) {
  out.resize_(self.sizes());
  return out.copy_(at::_conj_physical(self));
}
at::Tensor& conj_physical_in_place(at::Tensor& self) { return self.copy_(at::_conj_physical(self)); }

// LibTorch fills this window with a function that exists only for its own devices.
at::Tensor kaiser_window(int64_t length, bool periodic, double beta, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool>) {
  const auto options = at::TensorOptions().dtype(dtype).layout(layout);
  return at::kaiser_window(length, periodic, beta, options).to(device.value_or(at::Device(at::kXLA, 0)));
}
// The other two overloads use LibTorch's default beta.
at::Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> dtype,
                                  std::optional<at::Layout> layout, std::optional<at::Device> device,
                                  std::optional<bool> pin) {
  return kaiser_window(length, periodic, 12.0, dtype, layout, device, pin);
}
at::Tensor kaiser_window_default(int64_t length, std::optional<at::ScalarType> dtype,
                                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                                 std::optional<bool> pin) {
  return kaiser_window_periodic(length, true, dtype, layout, device, pin);
}

void record_stream(at::Tensor&, at::Stream) {}

}  // namespace

void register_hand_written_kernels() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->impl("empty.memory_format", TORCH_FN(empty_memory_format));
  library->impl("empty_strided", TORCH_FN(empty_strided));
  library->impl("new_empty_strided", TORCH_FN(new_empty_strided));
  library->impl("resize_", TORCH_FN(resize_));
  library->impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  library->impl("set_.source_Tensor", TORCH_FN(set_tensor));
  library->impl("_to_copy", TORCH_FN(to_copy));
  library->impl("_copy_from", TORCH_FN(copy_from));
  library->impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library->impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  library->impl("equal", TORCH_FN(equal));
  library->impl("is_set_to", TORCH_FN(is_set_to));
  library->impl("view", TORCH_FN(view));
  library->impl("as_strided", TORCH_FN(as_strided));
  library->impl("as_strided_", TORCH_FN(as_strided_in_place));
  library->impl("_efficientzerotensor", TORCH_FN(zero_tensor));
  library->impl("_reshape_alias", TORCH_FN(reshape_alias));
  library->impl("unfold", TORCH_FN(unfold));
  library->impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  library->impl("conj_physical.out", TORCH_FN(conj_physical_out));
  library->impl("conj_physical_", TORCH_FN(conj_physical_in_place));
  for (const auto key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) {
    auto* lazy = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    lazy->impl("_copy_from", torch::CppFunction::makeFallthrough());
  }
  library->impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library->impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library->impl("kaiser_window", TORCH_FN(kaiser_window_default));
  library->impl("kaiser_window.periodic", TORCH_FN(kaiser_window_periodic));
  library->impl("kaiser_window.beta", TORCH_FN(kaiser_window));
  library->impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace sluice::device
