// What a recorded call of a captured function was: the programs that it launched, where their arguments came
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
#include "sluice/device/lower.h"
#include "sluice/device/program.h"
#include "sluice/device/storage.h"

namespace sluice::device {

// A storage that a call uses. What does the same in another call has the same number there.
struct CapturedPlace {
  enum class Kind : uint8_t {
    kArgument,  // of the call; these come first, in their order
    kOutside,   // lives before and after it: a weight, the optimizer's state
    kInside,    // made by it
  };
  Kind kind = Kind::kInside;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const LazyStorage* address = nullptr;  // the same, for comparing calls
  // Of a place outside: what it holds when the call begins.
  TypeRef type = nullptr;
  std::vector<int64_t> strides = {};
  Sameness sameness = Sameness::kGlobal;
  bool keep_equal = false;
};

// What a place holds from a program on: one of its results, or what a place (maybe itself) held before it.
struct CapturedStore {
  static constexpr uint32_t kNoResult = 0xffffffff;
  uint32_t place = 0;
  uint32_t result = kNoResult;
  uint32_t from = 0;  // when there is no result
  std::vector<int64_t> strides = {};
  bool operator==(const CapturedStore&) const = default;
};

// A run-time number that is not the same in each call, and where it comes from.
struct CapturedNumber {
  static constexpr uint32_t kRandom = 0xffffffff;
  ScalarClass kind = ScalarClass::kF32;
  uint32_t index = 0;       // among the program's numbers of its class
  uint32_t step = kRandom;  // in Tape::steps; kRandom: the key of a random operation
  uint32_t number = 0;      // of the step's numbers, or of the call's draws
  bool operator==(const CapturedNumber&) const = default;
};

// One program of a call, or none where values only changed their places.
struct CapturedProgram {
  std::shared_ptr<const Program> program;
  std::string boundary;
  std::vector<uint32_t> arguments;  // [parameter]: the place whose value it is
  std::vector<int32_t> aliases;     // as in Plan
  std::vector<ValueFacts> results;
  std::vector<CapturedStore> stores;
  Scalars scalars;  // zeros at those of `numbers`
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
  size_t numbers = 0;                                   // that it passes on
  std::vector<std::pair<uint32_t, double>> fixed = {};  // which of them are constants of the program
  std::vector<uint64_t> state = {};                     // add_state() when the call began
  bool operator==(const CapturedStep&) const = default;
};

struct Tape {
  std::string reason;    // why the call cannot be replayed; "" when it can
  uint64_t opening = 0;  // Runtime::opening
  std::vector<CapturedPlace> places;
  std::vector<std::pair<uint32_t, uint32_t>> equal;  // places outside that begin with one value
  std::vector<CapturedProgram> programs;
  std::vector<CapturedTensor> results;
  std::vector<std::optional<at::Generator>> draws;  // of random keys: the generators; none is the default one
  std::vector<CapturedStep> steps;
  // What else a call does, and host state that steers it, with its value when the call began.
  std::vector<std::function<void()>> after;
  std::vector<std::pair<std::function<int64_t()>, int64_t>> guards;
};

// "" when both calls are replayed alike, else in what the second differs first.
std::string difference(const Tape& before, const Tape& now);

}  // namespace sluice::device
