// A row of the table of operations: how one ATen operation becomes StableHLO.
//
// Everything else about the operation derives from its row: the functional, in-place and out variants
// (matched by schema), the result types (the emit function is run only for types), the counters, docs/ops.md
// and the list of test samples.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/ops/emit.h"

namespace sluice::ops {

// Emits the operation; returns one value for each result of the schema (an empty Value for an undefined
// tensor), then one for each name in Row::writes.
using EmitFn = stablehlo::Values (*)(Emit& e);

// Returns the value of a number argument, by its name.
using NumberOf = std::function<double(std::string_view)>;
// Returns which numbers of a call were expected and which were found; "" if they are right.
using CheckNumbers = std::string (*)(const NumberOf& number);

struct Row {
  std::string_view name;  // the functional schema's name and overload: "aten::add.Tensor"
  EmitFn emit;
  // Names of Scalar, float and optional float/Scalar arguments, space-separated, that are constants of the
  // program and not run-time scalars ("exponent"). Arguments of other kinds (int, bool, int[], str,
  // ScalarType) are always constants.
  std::string_view constants = "";
  std::string_view constant_if_zero = "";  // constants only if exactly 0 ("beta")
  std::string_view constant_if_one = "";   // constants only if exactly 1 ("alpha beta")
  // Names of tensor arguments that the operation writes although its schema does not say so (running
  // statistics).
  std::string_view writes = "";
  bool random = false;  // may call Emit::random_state()
  // The operation takes statistics of a batch; over all replicas' batches if the program asks for it
  // (SyncBatchNorm).
  bool statistics = false;
  // Checks the numbers of a call. They are inputs of the program, so the emit function does not see them.
  CheckNumbers numbers = nullptr;
};

// Returns all rows, in the order of their families. Names are unique (checked by a test).
std::span<const Row> rows();
// Returns the row of this name; nullptr if there is no such row.
const Row* find_row(std::string_view name);
// Returns whether the row also supports complex numbers (the list is in complex.cc). If not, a call with
// complex numbers runs on the CPU.
bool takes_complex(const Row& row);
// Returns whether the row also supports float8 (the list is in float8.cc).
bool takes_float8(const Row& row);

}  // namespace sluice::ops
