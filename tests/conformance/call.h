// A sample's arguments as LibTorch values, and calls of the dispatcher with them on any device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/sample.h"

namespace sluice::conformance {

// How the tensor arguments look at their memory.
enum class View { kPlain, kTransposed, kSliced, kExpanded };
const char* view_name(View view);

// The element types of one run of a sample ("f32", "i64").
struct RunTypes {
  std::string floating, integer;
};
at::ScalarType scalar_type(const std::string& name);

// An argument: a value that is the same everywhere, or tensors by their number in Inputs::tensors.
struct Planned {
  enum class Kind { kValue, kFloatType, kTensor, kTensors, kOptionalTensors };
  std::string name;
  Kind kind = Kind::kValue;
  c10::IValue value;
  std::vector<int> tensors;  // -1 for an absent one
};

// A tensor argument: its memory on the host, and the view of it that is passed.
struct TensorInput {
  at::Tensor base;
  View view = View::kPlain;
  std::vector<int64_t> sizes;
  bool differentiable = true;  // LibTorch refuses gradients of some arguments (running statistics)
};

struct Inputs {
  RunTypes types;
  std::vector<Planned> arguments;
  std::vector<TensorInput> tensors;
  uint64_t seed = 0;
};

// The inputs of a sample for a schema; throws SampleError when they do not fit it. Same sample, same numbers.
Inputs make_inputs(const Sample& sample, const c10::FunctionSchema& schema, const RunTypes& types, View view);

// What a call gave. Tensors are on the device of the call until they are brought to the host.
struct Outcome {
  std::string error;           // the call was refused
  std::string gradient_error;  // the backward pass was refused
  std::vector<at::Tensor> results;
  std::vector<at::Tensor> gradients;  // of the floating tensor arguments; empty when there are none to be had
  std::vector<at::Tensor> bases;      // the arguments' memory after the call
  bool same_tensor = true;            // in-place and out forms: the tensor passed is the tensor returned
};

struct CallOptions {
  at::Device device = at::kCPU;
  bool wide = false;  // f16 and bf16 inputs as f64
  bool gradients = false;
  // Brings the memory of the argument of this number to the device; empty: to(device).
  std::function<at::Tensor(size_t number, const at::Tensor& host)> place = {};
};

using Op = c10::OperatorHandle;

// Finds out by a call on the CPU which arguments LibTorch refuses gradients of.
void probe_gradients(const Op& op, Inputs& inputs);

// Calls a functional (or any) schema.
Outcome call(const Op& op, const Inputs& inputs, const CallOptions& options);
// Calls an in-place schema; the result is its first argument.
Outcome call_in_place(const Op& op, const Inputs& inputs, const CallOptions& options);
// Calls an out schema with outputs of these tensors' types, empty or (`shaped`) of their shapes.
Outcome call_out(const Op& op, const Inputs& inputs, const CallOptions& options,
                 const std::vector<at::Tensor>& like, bool shaped);

// The operator of this name ("aten::add.Tensor").
std::optional<Op> find_op(const std::string& name);
// Its in-place and out forms, matched by the schema.
std::optional<Op> find_in_place(const Op& op);
std::optional<Op> find_out(const Op& op);

}  // namespace sluice::conformance
