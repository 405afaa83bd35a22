// Models that are made without values, because one host could not hold them.
//
//   std::shared_ptr<Net> model;
//   {
//     sluice::WithoutValues scope;
//     model = std::make_shared<Net>();  // its parameters have shapes, and take no memory
//   }
//   sluice::shard(*model);  // or session.place(*model): each device gets its blocks
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice {

// Where the numbers are drawn with which a model starts.
enum class StartNumbers {
  // On the devices, by programs that draw a whole tensor's numbers and keep each device's block: the same
  // bits on one device and over any mesh of the same plugin. This is fast; the CPU draws other numbers.
  kDevice,
  // On the host, one tensor after the other, in the order in which the model's constructor draws them: the
  // same bits as in a model that is made with values.
  kHost,
};

// While it lives, tensors that this thread makes without naming a device have no values: they lie on
// LibTorch's "meta" device, and what a constructor does to them (normal_, kaiming_uniform_, fill_, …) is
// remembered. sluice::shard and Session::place do it later, with what torch::manual_seed had set when the
// scope began, and leave the CPU generator as the constructor would have left it if nothing else has drawn
// from it since. To read such a tensor before is an error of LibTorch's. A scope within another is a part of
// it. Threads: any; a scope is for the thread that made it.
class WithoutValues {
 public:
  explicit WithoutValues(StartNumbers numbers = StartNumbers::kDevice);
  ~WithoutValues();
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

// Returns whether models for the open device are better made without values: its devices share one model, or
// programs are only compiled and nothing has a value. False if no device is open.
bool starts_without_values();

// Returns whether the tensor has no value yet.
inline bool lacks_value(const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta(); }

// Makes `value` the tensor's value, on the value's device. The tensor stays the same object, also where it
// has no value yet. Throws kInvalidArgument for other sizes or another element type.
void give_value(const at::Tensor& tensor, const at::Tensor& value);

}  // namespace sluice
SLUICE_API_END
