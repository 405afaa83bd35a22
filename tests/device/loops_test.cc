// Loops of the user's C++ that become loops of the program (patterns/loops/loops.h): their values and
// gradients against LibTorch's CPU, and how many loops there are.
#include <chrono>

#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

using Program = std::function<Tensors(torch::Device)>;

// The program's results are those of LibTorch's CPU, and its operations were so many loops.
void compare(const Program& program, int64_t loops, double tolerance = 1e-5) {
  const DumpedPrograms programs;
  expect_same(program(test_device()), program(torch::kCPU), tolerance);
  if (on_cpu()) return;
  EXPECT_EQ(programs.calls("\"stablehlo.while\""), loops);
}

// Values of the host, computed on the device.
Tensor on(torch::Device device, std::vector<int64_t> sizes, double scale) {
  return ramp(std::move(sizes), scale).to(device);
}

// Advantages as in reinforcement learning, from the last step to the first or the other way.
Tensor gae(const Tensor& r, const Tensor& v, bool forwards) {
  const int64_t n = r.size(0);
  Tensor out = torch::zeros_like(r), g = torch::zeros({}, r.options());
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = forwards ? k : n - 1 - k;
    g = r[i] + 0.9 * g;
    out[i] = g + v[i];
  }
  return out;
}

TEST(Loops, AdvantagesForwardsAndBackwardsInTime) {
  for (const bool forwards : {true, false})
    compare(
        [&](torch::Device d) { return Tensors{gae(on(d, {100}, 0.2), on(d, {100}, 0.1), forwards).cpu()}; },
        1);
}

TEST(Loops, ColumnsOfABatch) {
  compare(
      [](torch::Device d) {
        const Tensor r = on(d, {3, 60}, 0.2);
        Tensor out = torch::zeros_like(r), g = torch::zeros({3}, r.options());
        for (int64_t i = 59; i >= 0; --i) {
          g = r.select(1, i) + 0.9 * g;
          out.select(1, i).copy_(g);
        }
        return Tensors{out.cpu()};
      },
      1);
}

TEST(Loops, ValuesOfAllRoundsAreKept) {
  compare(
      [](torch::Device d) {
        const Tensor r = on(d, {50}, 0.2);
        Tensors all = {torch::zeros({}, r.options())};
        for (int64_t i = 0; i < 50; ++i) all.push_back(r[i] + 0.9 * all.back());
        cut();
        return all;
      },
      1);
}

TEST(Loops, GradientsOfAChain) {
  compare(
      [](torch::Device d) {
        Tensor r = on(d, {60}, 0.2).requires_grad_(), v = on(d, {60}, 0.1).requires_grad_();
        Tensor g = torch::zeros({}, r.options());
        Tensors outs;
        for (int64_t i = 0; i < 60; ++i) {
          g = r[i] + 0.9 * g * g;
          outs.push_back(g + v[i]);
        }
        torch::stack(outs).mul(on(d, {60}, 0.25)).sum().backward();
        outs = {};
        g.reset();
        cut();
        return Tensors{r.grad(), v.grad()};
      },
      2);
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const Tensors& p) {
  const Tensor gi = torch::addmm(p[2], x, p[0].t()), gh = torch::addmm(p[3], h, p[1].t());
  const auto i = gi.chunk(3, 1), s = gh.chunk(3, 1);
  const Tensor reset = torch::sigmoid(i[0] + s[0]), update = torch::sigmoid(i[1] + s[1]);
  const Tensor fresh = torch::tanh(i[2] + reset * s[2]);
  return fresh + update * (h - fresh);
}

TEST(Loops, ACellWithAllGradients) {
  compare(
      [](torch::Device d) {
        Tensors p;
        for (std::vector<int64_t> sizes : {std::vector<int64_t>{12, 3}, {12, 4}, {12}, {12}})
          p.push_back(on(d, sizes, 0.05).requires_grad_());
        const Tensor x = on(d, {40, 2, 3}, 0.25).requires_grad_();
        Tensor h = torch::zeros({2, 4}, x.options());
        Tensors outs;
        for (int64_t t = 0; t < x.size(0); ++t) outs.push_back(h = gru_cell(x[t], h, p));
        const Tensor y = torch::stack(outs);
        outs = {};
        (y * y).sum().backward();
        cut();
        Tensors all = {y, x.grad()};
        for (const Tensor& parameter : p) all.push_back(parameter.grad());
        return all;
      },
      2, 1e-4);
}

