#include "sluice/kernels/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

enum class Cell : uint8_t { kLstm, kGru, kTanh, kRelu };
size_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

struct Size {
  size_t steps, batch, hidden;
  bool reverse = false;
  Floats sizes = {};

  size_t state() const { return batch * hidden; }
  size_t states() const { return steps * state(); }
  size_t time(size_t k) const { return reverse ? steps - 1 - k : k; }
  bool present(size_t t, size_t row) const { return sizes.empty() || static_cast<float>(row) < sizes[t]; }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double dot(const Floats& a, const Doubles& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.);
}

// What a layer reads: in double precision, so that a small step along a direction shows the derivative.
struct Inputs {
  Doubles gates, weight, hidden, cell, bias;

  std::vector<Doubles*> all() { return {&gates, &weight, &hidden, &cell, &bias}; }
};

// A layer by its definition, one unit after the other.
struct Plain {
  Plain(Cell kind, const Size& size, const Inputs& in)
      : output(size.states()), cells(size.states()), last_hidden(in.hidden), last_cell(in.cell) {
    for (size_t k = 0; k < size.steps; ++k) {
      const size_t t = size.time(k);
      const Doubles before = last_hidden;
      for (size_t row = 0; row < size.batch; ++row)
        for (size_t unit = 0; unit < size.hidden; ++unit) {
          const size_t at = row * size.hidden + unit;
          if (size.present(t, row)) advance(kind, size, in, before, t, row, unit);
          output[t * size.state() + at] = last_hidden[at];
          cells[t * size.state() + at] = last_cell[at];
        }
    }
  }

  void advance(Cell kind, const Size& size, const Inputs& in, const Doubles& before, size_t t, size_t row,
               size_t unit) {
    const size_t gates = gates_of(kind);
    double of_input[4], of_state[4] = {};
    for (size_t gate = 0; gate < gates; ++gate) {
      of_input[gate] = in.gates[((t * size.batch + row) * gates + gate) * size.hidden + unit];
      for (size_t j = 0; j < size.hidden; ++j)
        of_state[gate] +=
            before[row * size.hidden + j] * in.weight[(gate * size.hidden + unit) * size.hidden + j];
      if (kind == Cell::kGru) of_state[gate] += in.bias[gate * size.hidden + unit];
    }
    const auto sum = [&](size_t gate) { return of_input[gate] + of_state[gate]; };
    double &h = last_hidden[row * size.hidden + unit], &c = last_cell[row * size.hidden + unit];
    if (kind == Cell::kLstm) {
      c = sigmoid(sum(1)) * c + sigmoid(sum(0)) * std::tanh(sum(2));
      h = sigmoid(sum(3)) * std::tanh(c);
    } else if (kind == Cell::kGru) {
      const double z = sigmoid(sum(1)), n = std::tanh(of_input[2] + sigmoid(sum(0)) * of_state[2]);
      h = (1 - z) * n + z * h;
    } else {
      h = kind == Cell::kTanh ? std::tanh(sum(0)) : std::max(sum(0), 0.);
    }
  }

  Doubles output, cells, last_hidden, last_cell;
};

// What the kernels make of the same.
struct Found {
  Floats gates, output, cells, activations;
  // Gradients: of what the input and the state add to the gates, and of the first states.
  Floats grad_input, grad_state, grad_hidden, grad_cell;
};

Floats floats(const Doubles& x) { return {x.begin(), x.end()}; }

