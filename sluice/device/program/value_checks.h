// Errors that only the device can find: a position outside its dimension, a label that is not a class, a
// divisor that is 0; the first NaN, if requested. LibTorch's CPU throws at the call and CUDA asserts; a
// compiled program continues with other values. So each program with such operands has one more small result,
// which reports the first error it found. That result is copied to the host after the launch and checked when
// the host next waits or reads, so nothing waits for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/ops/emit.h"
#include "sluice/pjrt/buffer.h"
#include "sluice/pjrt/event.h"

namespace sluice::device {

// One operand of a program whose values are checked.
struct ValueCheck {
  std::string operation, argument;
  uint32_t layer = 0;  // the layer's number in Names
  int64_t low = 0, high = 0;
  std::optional<int64_t> except;
  ops::Expectation::Rule rule = ops::Expectation::Rule::kRange;
};

// Returns the result of a program with these expectations, in the order of its operations: a vector of two
// s64, the number (from 1) of the first expectation that does not hold and a value that violates it; zeros if
// all hold.
stablehlo::Value emit_value_checks(stablehlo::Builder& b, const std::vector<ops::Expectation>& expectations);

// The error that a check throws. No launch failed, and operations recorded since then are still there.
class WrongValue : public Error {
 public:
  explicit WrongValue(const std::string& message) : Error(Code::kOutOfRange, message) {}
};

// The check results of one launch on their way to the host, for each local replica.
class FoundValues {
 public:
  FoundValues() = default;
  // Starts the copies. Throws sluice::Error.
  explicit FoundValues(std::vector<pjrt::Buffer> results);
  // Waits for the copies; throws WrongValue when a check does not hold. `program` names the launch. A second
  // call does nothing.
  void check(const std::vector<ValueCheck>& checks, const std::string& program);
  bool empty() const { return copied_.empty(); }

 private:
  std::vector<pjrt::Buffer> results_;         // [replica]
  std::vector<std::array<int64_t, 2>> host_;  // [replica]
  std::vector<pjrt::Event> copied_;           // [replica]
};

}  // namespace sluice::device
