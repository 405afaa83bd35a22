// Programs with very many views, slices, writes and operations: what they compute, against LibTorch's CPU,
// and how much is made of them.
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>

#include "sluice/device/program/parts.h"
#include "sluice/device/program/trace.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Program = std::function<Tensors(torch::Device)>;

Tensor on(torch::Device device, std::vector<int64_t> sizes, double scale) {
  return ramp(std::move(sizes), scale).to(device);
}

// ---- views of views ----

// A view of n views of x.
Tensor view_of_views(Tensor x, int n) {
  for (int i = 0; i < n; ++i) x = i % 2 == 0 ? x.t() : x.slice(0, 0, x.size(0) - (i < 4 ? 1 : 0));
  return x;
}

thread_local int64_t functions = 0;

// Counts the functions of LibTorch that a call calls.
int64_t functions_of(const std::function<void()>& call) {
  functions = 0;
  const auto count = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++functions;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  call();
  at::removeCallback(count);
  return functions;
}

TEST(ViewsOfViews, AreMadeAgainInAFewSteps) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU needs no functions";
  const Tensor x = on(test_device(), {6, 5}, 0.25).slice(0, 1);
  for (const int n : {3, 100, 3000}) {
    const Tensor y = view_of_views(x, n);
    const auto& info = torch::autograd::impl::get_view_autograd_meta(y)->get_backward_view();
    Tensor again;
    const int64_t made = functions_of([&] { again = info.view_fn()(info.base_); });
    EXPECT_GE(made, 1) << n;
    EXPECT_LE(made, 60) << n;  // of at most 16 views
    EXPECT_EQ(again.sizes(), y.sizes());
    EXPECT_EQ(again.strides(), y.strides());
    EXPECT_EQ(again.storage_offset(), y.storage_offset());
  }
}

// A view of many views is written and read, also through its base, and the gradient goes through all of them.
TEST(ViewsOfViews, ThatAreDeepHaveTheirValuesAndGradients) {
  const auto run = [](torch::Device device, int n, bool part) {
    const Tensor x = on(device, {6, 5}, 0.25).requires_grad_();
    Tensor whole = x * 2;
    Tensor base = part ? whole.slice(0, 1) : whole;
    Tensor written = view_of_views(base, n);
    const Tensor read = view_of_views(base, n);
    written.mul_(x.sum());
    written.select(0, 1).add_(1);
    const Tensor loss = (read * read).sum() + (base * base).sum() + written.select(0, 0).sum();
    loss.backward();
    return Tensors{base.detach(), read.detach(), written.detach(), x.grad()};
  };
  for (const int n : {2, 15, 16, 17, 18, 40, 101})
    for (const bool part : {false, true})
      expect_same(run(test_device(), n, part), run(torch::kCPU, n, part), 1e-5, c10::str(n, " views"));
}

// Returns the process's resident memory in kB.
int64_t resident_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  return 0;
}