// dy/dt = A y by Runge and Kutta's steps.
TEST(Loops, ADifferentialEquation) {
  compare(
      [](torch::Device d) {
        const Tensor a = on(d, {4, 4}, 0.1);
        Tensor y = on(d, {4}, 0.25);
        const double h = 0.05;
        for (int i = 0; i < 50; ++i) {
          const Tensor k1 = a.mv(y), k2 = a.mv(y + h / 2 * k1), k3 = a.mv(y + h / 2 * k2),
                       k4 = a.mv(y + h * k3);
          y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
        }
        return Tensors{y.cpu()};
      },
      1);
}

TEST(Loops, AnUnrolledOptimizerWithMomentum) {
  compare(
      [](torch::Device d) {
        const Tensor target = on(d, {6}, 0.3);
        Tensor w = torch::zeros({6}, target.options()), m = torch::zeros({6}, target.options());
        for (int i = 0; i < 40; ++i) {
          m = 0.9 * m + (w - target);
          w = w - 0.05 * m;
        }
        return Tensors{w.cpu(), m.cpu()};
      },
      1);
}

TEST(Loops, ARoundInTheMiddleDiffers) {
  compare(
      [](torch::Device d) {
        const Tensor r = on(d, {100}, 0.2);
        Tensor g = torch::zeros({}, r.options()), out = torch::zeros_like(r);
        for (int64_t i = 0; i < 100; ++i) {
          g = i == 50 ? torch::sin(r[i] - g) : r[i] + 0.9 * g;
          out[i] = g;
        }
        return Tensors{out.cpu()};
      },
      2);
}

TEST(Loops, LoopsInALoopAndBehindEachOther) {
  compare(
      [](torch::Device d) {
        const Tensor r = on(d, {40}, 0.05);
        Tensor g = torch::zeros({}, r.options()), out = torch::zeros_like(r);
        for (int64_t i = 0; i < 33; ++i) {
          for (int64_t k = 0; k < 36; ++k) g = r[k] + 0.5 * g;
          g = torch::tanh(g);
          out[i] = g;
        }
        for (int64_t i = 0; i < 40; ++i) g = g * 0.7 + out[i];
        return Tensors{out.cpu(), g.cpu()};
      },
      3);
}

TEST(Loops, OneOrTwoRounds) {
  for (const int64_t rounds : {1, 2})
    compare(
        [&](torch::Device d) { return Tensors{gae(on(d, {rounds}, 0.2), on(d, {rounds}, 0.1), true).cpu()}; },
        0);
}

TEST(Loops, WritesThatShareMemory) {
  compare(
      [](torch::Device d) {
        const Tensor x = on(d, {80}, 0.1);
        const Tensor same = x.view({40, 2});
        for (int64_t i = 1; i < 40; ++i) {
          same[i].add_(same[i - 1]);       // reads what the round before wrote
          x.slice(0, i, i + 4).mul_(0.5);  // parts that overlap from round to round
        }
        return Tensors{x.cpu()};
      },
      1);
}

TEST(Loops, AHostReadInEachRound) {
  const DumpedPrograms programs;
  const auto run = [](torch::Device d) {
    const Tensor r = on(d, {40}, 0.2);
    Tensor g = torch::zeros({}, r.options());
    double sum = 0;
    for (int64_t i = 0; i < 40; ++i) {
      g = r[i] + 0.9 * g;
      sum += g.item<double>();
    }
    return sum;
  };
  EXPECT_NEAR(run(test_device()), run(torch::kCPU), 1e-3);
}

