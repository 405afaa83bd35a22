#include "sluice/kernels/rows/lstm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sluice/kernels/test_noise.h"
#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Size {
  size_t steps, batch, hidden;
  bool reverse = false;
  Floats sizes = {};

  size_t states() const { return steps * batch * hidden; }
  size_t state() const { return batch * hidden; }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit after the other, in double precision.
class Plain {
 public:
  Plain(const Size& size, const Floats& weight, const Floats& hidden, const Floats& cell, const Floats& gates)
      : size_(size),
        weight_(weight),
        first_hidden_(hidden.begin(), hidden.end()),
        first_cell_(cell.begin(), cell.end()),
        gates(gates.begin(), gates.end()),
        output(size.states()),
        cells(size.states()) {
    for (size_t k = 0; k < size.steps; ++k)
      for (size_t row = 0; row < size.batch; ++row)
        for (size_t unit = 0; unit < size.hidden; ++unit) advance(k, row, unit);
  }

  // Makes gates their gradients, and these those of the first states.
  void take_gradient(const Floats& grad_output, Doubles& grad_hidden, Doubles& grad_cell) {
    for (size_t k = size_.steps; k-- > 0;)
      for (size_t row = 0; row < size_.batch; ++row) {
        const size_t t = time(k);
        for (size_t unit = 0; unit < size_.hidden; ++unit) {
          const size_t state = row * size_.hidden + unit;
          grad_hidden[state] += grad_output[t * size_.state() + state];
          const double h = grad_hidden[state], i = gate(t, row, 0, unit), f = gate(t, row, 1, unit),
                       g = gate(t, row, 2, unit), o = gate(t, row, 3, unit),
                       c = std::tanh(cells[t * size_.state() + state]);
          double& of_cell = grad_cell[state];
          if (!present(t, row)) {
            for (size_t all = 0; all < 4; ++all) gate(t, row, all, unit) = 0;
            continue;
          }
          of_cell += h * o * (1 - c * c);
          gate(t, row, 0, unit) = of_cell * g * i * (1 - i);
          gate(t, row, 1, unit) = of_cell * cell_before(k, row, unit) * f * (1 - f);
          gate(t, row, 2, unit) = of_cell * i * (1 - g * g);
          gate(t, row, 3, unit) = h * c * o * (1 - o);
          of_cell *= f;
        }
        if (!present(t, row)) continue;
        for (size_t unit = 0; unit < size_.hidden; ++unit) {
          double sum = 0;
          for (size_t j = 0; j < 4 * size_.hidden; ++j)
            sum += gates[(t * size_.batch + row) * 4 * size_.hidden + j] * weight_[j * size_.hidden + unit];
          grad_hidden[row * size_.hidden + unit] = sum;
        }
      }
  }

 private:
  size_t time(size_t k) const { return size_.reverse ? size_.steps - 1 - k : k; }
  bool present(size_t t, size_t row) const {
    return size_.sizes.empty() || static_cast<float>(row) < size_.sizes[t];
  }
  double& gate(size_t t, size_t row, size_t number, size_t unit) {
    return gates[((t * size_.batch + row) * 4 + number) * size_.hidden + unit];
  }
  double before(const Doubles& all, const Doubles& first, size_t k, size_t row, size_t unit) const {
    const size_t state = row * size_.hidden + unit;
    return k == 0 ? first[state] : all[time(k - 1) * size_.state() + state];
  }
  double cell_before(size_t k, size_t row, size_t unit) const {
    return before(cells, first_cell_, k, row, unit);
  }

