#include "sluice/device/storage.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <atomic>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/offsets.h"
#include "sluice/device/program/trace.h"

namespace sluice::device {

namespace {

// Nothing is ever allocated: the DataPtr of a storage on the device is null. LibTorch asks for an allocator
// only to call a storage resizable.
struct NoMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t) override { return {nullptr, c10::Device(c10::kXLA, 0)}; }
  void copy_data(void*, const void*, std::size_t) const override {}
};
NoMemory no_memory;

int64_t numel_of(c10::IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// Returns whether the tensor covers its whole storage once, in any order of dimensions.
bool covers_storage(const c10::TensorImpl& tensor, const LazyStorage& storage) {
  return tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense() &&
         static_cast<size_t>(tensor.numel()) * tensor.itemsize() == storage.nbytes();
}

// Returns the value of the whole storage as an operand; zeros if it was never written.
Operand whole(LazyStorage& storage, c10::ScalarType type, size_t itemsize) {
  Trace& trace = Trace::get();
  if (Watch* watch = Watch::current()) watch->touch(storage);
  switch (storage.state) {
    case LazyStorage::State::kPending:
      return {storage.ref, storage.type, trace.nodes[storage.ref.node].sameness};
    case LazyStorage::State::kData:
      return trace.leaf(storage.data);
    case LazyStorage::State::kLost:
      throw_error(Code::kDataLoss, "the tensor's value was lost when its program failed: " + *storage.lost);
    case LazyStorage::State::kEmpty:
      break;
  }
  const int64_t numel = static_cast<int64_t>(storage.nbytes() / itemsize);
  Operand zeros = record_internal("sluice::zeros", {}, {numel}, to_dtype(type));
  set_pending(storage, zeros);
  return zeros;
}

bool same(c10::IntArrayRef a, c10::IntArrayRef b) { return a.equals(b); }

// Returns whether the tensor is all of a value with these dims that is stored with these strides (empty:
// row-major).
bool is_whole(const c10::TensorImpl& tensor, c10::IntArrayRef dims, c10::IntArrayRef strides) {
  if (tensor.storage_offset() != 0 || !same(tensor.sizes(), dims)) return false;
  return strides.empty() ? tensor.is_contiguous() : same(tensor.strides(), strides);
}

// Returns whether rows of the tensor may be picked: it lives between programs and is not a parameter, or its
// latest operation filled it or wrote a part of it.
bool is_picked_from(const c10::TensorImpl& tensor, Ref value) {
  const LazyStorage& storage = *LazyStorage::of(tensor);
  if (storage.name != 0 || storage.keep_equal) return false;
  if (value.leaf()) return true;
  const std::string_view made_by = Trace::get().nodes[value.node].instance->row->name;
  for (const char* row : {"sluice::view_write", "sluice::zeros", "aten::fill", "aten::zero", "aten::full"})
    if (base::starts_with(made_by, row)) return true;
  return false;
}

// Records a view row of these operands: how the value is stored, and which strided part of it is meant.
Operand record_view(const char* row, c10::ArrayRef<Operand> operands, c10::IntArrayRef strides,
                    const c10::TensorImpl& tensor) {
  std::vector<int64_t> ints;
  ints.push_back(static_cast<int64_t>(strides.size()));
  ints.insert(ints.end(), strides.begin(), strides.end());
  ints.push_back(tensor.dim());
  ints.insert(ints.end(), tensor.sizes().begin(), tensor.sizes().end());
  ints.insert(ints.end(), tensor.strides().begin(), tensor.strides().end());
  ints.push_back(tensor.storage_offset());
  if (tensor.numel() == 0) return record_internal(row, operands, ints);
  Trace& trace = Trace::get();
  Offsets& offsets = Offsets::get();
  const Instance* const known = known_internal(row, operands, ints);
  const Offsets::View view{row,
                           operands[0].type,
                           c10::IntArrayRef(ints).slice(0, ints.size() - 1),
                           tensor.storage_offset(),
                           operands[0].type->type.numel() / tensor.numel(),
                           is_picked_from(tensor, operands[0].ref),
                           known};
  if (offsets.moves(view)) {
    ints.back() = 0;
    return record_internal(row, operands, ints, stablehlo::DType::kPred, view.offset);
  }
  const Operand result = known != nullptr ? trace.result(trace.add_part(*known, operands, {}), 0)
                                          : record_internal(row, operands, ints);
  offsets.constant_at(view);
  return result;
}

// The value of the whole storage, and its strides there; valid until the storage gets another value.
struct Stored {
  Operand value;
  c10::IntArrayRef strides;
};

// Returns the storage's value with the tensor's element type, which may differ from the type that was
// written: complex numbers seen as pairs of real numbers, the bits of an f32 as an i32.
Stored stored_as(const c10::TensorImpl& tensor, LazyStorage& storage) {
  const auto type = c10::typeMetaToScalarType(tensor.dtype());
  const Operand value = whole(storage, type, tensor.itemsize());
  if (value.type->scalar_type == type) return {value, storage.strides};
  return {record_internal("sluice::as_type", value, storage.strides, to_dtype(type)), {}};
}

}  // namespace

