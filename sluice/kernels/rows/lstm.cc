#include "sluice/kernels/rows/lstm.h"

#include <algorithm>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/micro_kernel.h"
#include "sluice/kernels/lanes.h"
#include "sluice/kernels/rows/exponential.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

constexpr size_t kGates = 4;

// Sequences of a thread's part: with fewer, multiplying them waits for the weight.
constexpr size_t kMinRows = 4, kMinRowsOfLargeWeight = 2 * kTileRows;
// What fits into a core's own cache beside the rest.
constexpr size_t kLargeWeight = size_t{3} << 17;  // floats: 1.5 MiB

// Up to so many of L's floats: all of them where `count` says so, else the first ones, the others being 0.
template <typename L>
SLUICE_INLINE void load_some(const float* from, size_t count, L& value) {
  if (count == kFloatsOf<L>) return load(from, value);
  float some[kFloatsOf<L>] = {};
  for (size_t i = 0; i < count; ++i) some[i] = from[i];
  load(some, value);
}
template <typename L>
SLUICE_INLINE void store_some(const L& value, size_t count, float* to) {
  if (count == kFloatsOf<L>) return store(value, to);
  float some[kFloatsOf<L>];
  store(value, some);
  for (size_t i = 0; i < count; ++i) to[i] = some[i];
}

// One step of some hidden units of some sequences: pointers to the first unit of the first one. From a
// sequence to the next it is `hidden` floats, and kGates times as many in `gates`; from a gate to the next,
// `hidden`.
struct Units {
  size_t rows, columns, hidden;
};

struct StepRows : Units {
  const float* before;  // the cells before the step
  float *gates, *cells, *output;
};

template <typename L>
SLUICE_INLINE void advance_lanes(const StepRows& s, size_t column, size_t count) {
  float* const gates = s.gates + column;
  L i, f, g, o, cell;
  load_some(gates, count, i);
  load_some(gates + s.hidden, count, f);
  load_some(gates + 2 * s.hidden, count, g);
  load_some(gates + 3 * s.hidden, count, o);
  load_some(s.before + column, count, cell);
  logistic(i);
  logistic(f);
  tangent(g);
  logistic(o);
  cell = f * cell + i * g;
  store_some(i, count, gates);
  store_some(f, count, gates + s.hidden);
  store_some(g, count, gates + 2 * s.hidden);
  store_some(o, count, gates + 3 * s.hidden);
  store_some(cell, count, s.cells + column);
  tangent(cell);
  store_some(o * cell, count, s.output + column);
}

template <typename L>
SLUICE_INLINE void advance_rows_by(StepRows s) {
  for (size_t row = 0; row < s.rows; ++row) {
    size_t column = 0;
    for (; column + kFloatsOf<L> <= s.columns; column += kFloatsOf<L>)
      advance_lanes<L>(s, column, kFloatsOf<L>);
    if (column < s.columns) advance_lanes<L>(s, column, s.columns - column);
    s.gates += kGates * s.hidden;
    s.before += s.hidden, s.cells += s.hidden, s.output += s.hidden;
  }
}
SLUICE_BY_LANES(advance_rows, (const StepRows& s), (s))

struct GradientRows : Units {
  const float *before, *cells, *grad_output;
  float *gates, *grad_hidden, *grad_cell;  // of the states behind the step; then that of the cell before it
};

template <typename L>
SLUICE_INLINE void retreat_lanes(const GradientRows& s, size_t column, size_t count) {
  float* const gates = s.gates + column;
  L i, f, g, o, before, cell, grad, later, grad_cell;
  load_some(gates, count, i);
  load_some(gates + s.hidden, count, f);
  load_some(gates + 2 * s.hidden, count, g);
  load_some(gates + 3 * s.hidden, count, o);
  load_some(s.before + column, count, before);
  load_some(s.cells + column, count, cell);
  load_some(s.grad_output + column, count, grad);
  load_some(s.grad_hidden + column, count, later);
  load_some(s.grad_cell + column, count, grad_cell);
  tangent(cell);
  grad += later;
  grad_cell += grad * o * (1.f - cell * cell);
  store_some(grad_cell * g * i * (1.f - i), count, gates);
  store_some(grad_cell * before * f * (1.f - f), count, gates + s.hidden);
  store_some(grad_cell * i * (1.f - g * g), count, gates + 2 * s.hidden);
  store_some(grad * cell * o * (1.f - o), count, gates + 3 * s.hidden);
  store_some(grad_cell * f, count, s.grad_cell + column);
}