Found run(Cell kind, const Size& size, const Inputs& in, const Floats& grad_output, const Floats& grad_hidden,
          const Floats& grad_cell) {
  const Floats weight = floats(in.weight), hidden = floats(in.hidden), cell = floats(in.cell),
               bias = floats(in.bias);
  const Recurrent of{
      size.steps,  size.batch, size.hidden, weight.data(), size.sizes.empty() ? nullptr : size.sizes.data(),
      size.reverse};
  Found f{floats(in.gates),        Floats(size.states()),   Floats(size.states()), Floats(4 * size.states()),
          Floats(in.gates.size()), Floats(in.gates.size()), grad_hidden,           grad_cell};
  if (kind == Cell::kLstm) {
    lstm(of, {hidden.data(), cell.data(), f.gates.data(), f.output.data(), f.cells.data()});
    f.grad_input = f.gates;
    lstm_gradient(of, {cell.data(), f.cells.data(), grad_output.data(), f.grad_input.data(),
                       f.grad_hidden.data(), f.grad_cell.data()});
    f.grad_state = f.grad_input;
  } else if (kind == Cell::kGru) {
    gru(of, {hidden.data(), f.gates.data(), bias.data(), f.activations.data(), f.output.data()});
    gru_gradient(of, {hidden.data(), f.output.data(), f.activations.data(), grad_output.data(),
                      f.grad_input.data(), f.grad_state.data(), f.grad_hidden.data()});
  } else {
    const bool relu = kind == Cell::kRelu;
    f.output = f.gates;
    rnn(of, {hidden.data(), f.output.data(), relu});
    rnn_gradient(of, {f.output.data(), grad_output.data(), f.grad_input.data(), f.grad_hidden.data(), relu});
    f.grad_state = f.grad_input;
  }
  return f;
}

Doubles doubles(const Floats& x) { return {x.begin(), x.end()}; }

Inputs inputs_of(Cell kind, const Size& size) {
  const size_t gates = gates_of(kind);
  const float deviation = 1 / std::sqrt(static_cast<float>(size.hidden));
  return {doubles(noise(gates * size.states(), 1, 2)),
          doubles(noise(gates * size.hidden * size.hidden, 2, deviation)), doubles(noise(size.state(), 3)),
          doubles(noise(size.state(), 4)), doubles(noise(gates * size.hidden, 5))};
}

// The derivative along a direction that the gradients say.
double along(Cell kind, const Size& size, const Found& found, const Plain& plain, const Inputs& in,
             const Inputs& direction) {
  const size_t gates = gates_of(kind), hidden = size.hidden;
  double sum = dot(found.grad_input, direction.gates) + dot(found.grad_hidden, direction.hidden);
  if (kind == Cell::kLstm) sum += dot(found.grad_cell, direction.cell);
  for (size_t k = 0; k < size.steps; ++k)
    for (size_t row = 0; row < size.batch; ++row)
      for (size_t gate = 0; gate < gates * hidden; ++gate) {
        const double* const before =
            (k == 0 ? in.hidden.data() : plain.output.data() + size.time(k - 1) * size.state()) +
            row * hidden;
        const double of_gate =
            std::inner_product(before, before + hidden, direction.weight.data() + gate * hidden,
                               kind == Cell::kGru ? direction.bias[gate] : 0.);
        sum += of_gate * found.grad_state[(size.time(k) * size.batch + row) * gates * hidden + gate];
      }
  return sum;
}

class RecurrentOf : public ::testing::TestWithParam<std::tuple<Cell, Size>> {};

TEST_P(RecurrentOf, IsItsDefinition) {
  if (!has_recurrent()) GTEST_SKIP() << "no kernel for this CPU";
  const auto& [kind, size] = GetParam();
  Inputs in = inputs_of(kind, size);
  const Floats grad_output = noise(size.states(), 6), grad_hidden = noise(size.state(), 7),
               grad_cell = noise(size.state(), 8);
  const TestThreads threads;
  const Found found = run(kind, size, in, grad_output, grad_hidden, grad_cell);
  const Plain plain(kind, size, in);
  for (size_t i = 0; i < found.output.size(); ++i) {
    ASSERT_NEAR(found.output[i], plain.output[i], 2e-5) << i;
    if (kind == Cell::kLstm) {
      ASSERT_NEAR(found.cells[i], plain.cells[i], 2e-5) << i;
    }
  }

  const auto loss_at = [&](const Inputs& at) {
    const Plain made(kind, size, at);
    return dot(grad_output, made.output) + dot(grad_hidden, made.last_hidden) +
           (kind == Cell::kLstm ? dot(grad_cell, made.last_cell) : 0);
  };
  // Along a direction of each input alone.
  for (size_t i = 0; i < in.all().size(); ++i) {
    constexpr double kStep = 1e-6;
    Inputs direction = in, above = in, below = in;
    for (Doubles* const values : direction.all()) std::fill(values->begin(), values->end(), 0);
    Doubles& moved = *direction.all()[i];
    moved = doubles(noise(moved.size(), 9 + i));
    for (size_t j = 0; j < moved.size(); ++j) {
      (*above.all()[i])[j] += kStep * moved[j];
      (*below.all()[i])[j] -= kStep * moved[j];
    }
    const double expected = (loss_at(above) - loss_at(below)) / (2 * kStep);
    EXPECT_NEAR(along(kind, size, found, plain, in, direction), expected, 1e-3 + 1e-4 * std::abs(expected))
        << "input " << i;
  }
}