// Run by hand: prints the memory that n views of views take while all of them are kept.
TEST(ViewsOfViews, DISABLED_TableOfMemory) {
  for (const bool gradient : {false, true})
    for (const int n : {1000, 2000, 4000, 10'000}) {
      const Tensor x = on(test_device(), {6, 5}, 0.25).requires_grad_(gradient);
      Tensors views = {x * 2};
      const int64_t before = resident_memory();
      for (int i = 0; i < n; ++i) views.push_back(views.back().t());
      std::printf("gradient %d, %6d views: %8.3f kB a view\n", gradient, n,
                  static_cast<double>(resident_memory() - before) / n);
      std::fflush(stdout);
    }
}

// ---- slices with a gradient, and writes of rows ----

// The program's results are those of LibTorch's CPU. Returns how often its text has the parts.
std::vector<int64_t> compared(const Program& program, const std::vector<std::string>& parts) {
  const DumpedPrograms programs;
  expect_same(program(test_device()), program(torch::kCPU), 1e-5);
  std::vector<int64_t> counts;
  for (const std::string& part : parts) counts.push_back(programs.calls(part));
  return counts;
}

// One of three functions, in no order that repeats.
Tensor some_function(const Tensor& x, int64_t i) {
  std::minstd_rand random(static_cast<uint32_t>(i * 31 + 7));
  random.discard(5);
  const auto kind = random() % 3;
  return kind == 0 ? torch::sin(x) : kind == 1 ? torch::exp(x) : x * 0.5;
}

TEST(Slices, GradientsOfElementsOfRowsAreJoined) {
  const auto counts = compared(
      [](torch::Device d) {
        const Tensor x = on(d, {5, 4, 6}, 0.25).requires_grad_();
        Tensor sum = torch::zeros({}, x.options());
        for (int64_t n = 0; n < 120; ++n) sum = sum + some_function(x[n % 5][n / 5 % 4][n / 20], n);
        sum.backward();
        return Tensors{sum.detach().cpu(), x.grad().cpu()};
      },
      {"\"stablehlo.pad\"", "(tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>"});
  if (on_cpu()) return;
  EXPECT_EQ(counts, (std::vector<int64_t>{0, 0}));
}

TEST(Slices, GradientsOfNarrowsOfNarrowsThatOverlap) {
  compared(
      [](torch::Device d) {
        const Tensor x = on(d, {3, 40}, 0.25).requires_grad_();
        Tensor sum = torch::zeros({3, 3}, x.options());
        for (int64_t i = 0; i < 30; ++i) sum = sum + some_function(x.narrow(1, i, 8).narrow(1, i % 5, 3), i);
        (sum * sum).sum().backward();
        return Tensors{sum.detach().cpu(), x.grad().cpu()};
      },
      {});
}

// Every second row from the end, and the same rows again, and the whole.
TEST(Slices, GradientsOfRowsInAnyOrder) {
  compared(
      [](torch::Device d) {
        const Tensor x = on(d, {24, 3}, 0.25).requires_grad_();
        Tensor sum = (x * x).sum();
        for (int64_t i = 23; i >= 0; i -= 2) sum = sum + some_function(x[i], i).sum();
        for (int64_t i = 0; i < 24; i += 3) sum = sum + some_function(x[i].slice(0, 1), i).sum();
        sum.backward();
        return Tensors{x.grad().cpu()};
      },
      {});
}

TEST(RowWrites, OfTwoTensorsInTurnsThatReadOtherRows) {
  const auto counts = compared(
      [](torch::Device d) {
        Tensor a = on(d, {70, 3}, 0.25), b = on(d, {3, 70}, 0.5);
        for (int64_t i = 0; i < 70; ++i) {
          a[i] = some_function(a[i * i % 70], i);
          b.select(1, (i * 3) % 70).copy_(some_function(a[i / 2] + b.select(1, i), 2 * i));
        }
        return Tensors{a.cpu(), b.cpu()};
      },
      {"\"stablehlo.dynamic_update_slice\""});
  if (on_cpu()) return;
  EXPECT_LT(counts[0], 10);
}

// Writes of parts that overlap, and a copy of the tensor that was made in the middle.
TEST(RowWrites, ThatOverlapAndACopyInTheMiddle) {
  compared(
      [](torch::Device d) {
        Tensor x = on(d, {90}, 0.25), copy;
        for (int64_t i = 0; i < 60; ++i) {
          x.slice(0, i * 7 % 60, i * 7 % 60 + 5 + i % 3)
              .copy_(some_function(x.slice(0, i, i + 5 + i % 3), i));
          if (i == 30) copy = x.clone();
          if (i == 40) copy[3] = x[7];
        }
        return Tensors{x.cpu(), copy.cpu()};
      },
      {});
}

// ---- traces of many operations ----

// Cuts what is pending into programs of at most this many operations.
void cut_in_parts(size_t max_operations) {
  const device::TraceLock lock = device::lock_trace();
  device::cut_in_parts("test", max_operations);
}

// Some hundred operations of all kinds; the values that it returns are made in all parts of them.
Tensors mixed(torch::Device device, const std::function<void()>& at_end) {
  Tensor w = on(device, {6, 6}, 0.1), x = on(device, {4, 6}, 0.25), sum = torch::zeros({4, 6}, x.options());
  Tensor unused = x;
  Tensors kept;
  for (int64_t i = 0; i < 40; ++i) {
    x = some_function(x, i).clamp(-2, 2);
    if (i % 4 == 0) x = torch::tanh(x.mm(w));
    unused = unused + x;
    sum += x;                      // replaces a value in place
    w.select(0, i % 6).mul_(0.9);  // and a part of one
    if (i % 7 == 0) kept.push_back(x * 3);
    if (i % 9 == 0) kept.push_back(std::get<1>(torch::native_layer_norm(x, {6}, {}, {}, 1e-5)));
  }
  kept.insert(kept.end(), {w, x, sum, kept[0]});
  unused = Tensor();
  at_end();
  return kept;
}

TEST(Parts, HaveTheValuesOfOneProgram) {
  const Tensors expected = mixed(torch::kCPU, [] {});
  for (const size_t max_operations : {2, 7, 50, 1000}) {
    if (!on_cpu()) restart();
    const auto before = counters();
    const Tensors found = mixed(test_device(), [&] {
      if (!on_cpu()) cut_in_parts(max_operations);
    });
    const auto after = counters();
    if (!on_cpu()) {
      const auto operations = static_cast<size_t>(after.recorded - before.recorded);
      EXPECT_GE(static_cast<size_t>(after.cuts - before.cuts), operations / max_operations) << max_operations;
      EXPECT_LE(static_cast<size_t>(after.cuts - before.cuts), operations / (max_operations * 3 / 4 + 1) + 1)
          << max_operations;
      EXPECT_EQ(after.pending, 0);
    }
    expect_same(found, expected, 1e-5, c10::str("parts of ", max_operations));
  }
}

// The buffers that are alive after a cut do not depend on the number of programs.
TEST(Parts, KeepNothingTwice) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  std::vector<int64_t> alive;
  for (const size_t max_operations : {1000, 20}) {
    restart();
    const Tensors kept = mixed(test_device(), [&] { cut_in_parts(max_operations); });
    sync_and_wait();
    alive.push_back(counters().live_buffers);
  }
  // The latest numbers of each program, one buffer a program, stay on the device.
  EXPECT_LE(alive[1] - alive[0], 40);
  EXPECT_GE(alive[1], alive[0]);
}