template <typename L>
SLUICE_INLINE void retreat_rows_by(GradientRows s) {
  for (size_t row = 0; row < s.rows; ++row) {
    size_t column = 0;
    for (; column + kFloatsOf<L> <= s.columns; column += kFloatsOf<L>)
      retreat_lanes<L>(s, column, kFloatsOf<L>);
    if (column < s.columns) retreat_lanes<L>(s, column, s.columns - column);
    s.gates += kGates * s.hidden;
    s.before += s.hidden, s.cells += s.hidden, s.grad_output += s.hidden;
    s.grad_hidden += s.hidden, s.grad_cell += s.hidden;
  }
}
SLUICE_BY_LANES(retreat_rows, (const GradientRows& s), (s))

// What a thread works on: sequences, and blocks of as many hidden units as a tile has columns.
struct Part {
  size_t row, rows, block, blocks;
};

// work(k, part) for each k below `count`, in order, for parts that together are everything. A part may read
// what all others did for smaller k only where it has all hidden units or a step has ended for all.
template <typename Work>
void in_parts(const Lstm& of, size_t count, const Work& work) {
  const auto threads = static_cast<size_t>(threads_of_a_call());
  const size_t blocks = panels_of(of.hidden);
  const bool large = kGates * of.hidden * of.hidden > kLargeWeight;
  if (large && of.batch < threads * kMinRowsOfLargeWeight && blocks > 1) {
    const size_t parts = std::min(threads, blocks);
    for (size_t k = 0; k < count; ++k)
      parallel_for(parts, [&](size_t i) {
        const size_t block = blocks * i / parts;
        work(k, Part{0, of.batch, block, blocks * (i + 1) / parts - block});
      });
    return;
  }
  const size_t parts = std::clamp(of.batch / kMinRows, size_t{1}, threads);
  parallel_for(parts, [&](size_t i) {
    const size_t row = of.batch * i / parts;
    const Part part{row, of.batch * (i + 1) / parts - row, 0, blocks};
    for (size_t k = 0; k < count; ++k) work(k, part);
  });
}

// The place in time of step k of those that are taken.
size_t time_of(const Lstm& of, size_t k) { return of.reverse ? of.steps - 1 - k : k; }

// How many of a part's sequences have step t.
size_t rows_at(const Lstm& of, size_t t, const Part& part) {
  if (of.sizes == nullptr) return part.rows;
  // It is data, and may be anything.
  const float size = of.sizes[t];
  const size_t present = size > 0 ? static_cast<size_t>(std::min(size, static_cast<float>(of.batch))) : 0;
  return std::min(part.rows, present - std::min(present, part.row));
}

// Sizes and places of what belongs to a step of a part.
struct Place {
  size_t state, gates;  // of its first sequence at that step, in floats
};
Place place_of(const Lstm& of, size_t t, const Part& part) {
  const size_t row = t * of.batch + part.row;
  return {row * of.hidden, row * kGates * of.hidden};
}

// For each block of a part: body(its number, its first unit, its units).
template <typename Body>
void for_blocks(const Lstm& of, const Part& part, const Body& body) {
  const size_t width = tile_columns();
  for (size_t block = part.block; block < part.block + part.blocks; ++block)
    body(block, block * width, std::min(width, of.hidden - block * width));
}

void copy_rows(const Lstm& of, const float* from, size_t first_row, size_t rows, size_t column,
               size_t columns, float* to) {
  for (size_t row = first_row; row < rows; ++row)
    std::copy_n(from + row * of.hidden + column, columns, to + row * of.hidden + column);
}

}  // namespace

