// The record of one call of a captured function: the programs that it launched, where their arguments came
// from, and where their results went.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/device/capture/step_numbers.h"
#include "sluice/device/program/lower.h"
#include "sluice/device/program/program.h"
#include "sluice/device/storage.h"

namespace sluice::device {

// A storage that a call uses. A storage with the same role in another call has the same number there.
struct CapturedPlace {
  enum class Kind : uint8_t {
    kArgument,  // an argument of the call; these come first, in their order
    kOutside,   // lives before and after the call: a weight, the optimizer's state
    kInside,    // made by the call
  };
  Kind kind = Kind::kInside;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const LazyStorage* address = nullptr;  // `storage`, for comparing calls
  // For a place outside: its value when the call begins.
  TypeRef type = nullptr;
  std::vector<int64_t> strides = {};
  Sameness sameness = Sameness::kGlobal;
  LayoutRef layout = nullptr;
  bool keep_equal = false;
};

// The value of a place after a program: a result of it, or the earlier value of a place (maybe the same one).
struct CapturedStore {
  static constexpr uint32_t kNoResult = 0xffffffff;
  uint32_t place = 0;
  uint32_t result = kNoResult;
  uint32_t from = 0;  // the place that the value comes from, if it is not a result
  std::vector<int64_t> strides = {};
  bool operator==(const CapturedStore&) const = default;
};

// A run-time number that differs between calls, and where it comes from.
struct CapturedNumber {
  static constexpr uint32_t kRandom = 0xffffffff;
  ScalarClass kind = ScalarClass::kF32;
  uint32_t index = 0;       // among the program's numbers of its class
  uint32_t step = kRandom;  // index in Tape::steps; kRandom: the number is the key of a random operation
  uint32_t number = 0;      // index in the step's numbers, or in the call's draws
  bool operator==(const CapturedNumber&) const = default;
};

// One program of a call; null if values only changed their places.
struct CapturedProgram {
  std::shared_ptr<const Program> program;
  std::string boundary;
  std::vector<uint32_t> arguments;  // [parameter]: the place whose value it is
  std::vector<int32_t> aliases;     // as in Plan
  std::vector<ValueFacts> results;
  std::vector<CapturedStore> stores;
  Scalars scalars;  // zeros in place of `numbers`
  std::vector<CapturedNumber> numbers;
  // [class][number]: the operation and its layer, for messages.
  std::vector<Origin> owners[kScalarClasses];
};

// A tensor that the function returns.
struct CapturedTensor {
  bool defined = false;
  uint32_t place = 0;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  at::ScalarType type = at::kFloat;
  bool operator==(const CapturedTensor&) const = default;
};

// An optimizer's step inside the function.
struct CapturedStep {
  OptimizerStep step;
  std::vector<uint8_t> branches = {};
  size_t numbers = 0;                                   // the number of numbers that the step uses
  std::vector<std::pair<uint32_t, double>> fixed = {};  // the numbers of the step that are constants of the
                                                        // program
  std::vector<uint64_t> state = {};                     // add_state() when the call began
  bool operator==(const CapturedStep&) const = default;
};

struct Tape {
  std::string reason;    // why the call cannot be replayed; "" when it can
  uint64_t opening = 0;  // Runtime::opening
  std::vector<CapturedPlace> places;
  std::vector<std::pair<uint32_t, uint32_t>> equal;  // places outside that begin with the same value
  std::vector<CapturedProgram> programs;
  std::vector<CapturedTensor> results;
  std::vector<std::optional<at::Generator>> draws;  // the generators of random keys, in order; none: the
                                                    // default one
  std::vector<CapturedStep> steps;
  // Other actions of a call, and host state that controls it, with its value when the call began.
  std::vector<std::function<void()>> after;
  std::vector<std::pair<std::function<int64_t()>, int64_t>> guards;
};

// Returns "" if both calls are replayed alike, else the first difference of the second.
std::string difference(const Tape& before, const Tape& now);

}  // namespace sluice::device
