#include "sluice/kernels/recurrent/recurrent.h"

#include <algorithm>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/recurrent/cells.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

// The fewest sequences of a thread's part: with fewer, multiplying them waits for the weight.
constexpr size_t kMinRows = 4, kMinRowsOfLargeWeight = 2 * kTileRows;
// The largest weight that fits into a core's own cache with the other data.
constexpr size_t kLargeWeight = size_t{3} << 17;  // floats: 1.5 MiB

// A thread's share: sequences, and blocks of hidden units that are as wide as a tile.
struct Part {
  size_t row, rows, block, blocks;
};

// Calls work(k, part) for each k below `count`, in order, for parts that together cover everything. A part
// may read the results of other parts for smaller k only if parts have all hidden units or if a step has
// ended for all.
template <typename Work>
void in_parts(const Recurrent& of, size_t gates, size_t count, const Work& work) {
  const auto threads = static_cast<size_t>(threads_of_a_call());
  const size_t blocks = panels_of(of.hidden);
  const bool large = gates * of.hidden * of.hidden > kLargeWeight;
  if (large && of.batch < threads * kMinRowsOfLargeWeight && blocks > 1) {
    const size_t parts = std::min(threads, blocks);
    return parallel_turns(count, parts, [&](size_t k, size_t i) {
      const size_t block = blocks * i / parts;
      work(k, Part{0, of.batch, block, blocks * (i + 1) / parts - block});
    });
  }
  const size_t parts = std::clamp(of.batch / kMinRows, size_t{1}, threads);
  parallel_for(parts, [&](size_t i) {
    const size_t row = of.batch * i / parts;
    const Part part{row, of.batch * (i + 1) / parts - row, 0, blocks};
    for (size_t k = 0; k < count; ++k) work(k, part);
  });
}

// Returns the position in time of the k-th step to be computed.
size_t time_of(const Recurrent& of, size_t k) { return of.reverse ? of.steps - 1 - k : k; }

// Returns how many of a part's sequences have step t.
size_t rows_at(const Recurrent& of, size_t t, const Part& part) {
  if (of.sizes == nullptr) return part.rows;
  // The size is the caller's data and may have any value.
  const float size = of.sizes[t];
  const size_t present = size > 0 ? static_cast<size_t>(std::min(size, static_cast<float>(of.batch))) : 0;
  return std::min(part.rows, present - std::min(present, part.row));
}

// A block of a part at one step. It begins at at(gates) in a tensor of all steps with that number of adjacent
// gates, at at(1) in the states of all steps, and at initial() in states without steps, such as the first
// ones.
struct Block {
  Units present;  // of the sequences that have the step
  size_t rows;    // all sequences
  size_t column;
  // The row of the first sequence: at this step, in tensors without steps, and at the step before, if there
  // is one.
  size_t row, initial_row, row_before;
  bool is_first;

  size_t at(size_t gates) const { return row * gates * present.hidden + column; }
  size_t initial() const { return initial_row * present.hidden + column; }
  // Returns the block's states at the beginning of the step.
  const float* before(const float* states, const float* first) const {
    return (is_first ? first : states) + row_before * present.hidden + column;
  }

  // Sets x, a tensor of all steps, to 0 for sequences that no longer have the step.
  void clear(float* x, size_t gates) const {
    for (size_t row_of = present.rows; row_of < rows; ++row_of)
      for (size_t gate = 0; gate < gates; ++gate)
        std::fill_n(x + at(gates) + (row_of * gates + gate) * present.hidden, present.columns, 0.f);
  }
  // Copies the states of sequences that no longer have the step.
  void keep(float* states, const float* first) const {
    const float* const from = before(states, first);
    for (size_t row_of = present.rows; row_of < rows; ++row_of)
      std::copy_n(from + row_of * present.hidden, present.columns, states + at(1) + row_of * present.hidden);
  }
};

// Calls body(number, block) for each block of a part at step k.
template <typename Body>
void for_blocks(const Recurrent& of, size_t k, const Part& part, const Body& body) {
  const size_t t = time_of(of, k), present = rows_at(of, t, part), width = tile_columns();
  const size_t before = k > 0 ? time_of(of, k - 1) * of.batch : 0;
  for (size_t block = part.block; block < part.block + part.blocks; ++block) {
    const size_t column = block * width;
    body(block, Block{{present, std::min(width, of.hidden - column), of.hidden},
                      part.rows,
                      column,
                      t * of.batch + part.row,
                      part.row,
                      before + part.row,
                      k == 0});
  }
}

// The destination of the state's product with a gate's weight, for a block.
struct Target {
  float* first;
  size_t step;
  bool add;
};

// Runs all steps: target(block, gate) returns the destination of the previous state's product; then
// step(block) does the rest.
template <typename TargetOf, typename Step>
void forward(const Recurrent& of, size_t gates, const float* first, float* output, const TargetOf& target,
             const Step& step) {
  // The packed weights: one panel for each gate of a block.
  const size_t panel_step = panel_floats(of.hidden), panels = gates * panels_of(of.hidden);
  const Scratch packed(panels * panel_step * sizeof(float));
  parallel_for(panels, [&](size_t i) {
    const MatrixView of_gate{of.weight + i % gates * of.hidden * of.hidden, of.hidden, true};
    pack_panel(of_gate, of.hidden, of.hidden, i / gates, packed.floats() + i * panel_step);
  });
  in_parts(of, gates, of.steps, [&](size_t k, const Part& part) {
    for_blocks(of, k, part, [&](size_t number, const Block& block) {
      const Units& present = block.present;
      const float* const state = block.before(output, first) - block.column;
      for (size_t gate = 0; gate < gates && present.rows > 0; ++gate) {
        const Target to = target(block, gate);
        multiply_packed({present.rows, present.columns, of.hidden}, {state, of.hidden, false},
                        packed.floats() + (number * gates + gate) * panel_step, panel_step, to.first, to.step,
                        to.add);
      }
      step(block);
      block.keep(output, first);
    });
  });
}

