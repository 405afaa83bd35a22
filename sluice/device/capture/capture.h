// A function that is recorded a few times and then replayed, so that the host does almost nothing for a step.
//
//   auto step = sluice::capture([&](torch::Tensor image, torch::Tensor label) {
//     auto loss = torch::nn::functional::cross_entropy(model->forward(image), label);
//     loss.backward();
//     session.step(optimizer);
//     return loss;
//   });
//   for (auto& batch : session.feed(train)) session.log_every(20, {{"loss", step(batch.image,
//   batch.label)}});
//
// A replay launches the same programs on the new arguments and on the current values of the tensors outside
// (weights, buffers, the optimizer's state). The optimizer's numbers (learning rate, bias corrections) are
// computed from its options, and random numbers are new ones. Any other C++ code in the function runs only
// when a call is recorded: count, log and step a scheduler outside.
//
// For each combination of the arguments' shapes and types, calls are recorded as they would be without
// capture() until kRecordings calls in a row were the same. After that, one call in `check_every` is recorded
// and must still be the same. If a function does something that a replay cannot do, every call is recorded,
// which is always right, with a warning that gives the reason: a value that the host reads or uploads inside,
// a tensor made inside that is kept outside, numbers that change by a law that capture() does not know,
// random numbers drawn for the host, an optimizer that is stepped neither by session.step nor by
// sluice::step, or an optimizer other than LibTorch's SGD, Adam, AdamW, RMSprop and Adagrad. docs/device.md
// says more.
//
// Arguments are values: writes to them stay inside. Results have no gradients. Call it only on the thread
// that records. The function's optimizers must outlive it. Throws sluice::Error, and everything that the
// function throws.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN

namespace torch::optim {
class Optimizer;
}

namespace sluice {

struct CaptureOptions {
  std::string name = "capture";  // the name in messages, and the name of the cut at the function's end
  // One call in `check_every` is recorded and compared with the replayed ones. 1 records every call, which
  // shows what a function does that capture() does not know of. Otherwise at least 2.
  int check_every = 100;
};

// Does optimizer.step() in a way that a captured function may contain; elsewhere it is the same as
// optimizer.step(). session.step(optimizer) calls it by itself.
void step(torch::optim::Optimizer& optimizer);

namespace device {

// For functions that a captured function may call and that do more than record. While a call is recorded,
// `after` is noted to be called at each replay, and calls are replayed only while `state()` returns its
// present value. At other times it does nothing.
void at_each_replay(std::function<void()> after, std::function<int64_t()> state);
// Notes that the call that is being recorded cannot be replayed; at other times it does nothing.
void refuse_replay(std::string reason);
bool captured_call_is_recorded();

// A captured function, independent of its argument and result types.
class Captured {
 public:
  static constexpr int kRecordings = 3;

  explicit Captured(CaptureOptions options);
  ~Captured();
  Captured(Captured&&) noexcept;
  Captured& operator=(Captured&&) noexcept;

  using Tensors = std::vector<at::Tensor>;
  using Body = c10::function_ref<Tensors(Tensors& arguments)>;
  // `numbers` are the values of the arguments that are not tensors; other values make another variant of the
  // call.
  Tensors call(Tensors arguments, std::vector<uint64_t> numbers, Body body);

  int64_t replays() const;     // the number of calls that were replayed
  int64_t recordings() const;  // the number of calls that were recorded
  // Returns why the latest recorded call cannot be replayed; "" if it can, or if nothing is known yet.
  const std::string& reason() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// Converts the result of a captured function to its tensors, and back.
template <typename Result>
struct CapturedResult;
template <>
struct CapturedResult<at::Tensor> {
  static Captured::Tensors take(at::Tensor result) { return {std::move(result)}; }
  static at::Tensor give(Captured::Tensors all) { return std::move(all.front()); }
};
template <>
struct CapturedResult<std::vector<at::Tensor>> {
  static Captured::Tensors take(std::vector<at::Tensor> result) { return result; }
  static std::vector<at::Tensor> give(Captured::Tensors all) { return all; }
};
template <typename... Types>
struct CapturedResult<std::tuple<Types...>> {
  static_assert((std::is_same_v<Types, at::Tensor> && ...), "a captured function returns tensors");
  static Captured::Tensors take(std::tuple<Types...> result) {
    return std::apply([](auto&&... each) { return Captured::Tensors{std::move(each)...}; },
                      std::move(result));
  }
  static std::tuple<Types...> give(Captured::Tensors all) {
    return [&]<size_t... i>(std::index_sequence<i...>) { return std::tuple<Types...>(std::move(all[i])...); }
    (std::index_sequence_for<Types...>());
  }
};
template <>
struct CapturedResult<std::pair<at::Tensor, at::Tensor>> {
  static Captured::Tensors take(std::pair<at::Tensor, at::Tensor> result) {
    return {std::move(result.first), std::move(result.second)};
  }
  static std::pair<at::Tensor, at::Tensor> give(Captured::Tensors all) {
    return {std::move(all[0]), std::move(all[1])};
  }
};

template <typename Argument>
constexpr bool is_captured_tensor = std::is_same_v<std::remove_cvref_t<Argument>, at::Tensor>;

}  // namespace device

// The function that sluice::capture returns; call it like the original. Arguments are tensors (on the device,
// or on the host, from where they are uploaded) and numbers. A number with another value makes another
// variant, so pass a number that always changes as a tensor without dimensions.
template <typename Function>
class CapturedFunction {
 public:
  CapturedFunction(Function function, CaptureOptions options)
      : function_(std::move(function)), captured_(std::move(options)) {}

  template <typename... Arguments>
  auto operator()(const Arguments&... given) {
    using Result = std::invoke_result_t<Function&, const Arguments&...>;
    device::Captured::Tensors tensors;
    std::vector<uint64_t> numbers;
    (sort(given, tensors, numbers), ...);
    const auto body = [&](device::Captured::Tensors& arguments) -> device::Captured::Tensors {
      size_t next = 0;
      const auto invoke = [&] { return std::apply(function_, std::tuple{value(given, arguments, next)...}); };
      if constexpr (std::is_void_v<Result>) {
        invoke();
        return {};
      } else {
        return device::CapturedResult<Result>::take(invoke());
      }
    };
    auto results = captured_.call(std::move(tensors), std::move(numbers), body);
    if constexpr (!std::is_void_v<Result>) return device::CapturedResult<Result>::give(std::move(results));
  }

  const device::Captured& captured() const { return captured_; }

 private:
  template <typename Argument>
  static void sort(const Argument& given, device::Captured::Tensors& tensors,
                   std::vector<uint64_t>& numbers) {
    static_assert(device::is_captured_tensor<Argument> || std::is_arithmetic_v<Argument>,
                  "a captured function takes tensors and numbers");
    if constexpr (device::is_captured_tensor<Argument>)
      tensors.push_back(given);
    else if constexpr (std::is_floating_point_v<Argument>)
      numbers.push_back(std::bit_cast<uint64_t>(static_cast<double>(given)));
    else
      numbers.push_back(static_cast<uint64_t>(given));
  }
  // The braces of std::tuple{…} evaluate the calls from the first argument to the last.
  template <typename Argument>
  static Argument value(const Argument& given, device::Captured::Tensors& tensors, size_t& next) {
    if constexpr (device::is_captured_tensor<Argument>)
      return std::move(tensors[next++]);
    else
      return given;
  }

  Function function_;
  device::Captured captured_;
};

template <typename Function>
CapturedFunction<Function> capture(Function function, CaptureOptions options = {}) {
  return {std::move(function), std::move(options)};
}

}  // namespace sluice

SLUICE_API_END