namespace {
std::atomic<uint64_t> last_serial = 0;
}
uint64_t LazyStorage::next_serial() { return last_serial.load(std::memory_order_relaxed) + 1; }

LazyStorage::LazyStorage(size_t bytes)
    : c10::StorageImpl(use_byte_size_t(), static_cast<int64_t>(bytes),
                       c10::DataPtr(nullptr, c10::Device(c10::kXLA, 0)), &no_memory, /*resizable=*/true),
      serial(last_serial.fetch_add(1, std::memory_order_relaxed) + 1) {
  // The message for code that asks for its memory is in overrides.cc.
  release_data_and_set_meta_custom_data_ptr_error_msg_(std::nullopt);
}

void LazyStorage::release_resources() {
  if (state == State::kPending) {
    TraceLock lock = lock_trace();
    if (state == State::kPending) Trace::get().unlink(*this);
  }
  state = State::kEmpty;
  data.reset();
  c10::StorageImpl::release_resources();
}

LazyStorage::~LazyStorage() { release_resources(); }

at::Tensor make_empty(c10::IntArrayRef sizes, c10::ScalarType type) {
  const auto meta = c10::scalarTypeToTypeMeta(type);
  auto storage = c10::make_intrusive<LazyStorage>(static_cast<size_t>(numel_of(sizes)) * meta.itemsize());
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                         c10::DispatchKeySet(c10::DispatchKey::XLA), meta);
  if (sizes.size() != 1 || sizes[0] != 0) tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor make_tensor(const Operand& value, c10::IntArrayRef strides) {
  at::Tensor tensor = make_empty(value.type->type.dims, value.type->scalar_type);
  if (!strides.empty()) tensor.unsafeGetTensorImpl()->set_sizes_and_strides(value.type->type.dims, strides);
  set_pending(*LazyStorage::of(tensor), value,
              tensor.is_contiguous() ? std::vector<int64_t>() : strides.vec());
  return tensor;
}

at::Tensor make_tensor(DataPtr data) {
  at::Tensor tensor = make_empty(data->type->type.dims, data->type->scalar_type);
  set_data(*LazyStorage::of(tensor), std::move(data));
  return tensor;
}

namespace {

// Applies LibTorch's lazy conjugation and negation between the storage's value and the tensor's, both ways.
Operand with_lazy_bits(const at::Tensor& tensor, Operand value) {
  if (tensor.is_conj()) value = record_internal("sluice::conjugate", value, {});
  if (tensor.is_neg()) value = record_internal("sluice::negate", value, {});
  return value;
}

}  // namespace

Operand read(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  LazyStorage& storage = *LazyStorage::of(impl);
  if (storage.name != 0) Trace::get().layer = storage.name;
  const auto [value, strides] = stored_as(impl, storage);
  if (is_whole(impl, value.type->type.dims, strides)) return with_lazy_bits(tensor, value);
  return with_lazy_bits(tensor, record_view("sluice::view", value, strides, impl));
}

