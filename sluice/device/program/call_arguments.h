// The tensors among the arguments of a boxed call: single tensors and lists of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>

namespace sluice::device {

// Calls `visit` with each defined tensor of an argument.
template <typename Visit>
void for_each_tensor(const c10::IValue& argument, const Visit& visit) {
  if (argument.isTensor()) {
    if (argument.toTensor().defined()) visit(argument.toTensor());
  } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
    for (const c10::IValue& item : argument.toListRef())
      if (item.isTensor() && item.toTensor().defined()) visit(item.toTensor());
  }
}

// Returns the argument for a call on another device: `moved(tensor)` replaces each tensor.
template <typename Moved>
c10::IValue on_other_device(const c10::IValue& argument, c10::Device device, const Moved& moved) {
  if (argument.isTensor()) return moved(argument.toTensor());
  if (argument.isDevice()) return device;
  if (argument.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : argument.toTensorList()) list.push_back(moved(tensor));
    return list;
  }
  if (argument.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : argument.toOptionalTensorList())
      list.push_back(tensor ? std::optional(moved(*tensor)) : std::nullopt);
    return list;
  }
  return argument;
}

}  // namespace sluice::device