void lstm(const Lstm& of, const float* hidden, const float* cell, float* gates, float* output, float* cells) {
  // The weight of a block's gates, one panel each.
  const size_t panel_step = panel_floats(of.hidden), panels = kGates * panels_of(of.hidden);
  const Scratch packed(panels * panel_step * sizeof(float));
  parallel_for(panels, [&](size_t i) {
    const MatrixView of_gate{of.weight + i % kGates * of.hidden * of.hidden, of.hidden, true};
    pack_panel(of_gate, of.hidden, of.hidden, i / kGates, packed.floats() + i * panel_step);
  });
  in_parts(of, of.steps, [&](size_t k, const Part& part) {
    const size_t t = time_of(of, k), rows = rows_at(of, t, part);
    const Place at = place_of(of, t, part);
    const size_t previous = k > 0 ? place_of(of, time_of(of, k - 1), part).state : part.row * of.hidden;
    const float* const hidden_before = (k > 0 ? output : hidden) + previous;
    const float* const cells_before = (k > 0 ? cells : cell) + previous;
    for_blocks(of, part, [&](size_t block, size_t column, size_t columns) {
      float* const to = gates + at.gates + column;
      for (size_t gate = 0; gate < kGates && rows > 0; ++gate)
        multiply_packed({rows, columns, of.hidden}, {hidden_before, of.hidden, false},
                        packed.floats() + (block * kGates + gate) * panel_step, panel_step,
                        to + gate * of.hidden, kGates * of.hidden, true);
      advance_rows({{rows, columns, of.hidden},
                    cells_before + column,
                    to,
                    cells + at.state + column,
                    output + at.state + column});
      copy_rows(of, hidden_before, rows, part.rows, column, columns, output + at.state);
      copy_rows(of, cells_before, rows, part.rows, column, columns, cells + at.state);
    });
  });
}

void lstm_gradient(const Lstm& of, const LstmGradient& tensors) {
  const size_t all_gates = kGates * of.hidden, panel_step = panel_floats(all_gates);
  const Scratch packed(panels_of(of.hidden) * panel_step * sizeof(float));
  parallel_for(panels_of(of.hidden), [&](size_t i) {
    pack_panel({of.weight, of.hidden, false}, all_gates, of.hidden, i, packed.floats() + i * panel_step);
  });
  // A step's gates first, then the state before it by all of them: with the gates of the next step to come,
  // so that threads meet but once.
  const auto through_weight = [&](size_t t, const Part& part) {
    const size_t rows = rows_at(of, t, part);
    const float* const of_gates = tensors.gates + place_of(of, t, part).gates;
    float* const to = tensors.grad_hidden + part.row * of.hidden;
    for_blocks(of, part, [&](size_t block, size_t column, size_t columns) {
      multiply_packed({rows, columns, all_gates}, {of_gates, all_gates, false},
                      packed.floats() + block * panel_step, panel_step, to + column, of.hidden, false);
    });
  };
  const auto through_gates = [&](size_t k, const Part& part) {
    const size_t t = time_of(of, k), rows = rows_at(of, t, part), first = part.row * of.hidden;
    const Place at = place_of(of, t, part);
    const float* const before =
        k > 0 ? tensors.cells + place_of(of, time_of(of, k - 1), part).state : tensors.cell + first;
    for_blocks(of, part, [&](size_t, size_t column, size_t columns) {
      float* const gates = tensors.gates + at.gates + column;
      float* const grad_hidden = tensors.grad_hidden + first + column;
      const float* const grad_output = tensors.grad_output + at.state + column;
      retreat_rows({{rows, columns, of.hidden},
                    before + column,
                    tensors.cells + at.state + column,
                    grad_output,
                    gates,
                    grad_hidden,
                    tensors.grad_cell + first + column});
      for (size_t row = rows; row < part.rows; ++row) {
        for (size_t gate = 0; gate < kGates; ++gate)
          std::fill_n(gates + row * all_gates + gate * of.hidden, columns, 0.f);
        for (size_t i = 0; i < columns; ++i)
          grad_hidden[row * of.hidden + i] += grad_output[row * of.hidden + i];
      }
    });
  };
  in_parts(of, of.steps + 1, [&](size_t i, const Part& part) {
    if (i > 0) through_weight(time_of(of, of.steps - i), part);
    if (i < of.steps) through_gates(of.steps - 1 - i, part);
  });
}