// The tensors of every gradient. grad_state: the gradient of what the state adds to the gates, [steps, batch,
// gates * hidden].
struct Gradient {
  size_t gates;
  const float *grad_output, *grad_state;
  float* grad_hidden;
  // Whether step() leaves in grad_hidden the part of the previous state's gradient that does not go through
  // the weight.
  bool add;
};

// Runs all steps backward; step(block) makes the gradients of a step's gates.
template <typename Step>
void backward(const Recurrent& of, const Gradient& gradient, const Step& step) {
  const size_t all_gates = gradient.gates * of.hidden, panel_step = panel_floats(all_gates);
  const Scratch packed(panels_of(of.hidden) * panel_step * sizeof(float));
  parallel_for(panels_of(of.hidden), [&](size_t i) {
    pack_panel({of.weight, of.hidden, false}, all_gates, of.hidden, i, packed.floats() + i * panel_step);
  });
  // Computes a step's gates first, then from all of them the state before it, in the same turn as the gates
  // of the next step, so that threads meet only once a step.
  const auto through_weight = [&](size_t number, const Block& block) {
    const Units& present = block.present;
    multiply_packed({present.rows, present.columns, all_gates},
                    {gradient.grad_state + block.at(gradient.gates) - block.column, all_gates, false},
                    packed.floats() + number * panel_step, panel_step, gradient.grad_hidden + block.initial(),
                    of.hidden, gradient.add);
  };
  const auto through_gates = [&](size_t, const Block& block) {
    step(block);
    const float* const grad_output = gradient.grad_output + block.at(1);
    float* const grad_hidden = gradient.grad_hidden + block.initial();
    for (size_t row = block.present.rows; row < block.rows; ++row)
      for (size_t i = 0; i < block.present.columns; ++i)
        grad_hidden[row * of.hidden + i] += grad_output[row * of.hidden + i];
  };
  in_parts(of, gradient.gates, of.steps + 1, [&](size_t i, const Part& part) {
    if (i > 0) for_blocks(of, of.steps - i, part, through_weight);
    if (i < of.steps) for_blocks(of, of.steps - 1 - i, part, through_gates);
  });
}

}  // namespace

void lstm(const Recurrent& of, const Lstm& x) {
  const auto target = [&](const Block& block, size_t gate) {
    return Target{x.gates + block.at(4) + gate * of.hidden, 4 * of.hidden, true};
  };
  forward(of, 4, x.hidden, x.output, target, [&](const Block& block) {
    take(LstmStep{block.present, block.before(x.cells, x.cell), x.gates + block.at(4), x.cells + block.at(1),
                  x.output + block.at(1)});
    block.keep(x.cells, x.cell);
  });
}

void lstm_gradient(const Recurrent& of, const LstmGradient& x) {
  backward(of, {4, x.grad_output, x.gates, x.grad_hidden, false}, [&](const Block& block) {
    take(LstmGradientStep{block.present, block.before(x.cells, x.cell), x.cells + block.at(1),
                          x.grad_output + block.at(1), x.grad_hidden + block.initial(), x.gates + block.at(4),
                          x.grad_cell + block.initial()});
    block.clear(x.gates, 4);
  });
}

void gru(const Recurrent& of, const Gru& x) {
  const auto target = [&](const Block& block, size_t gate) {
    const size_t place = gate < 2 ? gate : 3;
    return Target{x.activations + block.at(4) + place * of.hidden, 4 * of.hidden, false};
  };
  forward(of, 3, x.hidden, x.output, target, [&](const Block& block) {
    take(GruStep{block.present, block.before(x.output, x.hidden), x.gates + block.at(3),
                 x.bias + block.column, x.activations + block.at(4), x.output + block.at(1)});
    block.clear(x.activations, 4);
  });
}

void gru_gradient(const Recurrent& of, const GruGradient& x) {
  backward(of, {3, x.grad_output, x.grad_state, x.grad_hidden, true}, [&](const Block& block) {
    take(GruGradientStep{block.present, block.before(x.output, x.hidden), x.activations + block.at(4),
                         x.grad_output + block.at(1), x.grad_input + block.at(3), x.grad_state + block.at(3),
                         x.grad_hidden + block.initial()});
    block.clear(x.grad_input, 3);
    block.clear(x.grad_state, 3);
  });
}

void rnn(const Recurrent& of, const Rnn& x) {
  const auto target = [&](const Block& block, size_t) {
    return Target{x.output + block.at(1), of.hidden, true};
  };
  forward(of, 1, x.hidden, x.output, target, [&](const Block& block) {
    take(RnnStep{block.present, x.output + block.at(1), x.relu});
  });
}

void rnn_gradient(const Recurrent& of, const RnnGradient& x) {
  backward(of, {1, x.grad_output, x.grad_gates, x.grad_hidden, false}, [&](const Block& block) {
    take(RnnGradientStep{block.present, x.output + block.at(1), x.grad_output + block.at(1),
                         x.grad_hidden + block.initial(), x.grad_gates + block.at(1), x.relu});
    block.clear(x.grad_gates, 1);
  });
}

bool has_recurrent() { return has_lanes8(); }

}  // namespace sluice::kernels
