#include "sluice/device/libtorch/overrides.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <c10/core/Storage.h>
#include <c10/core/StorageImpl.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/serialization/import_read.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "sluice/base/check.h"
#include "sluice/base/error.h"
#include "sluice/base/log.h"
#include "sluice/device/libtorch/view_chains.h"

// LibTorch finds these by name, so they are visible even if everything else is hidden.
#define SLUICE_OVERRIDE __attribute__((visibility("default")))

namespace sluice::device {
namespace {

// Returns the address that a function pointer, or a pointer to a member function that is not virtual, holds
// first (Itanium C++ ABI, 2.3).
template <typename Function>
void* address_of(Function function) {
  void* address = nullptr;
  std::memcpy(&address, &function, sizeof address);
  return address;
}

// Returns the function of LibTorch that `ours` replaces.
template <typename Function>
Function original(Function ours) {
  Dl_info info{};
  SLUICE_CHECK(dladdr(address_of(ours), &info) != 0 && info.dli_sname != nullptr,
               "a replacement has no name");
  void* next = dlsym(RTLD_NEXT, info.dli_sname);
  SLUICE_CHECK(next != nullptr, "this LibTorch has no ", info.dli_sname);
  std::memcpy(&ours, &next, sizeof next);
  return ours;
}

bool is_xla(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == c10::kXLA; }
at::Tensor on_xla(const at::Tensor& tensor) { return tensor.to(at::Device(c10::kXLA, 0)); }

// Sets a flag for a scope.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag), before_(flag) { flag = true; }
  ~Raised() { flag_ = before_; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
  bool before_;
};

thread_local bool naming_storage = false;        // the pickler writes where a tensor's memory is
thread_local bool reading_device_state = false;  // an optimizer of parameters on the device is read

// Moves the tensors of a value that was read on the CPU to the device; they stay the same tensor objects.
void move_to_device(const c10::IValue& value) {
  at::NoGradGuard no_grad;
  std::set<const void*> objects;  // a module may hold one that holds it
  value.visit([&](const c10::IValue& part) {
    if (part.isObject()) return !objects.insert(part.toObjectRef().slots().data()).second;
    if (part.isTensor() && part.toTensor().defined() && part.toTensor().device().is_cpu()) {
      at::Tensor tensor = part.toTensor();
      tensor.set_data(on_xla(tensor));
    }
    return false;
  });
}

// Returns whether LibTorch's unpickler refused an archive because its tensors were on a device of type XLA,
// as PyTorch/XLA writes them.
bool refused_for_device(const c10::Error& error) {
  return std::string_view(error.what_without_backtrace()).find("however got XLA") != std::string_view::npos;
}

}  // namespace

void check_overrides() {
  Dl_info found{}, here{};
  dladdr(address_of(&torch::jit::readArchiveAndTensors), &found);
  dladdr(address_of(&check_overrides), &here);
  if (found.dli_fbase == here.dli_fbase) return;
  base::warn("torch::save and torch::load cannot be used with tensors of xla:0: ", found.dli_fname,
             " is found before Sluice; link Sluice before LibTorch, or use sluice::save and sluice::load");
}

}  // namespace sluice::device

// Archives: written as if from the CPU, so that every LibTorch and Python read them, and read on the CPU.

SLUICE_OVERRIDE void torch::jit::Pickler::pushStorageOfTensor(const at::Tensor& tensor) {
  static const auto next = sluice::device::original(&Pickler::pushStorageOfTensor);
  if (!sluice::device::is_xla(tensor)) return (this->*next)(tensor);
  sluice::device::Raised naming(sluice::device::naming_storage);
  (this->*next)(tensor);
}

SLUICE_OVERRIDE void torch::jit::Pickler::pushString(const std::string& string) {
  static const auto next = sluice::device::original(&Pickler::pushString);
  const bool device = sluice::device::naming_storage && string.starts_with("xla:");
  (this->*next)(device ? std::string("cpu") : string);
}

SLUICE_OVERRIDE c10::IValue torch::jit::readArchiveAndTensors(
    const std::string& archive_name, const std::string& pickle_prefix, const std::string& tensor_prefix,
    std::optional<TypeResolver> type_resolver, std::optional<ObjLoader> obj_loader,
    std::optional<at::Device> device, caffe2::serialize::PyTorchStreamReader& stream_reader,
    c10::TypePtr (*type_parser)(const std::string&),
    std::shared_ptr<DeserializationStorageContext> storage_context) {
  static const auto next = sluice::device::original(&torch::jit::readArchiveAndTensors);
  auto read = [&](std::optional<at::Device> where) {
    return next(archive_name, pickle_prefix, tensor_prefix, type_resolver, obj_loader, where, stream_reader,
                type_parser, storage_context);
  };
  if (device && device->type() != c10::kXLA) return read(device);
  c10::IValue value;
  if (!device) try {
      return read(device);
    } catch (const c10::Error& error) {
      if (!sluice::device::refused_for_device(error)) throw;
    }
  value = read(at::Device(at::kCPU));
  sluice::device::move_to_device(value);
  return value;
}