// A program of a part is one that an earlier launch's error stops: nothing that was recorded is lost.
TEST(Parts, AnErrorOfAnEarlierProgramLosesNothing) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  const Tensor bad = on(test_device(), {4}, 1.0).index_select(0, torch::tensor({9}).to(test_device()));
  sync();
  std::string error;
  const Tensors found = mixed(test_device(), [&] { error = thrown([] { cut_in_parts(10); }); });
  EXPECT_THAT(error, HasSubstr("index holds 9"));
  expect_same(found, mixed(torch::kCPU, [] {}), 1e-5);
}

// 10^5 operations without a cut become ten equal programs, of which one is compiled.
TEST(Parts, OfAHundredThousandOperations) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  Tensor x = torch::zeros({2, 2}, test_device());
  const Tensor w = torch::eye(2).to(test_device());
  sync_and_wait();
  const auto before = counters();
  const std::string lines = warned([&] {
    for (int64_t i = 0; i < 20'010; ++i) x = x.mm(w) * 0.5 + 1 - x * 0;  // five operations
  });
  EXPECT_THAT(lines, HasSubstr("sync"));
  const auto after = counters();
  EXPECT_EQ(after.forced_cuts - before.forced_cuts, 1);
  EXPECT_GE(after.cuts - before.cuts, 10);
  EXPECT_LE(after.programs - before.programs, 3);
  expect_same(x, torch::full({2, 2}, 2.0f), 1e-6);
}