  void advance(size_t k, size_t row, size_t unit) {
    const size_t t = time(k), at = (t * size_.batch + row) * size_.hidden + unit;
    output[at] = before(output, first_hidden_, k, row, unit);
    cells[at] = cell_before(k, row, unit);
    if (!present(t, row)) return;
    double sums[4];
    for (size_t number = 0; number < 4; ++number) {
      sums[number] = gate(t, row, number, unit);
      for (size_t j = 0; j < size_.hidden; ++j)
        sums[number] += before(output, first_hidden_, k, row, j) *
                        weight_[(number * size_.hidden + unit) * size_.hidden + j];
    }
    const double i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = std::tanh(sums[2]), o = sigmoid(sums[3]);
    gate(t, row, 0, unit) = i, gate(t, row, 1, unit) = f;
    gate(t, row, 2, unit) = g, gate(t, row, 3, unit) = o;
    cells[at] = f * cells[at] + i * g;
    output[at] = o * std::tanh(cells[at]);
  }

  const Size size_;
  const Floats weight_;
  const Doubles first_hidden_, first_cell_;

 public:
  Doubles gates, output, cells;
};

void expect_near(const Floats& found, const Doubles& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5) << what << " " << i;
}

class LstmOf : public ::testing::TestWithParam<Size> {};

TEST_P(LstmOf, IsItsDefinition) {
  if (!has_lstm()) GTEST_SKIP() << "no kernel for this CPU";
  const Size& size = GetParam();
  const float deviation = 1 / std::sqrt(static_cast<float>(size.hidden));
  const Floats weight = noise(4 * size.hidden * size.hidden, 1, deviation), hidden = noise(size.state(), 2),
               cell = noise(size.state(), 3), input = noise(4 * size.states(), 4, 2),
               grad_output = noise(size.states(), 5);
  Floats gates = input, output(size.states()), cells(size.states()), grad_hidden = noise(size.state(), 6),
         grad_cell = noise(size.state(), 7);
  Plain plain(size, weight, hidden, cell, input);
  Doubles plain_hidden(grad_hidden.begin(), grad_hidden.end()),
      plain_cell(grad_cell.begin(), grad_cell.end());
  const TestThreads threads;
  const Lstm of{
      size.steps,  size.batch, size.hidden, weight.data(), size.sizes.empty() ? nullptr : size.sizes.data(),
      size.reverse};
  lstm(of, hidden.data(), cell.data(), gates.data(), output.data(), cells.data());
  expect_near(gates, plain.gates, "gates");
  expect_near(output, plain.output, "output");
  expect_near(cells, plain.cells, "cells");
  plain.take_gradient(grad_output, plain_hidden, plain_cell);
  lstm_gradient(of, {cell.data(), cells.data(), grad_output.data(), gates.data(), grad_hidden.data(),
                     grad_cell.data()});
  expect_near(gates, plain.gates, "grad_gates");
  expect_near(grad_hidden, plain_hidden, "grad_hidden");
  expect_near(grad_cell, plain_cell, "grad_cell");
}

// Few and many sequences for three threads, hidden units that fill tiles and that do not, and a weight whose
// units are divided.
INSTANTIATE_TEST_SUITE_P(Sizes, LstmOf,
                         ::testing::Values(Size{1, 1, 1}, Size{3, 2, 5}, Size{5, 13, 64},
                                           Size{4, 40, 100, true}, Size{4, 15, 33, false, {15, 14, 6, 1}},
                                           Size{4, 15, 33, true, {15, 14, 6, 1}}, Size{3, 7, 330},
                                           Size{3, 7, 330, true, {7, 3, 3}}));

TEST(Lstm, SizesThatAreNoneAreNoSequences) {
  if (!has_lstm()) GTEST_SKIP() << "no kernel for this CPU";
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Floats weight(4, 1), state = {1, 2}, sizes = {NAN, -3, kInf, 1e30f};
  Floats gates(32), output(8), cells(8);
  lstm({4, 2, 1, weight.data(), sizes.data(), false}, state.data(), state.data(), gates.data(), output.data(),
       cells.data());
  EXPECT_EQ(output[3], 2);
  EXPECT_EQ(cells[2], 1);
  EXPECT_NE(output[5], 2);
}

}  // namespace
}  // namespace sluice::kernels