TEST(Loops, ARoundThatThrowsLeavesTheOthers) {
  compare(
      [](torch::Device d) {
        const Tensor r = on(d, {60}, 0.2);
        Tensor g = torch::zeros({2}, r.options());
        try {
          for (int64_t i = 0; i < 60; ++i) {
            g = r[i] + 0.9 * g;
            if (i == 50) g = g + torch::zeros({3}, r.options());
          }
        } catch (const std::exception&) {
        }
        return Tensors{g.cpu()};
      },
      1);
}

TEST(Loops, OtherArgumentsInEachRound) {
  compare(
      [](torch::Device d) {
        Tensors weights;
        for (int i = 0; i < 40; ++i) weights.push_back(on(d, {4, 4}, 0.05 + 0.001 * i));
        Tensor x = on(d, {2, 4}, 0.25);
        for (const Tensor& w : weights) x = torch::tanh(x.mm(w)) + x;
        return Tensors{x.cpu()};
      },
      1);
}

TEST(Loops, CanBeSwitchedOff) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no programs";
  DeviceOptions options;
  options.loops = false;
  const DumpedPrograms programs(options);
  gae(on(test_device(), {40}, 0.2), on(test_device(), {40}, 0.1), true).cpu();
  EXPECT_EQ(programs.calls("\"stablehlo.while\""), 0);
}

// The lines of the program of so many rounds.
size_t lines_of(int64_t rounds) {
  const DumpedPrograms programs;
  gae(torch::zeros({rounds}, test_device()), torch::zeros({rounds}, test_device()), false).cpu();
  return count_of("\n", base::value_or_throw(base::read_file(programs.all().at(0))));
}

TEST(Loops, TheProgramsLengthDoesNotDependOnTheRounds) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no programs";
  const size_t lines = lines_of(64);
  EXPECT_LT(lines, 60);
  EXPECT_EQ(lines_of(2000), lines);
}

// The values of all rounds, each a tensor of its own.
Tensors values_of_chain(const Tensor& r) {
  Tensors all = {torch::zeros({}, r.options())};
  for (int64_t i = 0; i < r.size(0); ++i) all.push_back(r[i] + 0.9 * all.back());
  return all;
}

Tensor gradient_of_chain(const Tensor& r) {
  const Tensor x = r.detach().requires_grad_();
  Tensor g = torch::zeros({}, r.options());
  for (int64_t i = 0; i < x.size(0); ++i) g = x[i] + 0.9 * g * g;
  g.backward();
  return x.grad();
}

// Prints the seconds of the first update and of the next ones, by the number of rounds.
void print_table(const char* name, const std::function<void(const Tensor&)>& update) {
  using Clock = std::chrono::steady_clock;
  for (const bool loops : {true, false}) {
    for (const int64_t rounds : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}) {
      if (!loops && rounds > 64) break;
      DeviceOptions options;
      options.loops = loops;
      restart(options);
      const Tensor r = on(test_device(), {rounds}, 0.1);
      const double compiled = counters().compile_seconds;
      std::vector<double> seconds;
      for (int i = 0; i < 6; ++i) {
        const auto start = Clock::now();
        update(r);
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      std::printf(
          "%-8s loops %d, %5ld rounds: first %8.3f s, next %9.6f s, lowered and compiled in %8.3f s\n", name,
          loops, static_cast<long>(rounds), seconds[0], *std::min_element(seconds.begin(), seconds.end()),
          counters().compile_seconds - compiled);
      std::fflush(stdout);
    }
  }
}

// Run by hand.
TEST(Loops, DISABLED_TableOfAdvantages) {
  print_table("gae", [](const Tensor& r) { gae(r, r, false).cpu(); });
}

TEST(Loops, DISABLED_TableOfGradients) {
  print_table("gradient", [](const Tensor& r) { gradient_of_chain(r).cpu(); });
}

TEST(Loops, DISABLED_TableOfKeptValues) {
  print_table("kept", [](const Tensor& r) {
    const Tensors all = values_of_chain(r);
    cut();
  });
}

}  // namespace
}  // namespace sluice::tests
