// What a model's constructor did to tensors without values (start/without_values.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/device/start/without_values.h"

namespace sluice::device {

// The operations of one scope, in their order. Recorded by one thread; all else needs no other thread to
// record.
class StartTape {
 public:
  explicit StartTape(StartNumbers numbers);

  StartNumbers numbers() const { return numbers_; }
  // Records a call. `arguments` are those before the call.
  void record(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments,
              c10::ArrayRef<c10::IValue> results);
  // The scope ends.
  void close();
  // Returns whether a tensor that it has recorded still exists and has no value.
  bool is_needed() const;
  bool knows(const at::Tensor& tensor) const { return numbers_of_.count(tensor.unsafeGetTensorImpl()) > 0; }
  // Returns whether something wrote to the tensor after the scope, which LibTorch then ignored.
  bool was_written(const at::Tensor& tensor) const;
  // The state of LibTorch's CPU generator when the scope began.
  const at::Tensor& random_state() const { return before_; }

  // Makes the calls on a device and passes each of these tensors with its value on, as soon as no further
  // call changes it. Only values that are still used exist meanwhile.
  void run(const std::vector<at::Tensor>& wanted, at::Device device,
           const std::function<void(const at::Tensor& tensor, const at::Tensor& value)>& take) const;

 private:
  // An argument or a result: a value, or the numbers of recorded tensors.
  struct Slot {
    c10::IValue value;
    std::vector<uint32_t> tensors = {};
    bool is_list = false;
  };
  struct Step {
    c10::OperatorHandle op;
    std::vector<Slot> arguments, results;
  };
  struct Known {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;  // keeps its address its own
    c10::Storage storage;  // without memory; tensors that share it are views of one value
    uint32_t version = 0;  // LibTorch's count of writes when the scope ended
  };

  uint32_t number_of(const at::Tensor& tensor);
  // LibTorch does not show calls of set_data(), as in Module::clone(). Gives a tensor the number of the
  // recorded tensor whose storage it has since then.
  void follow_set_data(const at::Tensor& tensor);
  Slot slot_of(const c10::IValue& value);
  // Returns for each storage's first tensor the last step that uses the storage.
  std::vector<size_t> last_uses() const;

  StartNumbers numbers_;
  at::Tensor before_, after_;  // states of the CPU generator
  std::vector<Step> steps_;
  std::vector<Known> known_;
  std::unordered_map<const c10::TensorImpl*, uint32_t> numbers_of_;
};

// Draws the values of these tensors, which lack one, as their constructors chose: on the host, or on
// `device` if the scope said so. `take` gets each of them. Names are for errors: kFailedPrecondition if
// nothing says how a tensor begins. With several processes all of them make the call; they must have the same
// seed.
void draw_start(const std::vector<std::pair<std::string, at::Tensor>>& wanted, at::Device device,
                const std::function<void(const at::Tensor& tensor, const at::Tensor& value)>& take);

}  // namespace sluice::device