// Run by hand: prints the seconds that a trace takes by the size of the programs that it is cut into. No two
// rounds are equal, so that nothing becomes a loop and each program is another one.
TEST(Parts, DISABLED_TableOfSizes) {
  for (const bool with_products : {false, true})
    for (const size_t max_operations : {300, 1000, 3000, 10'000, 30'000}) {
      restart();
      const Tensor w = on(test_device(), {16, 16}, 0.1);
      Tensor x = on(test_device(), {8, 16}, 0.25);
      sync_and_wait();
      const auto before = counters();
      for (int64_t i = 0; i < 10'000; ++i) {  // about 30,000 operations
        x = some_function(x, i).clamp(-2, 2);
        if (with_products && some_function(torch::ones({}), i).item<float>() > 0.9f) x = x.mm(w);
      }
      const auto start = std::chrono::steady_clock::now();
      cut_in_parts(max_operations);
      sync_and_wait();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("products %d, programs of %6zu operations: %7.2f s, compiled in %7.2f s\n", with_products,
                  max_operations, seconds, counters().compile_seconds - before.compile_seconds);
      std::fflush(stdout);
    }
}

// ---- checks of many values ----

TEST(ManyChecks, TheFirstThatFailsIsReported) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const Tensor x = on(test_device(), {100}, 0.25);
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{}, {0}, {29}, {17, 18}, {5, 12, 29}, {0, 1, 2, 3}}) {
    Tensor sum = torch::zeros({2}, x.options());
    for (int64_t i = 0; i < 30; ++i) {
      const bool is_wrong = std::find(wrong.begin(), wrong.end(), i) != wrong.end();
      const Tensor index = torch::tensor({i, is_wrong ? 60 + i : 1}, torch::kLong).to(test_device());
      sum = sum + x.slice(0, 0, 50 - i / 2).clone().index_select(0, index);
    }
    const std::string error = thrown([&] { (void)sum.cpu(); });
    if (wrong.empty())
      EXPECT_EQ(error, "");
    else
      EXPECT_THAT(error, AllOf(HasSubstr(c10::str("index holds ", 60 + wrong[0])),
                               HasSubstr(c10::str("values from 0 to ", 49 - wrong[0] / 2))));
  }
}

// A place from the end is allowed in the first operation, and in no other one with the same index.
TEST(ManyChecks, AWiderRangeDoesNotAnswerForANarrowerOne) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const Tensor x = on(test_device(), {10}, 0.25);
  const auto error_of = [&](int64_t place) {
    const Tensor index = torch::tensor({place}, torch::kLong).to(test_device());
    // One statement each: the order in which C++ evaluates the operands of a sum is not defined.
    const Tensor from_the_end = x.index({index});
    const Tensor from_the_begin = x.index_select(0, index);
    const Tensor sum = from_the_end + from_the_begin + x.slice(0, 0, 8).index({index});
    return thrown([&] { (void)sum.cpu(); });
  };
  EXPECT_EQ(error_of(3), "");
  EXPECT_THAT(error_of(-1), AllOf(HasSubstr("aten::index_select"), HasSubstr("index holds -1")));
  EXPECT_THAT(error_of(-9), HasSubstr("aten::index_select"));
  EXPECT_THAT(error_of(9), HasSubstr("values from -8 to 7"));
}

// The text grows by a fixed number of operations for each check, and none of them waits for all others.
TEST(ManyChecks, AreComparedAtOnce) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const auto selects = [](int64_t checks) {
    const DumpedPrograms programs;
    const Tensor x = on(test_device(), {100}, 0.25);
    Tensor sum = torch::zeros({1}, x.options());
    for (int64_t i = 0; i < checks; ++i)
      sum = sum + some_function(x.index_select(0, torch::tensor({i}, torch::kLong).to(test_device())), i);
    (void)sum.cpu();
    return programs.calls("tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>");
  };
  const int64_t few = selects(12);
  EXPECT_EQ(selects(24) - few, 12) << "each looks for its lowest or highest value";
}

}  // namespace
}  // namespace sluice::tests