// LibTorch's reader gives a parameter the memory that was read, on any device; here a parameter on the device
// stays there.
SLUICE_OVERRIDE bool torch::serialize::InputArchive::try_read(const std::string& key, at::Tensor& tensor,
                                                              bool is_buffer) {
  using Read = bool (InputArchive::*)(const std::string&, at::Tensor&, bool);
  static const auto next = sluice::device::original(static_cast<Read>(&InputArchive::try_read));
  const bool stays =
      sluice::device::is_xla(tensor) || (sluice::device::reading_device_state && !tensor.defined());
  const bool known = tensor.defined();
  if (!(this->*next)(key, tensor, is_buffer)) return false;
  if (!stays || sluice::device::is_xla(tensor)) return true;
  at::NoGradGuard no_grad;
  if (known)
    tensor.set_data(sluice::device::on_xla(tensor));
  else
    tensor = sluice::device::on_xla(tensor);
  return true;
}

// An optimizer reads its state with this function.
SLUICE_OVERRIDE bool torch::serialize::InputArchive::try_read(const std::string& key, c10::IValue& value) {
  using Read = bool (InputArchive::*)(const std::string&, c10::IValue&);
  static const auto next = sluice::device::original(static_cast<Read>(&InputArchive::try_read));
  if (!(this->*next)(key, value)) return false;
  if (!sluice::device::reading_device_state) return true;
  if (value.isTensor() && value.toTensor().defined())
    value = sluice::device::on_xla(value.toTensor());
  else if (value.isList())  // a history
    sluice::device::move_to_device(value);
  return true;
}

namespace torch::optim {

SLUICE_OVERRIDE serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  using Read = serialize::InputArchive& (*)(serialize::InputArchive&, Optimizer&);
  static const auto next = sluice::device::original(static_cast<Read>(&operator>>));
  const auto& groups = optimizer.param_groups();
  const bool here = std::any_of(groups.begin(), groups.end(), [](const OptimizerParamGroup& group) {
    return std::any_of(group.params().begin(), group.params().end(), sluice::device::is_xla);
  });
  if (!here) return next(archive, optimizer);
  sluice::device::Raised reading(sluice::device::reading_device_state);
  return next(archive, optimizer);
}

}  // namespace torch::optim

// A view of a view.
SLUICE_OVERRIDE torch::autograd::ViewInfo torch::autograd::ViewInfo::chain(
    const Variable& base, const Variable& tensor, std::unique_ptr<ViewFunc> view_func,
    std::function<Variable(const Variable&)> rev_view_func) const {
  static const auto next = sluice::device::original(&ViewInfo::chain);
  if (!sluice::device::is_xla(tensor))
    return (this->*next)(base, tensor, std::move(view_func), std::move(rev_view_func));
  return sluice::device::short_chain(
      *this, tensor, std::move(view_func), std::move(rev_view_func),
      [&](std::unique_ptr<ViewFunc> function, sluice::device::ReverseView reverse) {
        return (this->*next)(base, tensor, std::move(function), std::move(reverse));
      });
}

// Tensor::is_alias_of compares the memory of storages that are not the same object.
SLUICE_OVERRIDE bool c10::isSharedStorageAlias(const Storage& one, const Storage& other) {
  static const auto next = sluice::device::original(&c10::isSharedStorageAlias);
  return one.device_type() != c10::kXLA && other.device_type() != c10::kXLA && next(one, other);
}

// Raw memory: data_ptr, accessor and similar functions. Storages of the device are made so that each of them
// calls this function.
SLUICE_OVERRIDE void c10::StorageImpl::throw_data_ptr_access_error() const {
  static const auto next = sluice::device::original(&StorageImpl::throw_data_ptr_access_error);
  if (device_type() == c10::kXLA) {
    sluice::throw_error(sluice::Code::kFailedPrecondition,
                        "data_ptr: the tensor lives on xla:0 and has no memory that the host can reach; copy "
                        "it first: tensor.cpu()");
  }
  (this->*next)();
  std::abort();  // the original never returns
}
