// The storage behind every tensor on the device, and reading and writing tensors through their strides.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/device/value.h"

namespace sluice::device {

// A StorageImpl without memory of its own: it holds a value. All fields belong to the trace's lock.
//
// The value covers the whole storage; `strides` says how (empty: row-major). A storage that was never written
// reads as zeros. The members that each read uses come first, next to each other.
struct LazyStorage : c10::StorageImpl {
  explicit LazyStorage(size_t bytes);
  ~LazyStorage() override;
  void release_resources() override;

  enum class State : uint8_t { kEmpty, kPending, kData, kLost };
  State state = State::kEmpty;
  bool keep_equal = false;
  uint32_t name = 0;  // the parameter's number in Names; 0: none
  // The value in the current trace, while pending.
  Ref ref;
  TypeRef type = nullptr;  // the type of the value, pending or data
  DataPtr data;
  std::vector<int64_t> strides;  // the strides of the value's dims in the storage; empty: row-major
  // The leaf that held this storage's data before the current trace replaced it: that leaf may be donated.
  static constexpr uint32_t kNoLeaf = 0xffffffff;
  uint32_t replaced_leaf = kNoLeaf;
  // The list of pending storages, in the order in which they became pending.
  LazyStorage* previous = nullptr;
  LazyStorage* next = nullptr;
  LayoutRef layout = nullptr;  // how new values of it lie, if sluice::shard() chose that; null: it did not
  uint64_t serial;             // storages that are made later have larger ones
  uint32_t label = 0;          // like `name`, for a value of no layer: the optimizer's state
  std::shared_ptr<const std::string> lost;  // why the value was lost

  // Returns the next storage's serial. Any thread.
  static uint64_t next_serial();
  static LazyStorage* of(const at::Tensor& tensor) { return of(*tensor.unsafeGetTensorImpl()); }
  static LazyStorage* of(const c10::TensorImpl& tensor) {
    return static_cast<LazyStorage*>(tensor.unsafe_storage().unsafeGetStorageImpl());
  }
};

inline bool on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kXLA;
}

// A value with its type and sameness, as recording needs them.
struct Operand {
  Ref ref;
  TypeRef type = nullptr;
  Sameness sameness = Sameness::kGlobal;
};

// The functions below need the trace's lock.

// Makes a new tensor on the device, row-major, without a value yet.
at::Tensor make_empty(c10::IntArrayRef sizes, c10::ScalarType type);
// Makes a new tensor that holds this value, with these dense strides; empty: row-major.
at::Tensor make_tensor(const Operand& value, c10::IntArrayRef strides = {});
at::Tensor make_tensor(DataPtr data);

// Returns the tensor's value with its own sizes, through its strides.
Operand read(const at::Tensor& tensor);
// Returns the tensor's data if it needs no computation and the trace does not hold it; else null.
DataPtr data_of(const at::Tensor& tensor);
// Makes `value` (of the tensor's sizes and type) the tensor's value; the rest of the storage keeps its
// values.
void write(const at::Tensor& tensor, const Operand& value);
// Writes data that came from the host. The trace holds it only if it has to read it.
void write(const at::Tensor& tensor, DataPtr data);
// Does copy_ between tensors of one device: shares the value if possible.
void copy_value(const at::Tensor& to, const at::Tensor& from);

// Makes this data the storage's value.
void set_data(LazyStorage& storage, DataPtr data, std::vector<int64_t> strides = {});
// Makes this recorded value the storage's value.
void set_pending(LazyStorage& storage, const Operand& value, std::vector<int64_t> strides = {});

}  // namespace sluice::device