// Few and many sequences for three threads, hidden units that fill tiles and that do not, and a weight whose
// units are divided.
INSTANTIATE_TEST_SUITE_P(
    Sizes, RecurrentOf,
    ::testing::Combine(::testing::Values(Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu),
                       ::testing::Values(Size{1, 1, 1}, Size{3, 2, 5}, Size{5, 13, 64},
                                         Size{4, 40, 100, true}, Size{4, 15, 33, false, {15, 14, 6, 1}},
                                         Size{4, 15, 33, true, {15, 14, 6, 1}}, Size{3, 7, 330},
                                         Size{3, 7, 330, true, {7, 3, 3}})));

TEST(Rnn, DividesTheUnitsOfALargeWeight) {
  if (!has_recurrent()) GTEST_SKIP() << "no kernel for this CPU";
  // Of the identity each state is the sum of what came in.
  constexpr size_t kHidden = 650, kSteps = 3;
  Floats weight(kHidden * kHidden), output(kSteps * kHidden), grad_gates(kSteps * kHidden);
  for (size_t i = 0; i < kHidden; ++i) weight[i * kHidden + i] = 1;
  for (size_t i = 0; i < output.size(); ++i) output[i] = static_cast<float>(i % kHidden);
  const Floats hidden(kHidden), grad_output(kSteps * kHidden, 1);
  Floats grad_hidden(kHidden);
  const TestThreads threads;
  const Recurrent of{kSteps, 1, kHidden, weight.data(), nullptr, false};
  rnn(of, {hidden.data(), output.data(), true});
  rnn_gradient(of, {output.data(), grad_output.data(), grad_gates.data(), grad_hidden.data(), true});
  for (size_t i = 1; i < kHidden; ++i) {
    ASSERT_EQ(output[2 * kHidden + i], 3 * static_cast<float>(i));
    ASSERT_EQ(grad_gates[i], 3);
    ASSERT_EQ(grad_hidden[i], 3);
  }
}

TEST(Rnn, NaNStays) {
  if (!has_recurrent()) GTEST_SKIP() << "no kernel for this CPU";
  const Floats weight(1), hidden(1);
  for (const bool relu : {false, true}) {
    Floats output = {NAN, 0, -1};
    rnn({3, 1, 1, weight.data(), nullptr, false}, {hidden.data(), output.data(), relu});
    EXPECT_TRUE(std::isnan(output[0]) && std::isnan(output[1])) << relu;
  }
}

TEST(Lstm, SizesThatAreNoneAreNoSequences) {
  if (!has_recurrent()) GTEST_SKIP() << "no kernel for this CPU";
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Floats weight(4, 1), state = {1, 2}, sizes = {NAN, -3, kInf, 1e30f};
  Floats gates(32), output(8), cells(8);
  lstm({4, 2, 1, weight.data(), sizes.data(), false},
       {state.data(), state.data(), gates.data(), output.data(), cells.data()});
  EXPECT_EQ(output[3], 2);
  EXPECT_EQ(cells[2], 1);
  EXPECT_NE(output[5], 2);
}

}  // namespace
}  // namespace sluice::kernels