void write(const at::Tensor& tensor, const Operand& seen) {
  const Operand value = with_lazy_bits(tensor, seen);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  LazyStorage& storage = *LazyStorage::of(impl);
  if (storage.name != 0) Trace::get().layer = storage.name;
  if (covers_storage(impl, storage)) {
    set_pending(storage, value, impl.is_contiguous() ? std::vector<int64_t>() : impl.strides().vec());
    return;
  }
  if (impl.numel() == 0) return;
  const auto [held, strides] = stored_as(impl, storage);
  set_pending(storage, record_view("sluice::view_write", {held, value}, strides, impl), strides.vec());
}

void write(const at::Tensor& tensor, DataPtr data) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  LazyStorage& storage = *LazyStorage::of(impl);
  const bool plain = covers_storage(impl, storage) && !tensor.is_conj() && !tensor.is_neg();
  const bool checked = storage.keep_equal && data->sameness != Sameness::kGlobal;
  if (!plain || checked || Watch::current() != nullptr) return write(tensor, Trace::get().leaf(data));
  set_data(storage, std::move(data), impl.is_contiguous() ? std::vector<int64_t>() : impl.strides().vec());
}

DataPtr data_of(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const LazyStorage& storage = *LazyStorage::of(impl);
  if (storage.state != LazyStorage::State::kData || Watch::current() != nullptr || tensor.is_conj() ||
      tensor.is_neg() || storage.data->type->scalar_type != c10::typeMetaToScalarType(tensor.dtype()))
    return {};
  return is_whole(impl, storage.data->type->type.dims, storage.strides) ? storage.data : DataPtr();
}

void copy_value(const at::Tensor& to, const at::Tensor& from) {
  Operand value = read(from);
  const auto dtype = to_dtype(to.scalar_type());
  if (value.type->type.dtype != dtype) value = record_internal("sluice::convert", value, {}, dtype);
  if (!same(value.type->type.dims, to.sizes()))
    value = record_internal("sluice::broadcast", value, to.sizes());
  write(to, value);
}

void set_data(LazyStorage& storage, DataPtr data, std::vector<int64_t> strides) {
  if (Watch* watch = Watch::current()) watch->takes(storage, *data);
  if (storage.state == LazyStorage::State::kPending) Trace::get().unlink(storage);
  storage.state = LazyStorage::State::kData;
  storage.type = data->type;
  if (data->name == 0) data->name = storage.name != 0 ? storage.name : storage.label;
  storage.data = std::move(data);
  storage.strides = std::move(strides);
  storage.replaced_leaf = LazyStorage::kNoLeaf;
}

void set_pending(LazyStorage& storage, const Operand& value, std::vector<int64_t> strides) {
  Trace& trace = Trace::get();
  if (storage.keep_equal && value.sameness != Sameness::kGlobal) {
    throw_error(
        Code::kFailedPrecondition,
        base::str("the parameter '", Names::name(storage.name),
                  "' would get a value that differs between the replicas (", since(trace.origin(value.ref)),
                  "): its gradient was not averaged. Update it by session.step(optimizer), call "
                  "session.reduce_gradients(parameters) before optimizer.step(), or average what you write "
                  "with sluice::mean"));
  }
  if (Watch* watch = Watch::current()) watch->touch(storage, /*replaced=*/true);
  // Existing data is shared, without any computation.
  if (value.ref.leaf()) return set_data(storage, trace.leaves[value.ref.node], std::move(strides));
  if (storage.state != LazyStorage::State::kPending) {
    storage.replaced_leaf =
        storage.state == LazyStorage::State::kData && storage.data->leaf_trace == trace.number
            ? storage.data->leaf
            : LazyStorage::kNoLeaf;
    storage.data.reset();
    storage.state = LazyStorage::State::kPending;
    trace.link(storage);
  }
  storage.ref = value.ref;
  storage.type = value.type;
  storage.strides = std::move(strides);
}

}  // namespace sluice::device
