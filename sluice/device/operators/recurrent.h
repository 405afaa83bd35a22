// Recurrent networks as loops of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::device {

enum class Cell : uint8_t { kLstm, kGru, kTanh, kRelu };

// LibTorch's arguments of a recurrent network, except its input and states.
struct Network {
  const char* op;
  Cell kind;
  at::TensorList params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }

  template <typename... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    throw_error(Code::kInvalidArgument, base::str(op, ": expected ", pieces...));
  }
};

// The last layer's output, and the last states of all layers: [layers * directions, batch, hidden].
struct Results {
  at::Tensor rows, hidden, cells;
};

// Runs the network over `input`, [steps, batch, features]. Step t has the first batch_sizes[t] sequences;
// `batch_sizes` (int64, on the device) never grows. Where it is undefined, every step has all sequences. The
// output, [steps, batch, …], has any finite values after a sequence's end. `cells` is undefined except for an
// LSTM. Throws sluice::Error for other shapes.
Results run_steps(const Network& network, const at::Tensor& input, const at::Tensor& batch_sizes,
                  const at::Tensor& hidden, const at::Tensor& cells);

}  // namespace sluice::device
