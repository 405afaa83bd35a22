// Turns the arguments of a LibTorch operation into the arguments of a row.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/device/program/trace.h"

namespace sluice::device {

enum class ArgumentKind : uint8_t {
  kIgnored,  // layout, device, memory format, pin_memory, generator
  kTensor,
  kTensors,
  kNumber,  // Scalar and float
  kInt,
  kBool,
  kInts,
  kDoubles,
  kText,
  kDType,
};

struct ArgumentRule {
  ArgumentKind kind = ArgumentKind::kIgnored;
  bool constant = false;          // numbers: Row::constants
  bool constant_if_zero = false;  // numbers
  bool constant_if_one = false;   // numbers
};

// The facts that a row needs of one schema, computed once.
struct Signature {
  const ops::Row* row = nullptr;
  std::vector<std::string> names;
  std::vector<ArgumentRule> rules;
  std::vector<size_t> writes;  // arguments of Row::writes
  int generator = -1;          // the index of the generator argument; -1: none
};
Signature make_signature(const ops::Row& row, const c10::FunctionSchema& functional);

// One call that is being recorded.
struct Call {
  InstanceKey key;
  c10::SmallVector<Operand, 8> operands;
  c10::SmallVector<TypeRef, 8> types;
  // The arguments' numbers, by argument; set only for arguments that may become slots.
  c10::SmallVector<Number, 8> numbers;
  bool strided = false;  // some tensor on the device is not row-major
};
// Reads the arguments into the call: records reads of tensors; uploads only complex 0-d host tensors, and
// host tensors inside optional lists (indices). Throws on other host tensors with dimensions. The caller
// holds the trace's lock.
void read_arguments(const Signature& signature, c10::ArrayRef<c10::IValue> arguments, Call& call);
// Fills an instance from the same arguments, if the key is new.
void fill_instance(const Signature& signature, c10::ArrayRef<c10::IValue> arguments, Instance& instance);

}  // namespace sluice::device