bool has_lstm() { return has_lanes8(); }

namespace {

// What both calls begin with: operand 0 [steps, batch, 4 hidden] and operand 1, the weight; and operand
// `sizes`, if it is there.
base::Result<Lstm> read_lstm(const Call& call, size_t sizes) {
  if (!has_lstm()) return tl::unexpected<Error>(no_kernel("recurrent layer").error());
  Lstm lstm{};
  SLUICE_TRY(lstm.reverse, call.flag("reverse"));
  SLUICE_OK(call.filled_operand(1, "weight", 2, 2));
  SLUICE_TRY(const Tensor weight, call.operand(1, "weight"));
  lstm.hidden = weight.dim(1);
  const auto gates = static_cast<int64_t>(kGates * lstm.hidden);
  SLUICE_OK(call.operand(1, "weight", stablehlo::Dims{gates, weight.dims[1]}));
  SLUICE_TRY(const Tensor steps, call.filled_operand(0, "gates", 3, 3));
  SLUICE_OK(call.operand(0, "gates", stablehlo::Dims{steps.dims[0], steps.dims[1], gates}));
  lstm.steps = steps.dim(0), lstm.batch = steps.dim(1), lstm.weight = weight.data;
  if (call.num_operands() > sizes) {
    SLUICE_TRY(const Tensor of_steps, call.operand(sizes, "batch_sizes", steps.dims.first(1)));
    lstm.sizes = of_steps.data;
  }
  SLUICE_OK(call.in_place(0, 0));
  return lstm;
}

stablehlo::Dims dims_of(std::initializer_list<size_t> extents) {
  return stablehlo::Dims(extents.begin(), extents.end());
}

}  // namespace

base::Status call_lstm(const Call& call) {
  SLUICE_OK(call.takes({{4, 3}, {5, 3}}));
  SLUICE_TRY(const Lstm of, read_lstm(call, 4));
  const stablehlo::Dims of_state = dims_of({of.batch, of.hidden}),
                        of_steps = dims_of({of.steps, of.batch, of.hidden});
  SLUICE_TRY(const Tensor hidden, call.operand(2, "hidden", of_state));
  SLUICE_TRY(const Tensor cell, call.operand(3, "cell", of_state));
  SLUICE_TRY(const Tensor gates, call.result(0, "gates"));
  SLUICE_TRY(const Tensor output, call.result(1, "output", of_steps));
  SLUICE_TRY(const Tensor cells, call.result(2, "cells", of_steps));
  lstm(of, hidden.data, cell.data, gates.data, output.data, cells.data);
  return {};
}

base::Status call_lstm_gradient(const Call& call) {
  SLUICE_OK(call.takes({{7, 3}, {8, 3}}));
  SLUICE_TRY(const Lstm of, read_lstm(call, 7));
  const stablehlo::Dims of_state = dims_of({of.batch, of.hidden}),
                        of_steps = dims_of({of.steps, of.batch, of.hidden});
  SLUICE_TRY(const Tensor cell, call.operand(2, "cell", of_state));
  SLUICE_TRY(const Tensor cells, call.operand(3, "cells", of_steps));
  SLUICE_TRY(const Tensor grad_output, call.operand(4, "grad_output", of_steps));
  SLUICE_TRY(const Tensor last_hidden, call.operand(5, "grad_hidden", of_state));
  SLUICE_TRY(const Tensor last_cell, call.operand(6, "grad_cell", of_state));
  SLUICE_TRY(const Tensor gates, call.result(0, "grad_gates"));
  SLUICE_TRY(const Tensor grad_hidden, call.result(1, "grad_hidden", of_state));
  SLUICE_TRY(const Tensor grad_cell, call.result(2, "grad_cell", of_state));
  std::copy_n(last_hidden.data, last_hidden.elements(), grad_hidden.data);
  std::copy_n(last_cell.data, last_cell.elements(), grad_cell.data);
  lstm_gradient(of, {cell.data, cells.data, grad_output.data, gates.data, grad_hidden.data, grad_cell.data});
  return {};
}

}  // namespace sluice::kernels
