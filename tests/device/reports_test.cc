// What the device says: why it compiles again, what its report finds, and what had its memory when there was
// too little. The texts are those that docs/device.md promises.
#include <cstdlib>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/device/report/shortage.h"
#include "sluice/pjrt/buffer.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Report : public testing::Test {
 protected:
  void SetUp() override {
    if (on_cpu()) GTEST_SKIP();
    restart();
    reset_metrics();
  }
  // What cutting at `boundary` says while the result of each call lives.
  static std::string warned_of(const char* boundary,
                               const std::vector<std::function<std::vector<torch::Tensor>()>>& calls) {
    return warned([&] {
      for (const auto& call : calls) {
        const auto kept = call();
        sync(boundary);
      }
    });
  }
};

TEST_F(Report, ARecompileNamesTheFirstDifference) {
  const torch::Device device = test_device();
  const torch::Tensor weight = torch::ones({3, 2}).to(device), x = torch::ones({5, 3}).to(device);
  using Kept = std::vector<torch::Tensor>;
  const auto product = [&](int64_t rows) {
    return [=] { return Kept{torch::ones({rows, 3}).to(device).mm(weight)}; };
  };
  // Two programs are expected; none is compiled for what was seen before.
  EXPECT_EQ(warned_of("step", {product(4), product(5), product(4), product(5)}), "");
  EXPECT_THAT(
      warned_of("step", {product(7)}),
      ContainsRegex("recompile: 'step' needs a new program \\(its number 3\\): mm at "
                    "reports_test\\.cc:[0-9]+: operand 0 is tensor<7x3xf32>, was tensor<5x3xf32>; 2 "
                    "programs so far took [0-9.]+ m?s to compile; a length that changes: pad to a few "
                    "lengths .*\\.drop_last\\(\\)"));
  const std::function<Kept()> chains[] = {
      [&] { return Kept{x.exp()}; },
      [&] { return Kept{x.exp().sin().cos()}; },
      [&] { return Kept{x.exp().sin()}; },
      [&] { return Kept{x.exp().sin().tanh()}; },
      [&] { return Kept{x.exp().cos()}; },
      [&] {
        const torch::Tensor e = x.exp();
        return Kept{e, e.cos()};
      },
  };
  EXPECT_EQ(warned_of("chain", {chains[0], chains[1]}), "");
  EXPECT_THAT(warned_of("chain", {chains[2]}), AllOf(HasSubstr("(its number 3): 1 operations are gone; "),
                                                     HasSubstr("choose with torch::where")));
  EXPECT_THAT(warned_of("chain", {chains[3]}),
              ContainsRegex("\\(its number 4\\): tanh at reports_test\\.cc:[0-9]+: operation 2 is new; "));
  EXPECT_THAT(warned_of("chain", {chains[4]}),
              ContainsRegex(": cos at reports_test\\.cc:[0-9]+: operation 1 was sin; "));
  EXPECT_THAT(warned_of("chain", {chains[5]}),
              HasSubstr("the operations are the same; what is kept of their results changed (2 results); "));
  EXPECT_THAT(
      metrics_report(),
      AllOf(HasSubstr("Recompiles\n  'step' needs a new program (its number 3): mm at reports_test"),
            HasSubstr("  - 5 recompiles after the second program of a boundary; the last: 'chain' ")));
}

// What a loop says in which each step needs another program.
std::string said_of(const char* boundary, int steps, const std::function<torch::Tensor(int64_t)>& step) {
  return warned([&] {
    for (int64_t i = 0; i < steps; ++i) {
      const torch::Tensor kept = step(i);
      sync(boundary);
    }
  });
}

TEST_F(Report, RecompilesWithoutEndAreSaidWhenTheyHaveDoubled) {
  const torch::Tensor x = torch::ones({20, 3}).to(test_device());
  const std::string lines = said_of("step", 14, [&](int64_t i) { return x.slice(0, 0, i + 1) * 2; });
  EXPECT_EQ(count_of("recompile: ", lines), 4u) << lines;  // programs 3, 4, 6 and 10
  EXPECT_THAT(lines, AllOf(HasSubstr("(its number 10)"), HasSubstr(" (said again after 8 of them)\n")));
  EXPECT_THAT(metrics_report(), HasSubstr("  - 12 recompiles after the second program of a boundary"));
}

TEST_F(Report, EachKindOfRecompileHasItsRemedy) {
  DeviceOptions options;
  options.host_shapes = false;  // else masks that never settle go to the host: lengths_test.cc
  restart(options);
  const torch::Device device = test_device();
  const torch::Tensor x = torch::arange(40, torch::kFloat).reshape({20, 2}).to(device);
  const auto line = [](const char* operation, const char* change) {
    return ContainsRegex(base::str(" needs a new program \\(its number 3\\): ", operation,
                                   " at reports_test\\.cc:[0-9]+: .*", change,
                                   ".*; 2 programs so far took [0-9.]+ m?s to compile; "));
  };
  const auto mask = HasSubstr(
      "a mask picks another number of values each time: compute with the mask "
      "(torch::where(mask, x, 0)), use index_select");
  const auto lengths = HasSubstr("pad to a few lengths");
  EXPECT_THAT(said_of("masked", 4, [&](int64_t i) { return x.masked_select(x < 6 + 3 * i) * 2; }),
              AllOf(line("masked_select", "was "), mask));
  EXPECT_THAT(said_of("indexed", 4, [&](int64_t i) { return x.index({x.select(1, 0) < 4 + 6 * i}).exp(); }),
              AllOf(line("index", "was "), mask));
  EXPECT_THAT(said_of("nonzero", 4, [&](int64_t i) { return torch::nonzero(x < 7 + 3 * i).sum(0); }),
              AllOf(line("nonzero", "was "), mask));
  EXPECT_THAT(
      said_of("unique", 4, [&](int64_t i) { return std::get<0>(at::_unique(x.clamp_max(8 + 3 * i))).sin(); }),
      AllOf(line("_unique", "was "), HasSubstr("its length depends on values: call it on the host")));
  EXPECT_THAT(said_of("sliced", 4, [&](int64_t i) { return x.slice(0, 0, 9 + i).sqrt(); }),
              AllOf(line("slice", "its part has shape \\[11, 2\\], was \\[10, 2\\]"),
                    HasSubstr("slices of one length share a program wherever they begin"), lengths));
  EXPECT_THAT(said_of("rows", 4,
                      [&](int64_t i) {
                        return torch::cat({x, torch::ones({i + 1, 2}).to(device)});
                      }),
              AllOf(line("cat", "operand 1 is tensor<3x2xf32>, was tensor<2x2xf32>"), lengths));
  EXPECT_THAT(said_of("joined", 4, [&](int64_t i) { return x.pow(1.5 + static_cast<double>(i)); }),
              AllOf(line("pow", "argument 'exponent' is 3.5, was 2.5"),
                    HasSubstr("pass it as a tensor, torch::full({}, value, device)")));
  EXPECT_THAT(said_of("power", 4, [&](int64_t i) { return x.roll({i + 1}, {0}); }),
              AllOf(line("roll", "argument 'shifts' is \\[3\\], was \\[2\\]"),
                    HasSubstr("pass positions as a tensor (index_select, gather)")));
}

// Reads have no boundary of their own: each place in the source is one.
TEST_F(Report, ReadsThatNeedMoreAndMoreProgramsNameTheirPlace) {
  const torch::Tensor x = torch::ones({80, 2}).to(test_device());
  const std::string lines = warned([&] {
    for (int64_t i = 0; i < 60; ++i) x.slice(0, 0, i + 1).sum(0).cpu();
  });
  EXPECT_THAT(lines,
              ContainsRegex("recompile: the read at reports_test\\.cc:[0-9]+ needs a new program \\(its "
                            "number 3\\): slice at reports_test\\.cc:[0-9]+: its part has shape \\[3, "
                            "2\\], was \\[2, 2\\]; 2 programs so far took "));
  EXPECT_EQ(count_of("recompile: ", lines), 6u) << lines;  // 1, 2, 4, 8, 16 and 32 times
  EXPECT_EQ(count_of("50 programs were compiled for values that the host reads", lines), 1u) << lines;
}

TEST_F(Report, AProgramThatCompilesForLongSaysSo) {
  ::setenv("SLUICE_SLOW_COMPILE", "0.002", 1);
  torch::Tensor x = torch::ones({5, 5}).to(test_device());
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) x = x.mm(x).softmax(1);
    sync("long step");
  };
  const std::string lines = warned(work);
  EXPECT_THAT(lines, ContainsRegex("the program for 'long step' \\([0-9]+ operations, launched at "
                                   "reports_test\\.cc:[0-9]+\\) has been compiling for [0-9.]+ m?s; "));
  EXPECT_THAT(lines, ContainsRegex("the program for 'long step' was compiled in [0-9.]+ m?s\n"));
  ::setenv("SLUICE_SLOW_COMPILE", "0", 1);
  restart();
  x = torch::ones({5, 5}).to(test_device());
  EXPECT_EQ(warned(work), "");
  ::unsetenv("SLUICE_SLOW_COMPILE");
}

TEST_F(Report, FindsNothingInAGoodRun) {
  torch::Tensor x = torch::ones({3}).to(test_device());
  for (int i = 0; i < 10; ++i) {
    x = x * 0.5;
    sync("step");
  }
  wait();
  EXPECT_THAT(metrics_report(),
              AllOf(HasSubstr("Findings\n  none\n"), HasSubstr("Fallbacks to the CPU\n  none"),
                    HasSubstr("Host reads\n  none\n"), Not(HasSubstr("Recompiles")),
                    ContainsRegex("  devices busy +[0-9.]+ [mu]?s \\([0-9]+ % of ")));
}

TEST_F(Report, CountsBuffersAndValues) {
  const torch::Tensor x = torch::ones({3}).to(test_device());
  const int64_t made = pjrt::Buffer::made(), freed = pjrt::Buffer::freed();
  for (int i = 0; i < 4; ++i) (void)(x + i).cpu();
  const Fetch fetched = fetch(x);
  (void)fetched.get();
  (void)fetched.get();
  EXPECT_GE(pjrt::Buffer::made() - made, 4);
  EXPECT_GE(pjrt::Buffer::freed() - freed, 3);  // the last may still be in flight
  EXPECT_THAT(metrics_report(), AllOf(ContainsRegex("to the host 5 \\([0-9]+ B, [0-9.]+ a second\\)\n"),
                                      ContainsRegex("  buffers: [0-9]+ made, [0-9]+ freed, [0-9]+ live\n")));
}

TEST_F(Report, FindsHostReadsAndFallbacks) {
  torch::Tensor x = (torch::ones({3}) + 0.1).to(test_device());
  for (int i = 0; i < 20; ++i) {
    x = x * 0.5;
    x.sum().item<float>();
  }
  warned([&] {
    for (int i = 0; i < 3; ++i) torch::special_airy_ai(x);
  });
  EXPECT_THAT(metrics_report(),
              AllOf(ContainsRegex("  - .*item.* at reports_test\\.cc:[0-9]+, 20 times for [0-9]+ programs: "
                                  "[0-9]+ % of the time is waiting; use session\\.log_every\n"),
                    HasSubstr("special_airy_ai ran on the CPU 3 times; --strict makes it an error\n")));
}

// The text of the sluice::Error that the call must throw for want of memory.
std::string shortage(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// No machine has a pebibyte for one value.
torch::Tensor too_large(const torch::Tensor& one) {
  return one.reshape({1, 1}).expand({int64_t{1} << 36, int64_t{1} << 12}) * 2;
}

class Memory : public Report {
 protected:
  void SetUp() override {
    Report::SetUp();
    if (on_cpu()) return;
    weight_ = torch::ones({1}).to(test_device());
    momentum_ = torch::ones({1 << 12, 300}).to(test_device());
    batch_ = torch::ones({1 << 12, 200}).to(test_device());
    name_tensors({{"encoder.fc.weight", weight_}});
    label_tensors({{"optimizer.encoder.fc.weight.momentum_buffer", momentum_}});
    kept_ = batch_ * weight_;
    sync_and_wait();
  }
  torch::Tensor weight_, momentum_, batch_, kept_;
};

TEST_F(Memory, AResultThatDoesNotFitNamesTensorsAndLayers) {
  torch::Tensor result = too_large(weight_);
  const std::string said = shortage([] { sync("step"); });
  EXPECT_THAT(said, ContainsRegex("^launching program [0-9]+ \\('step'\\): "));
  EXPECT_THAT(said, HasSubstr("\nThe device's memory did not suffice:"));
  EXPECT_THAT(said, ContainsRegex("\n  the program needs [0-9]+ B for its arguments, 1 PiB for its results"));
  EXPECT_THAT(said, HasSubstr("\n  its largest values at the peak, which is in encoder.fc, aten::mul"));
  EXPECT_THAT(
      said,
      HasSubstr("\n    1 PiB  tensor<68719476736x4096xf32>  stablehlo.multiply  encoder.fc, aten::mul"));
  EXPECT_THAT(said, ContainsRegex("\n  on each device between programs: [0-9]+ tensors of "));
  EXPECT_THAT(said,
              HasSubstr("\n    4.69 MiB  tensor<4096x300xf32>  optimizer.encoder.fc.weight.momentum_buffer"));
  EXPECT_THAT(said, HasSubstr("\n    3.12 MiB  tensor<4096x200xf32>  from the host"));
  EXPECT_THAT(
      said,
      ContainsRegex("\n    3.12 MiB  tensor<4096x200xf32>  of aten::mul[^\n]* in layer encoder.fc.weight"));
  EXPECT_THAT(said, HasSubstr("\n    4 B  tensor<1xf32>  encoder.fc.weight"));
  EXPECT_THAT(said, HasSubstr("\n  what helps: a smaller --batch-size, with --accumulate"));
  // The device goes on, and the lost tensor says why it has no value.
  expect_same(weight_ * 3, torch::full({1}, 3.0F), 0);
  EXPECT_ANY_THROW(result.sum());
}

// XLA's CPU plugin finds out while the program runs, and says so with another code.
TEST_F(Memory, WhatAProgramLacksWhileItRunsIsSaidByWhoeverComesNext) {
  // Sorted columns, of which two numbers are taken: nothing that the compiler could see without sorting.
  const auto middle = [&] {
    const torch::Tensor rows =
        torch::arange(int64_t{1} << 36, torch::TensorOptions(test_device()).dtype(torch::kFloat));
    const torch::Tensor table = rows.unsqueeze(1) * weight_.expand({1, 1 << 12});
    return std::get<0>(table.sort(0)).select(0, 0).slice(0, 0, 2) + 1;
  };
  torch::Tensor first = middle();
  sync("later");
  const auto expected =
      AllOf(ContainsRegex("program [0-9]+ \\('later'\\) failed: "),
            HasSubstr("The device's memory did not suffice"), HasSubstr("for temporary values"),
            HasSubstr("stablehlo.sort  encoder.fc, aten::sort"), HasSubstr("what helps: "));
  EXPECT_THAT(shortage([] { wait(); }), expected);
  torch::Tensor second = middle();
  sync("later");
  EXPECT_THAT(shortage([&] { second.cpu(); }), expected);
  torch::Tensor third = middle();
  Fetch fetched = fetch(third);
  sync("later");
  EXPECT_THAT(shortage([&] { fetched.get(); }), expected);
  expect_same(weight_ * 3, torch::full({1}, 3.0F), 0);
}

// A device of 64 MiB, as the emulated pod makes it.
TEST(SmallDevice, UploadsAndLaunchesSayWhatItHasAndWhatHasIt) {
  if (on_cpu()) GTEST_SKIP();
  ::setenv("EMULATED_POD_DEVICES", "1", 1);
  ::setenv("EMULATED_POD_MEMORY", "67108864", 1);
  DeviceOptions options;
  options.plugin = SLUICE_POD_PLUGIN_PATH;
  restart(options);
  ::unsetenv("EMULATED_POD_MEMORY");
  ::unsetenv("EMULATED_POD_DEVICES");
  const torch::Device device(torch::kXLA, 0);
  const torch::Tensor weight = torch::ones({1 << 20, 4}).to(device);
  name_tensors({{"decoder.weight", weight}});
  const std::string upload = shortage([&] { torch::ones({1 << 20, 16}).to(device); });
  EXPECT_THAT(upload, HasSubstr("copying a tensor<1048576x16xf32> of the host to device 0: "));
  EXPECT_THAT(upload, ContainsRegex("\n  device 0 \\([^)]+\\): 64 MiB of memory, 16 MiB in use"));
  EXPECT_THAT(upload, HasSubstr("\n  on each device between programs: 1 tensor of 16 MiB; the largest:\n"
                                "    16 MiB  tensor<1048576x4xf32>  decoder.weight\n"));
  const torch::Tensor wide = weight.repeat({1, 4});
  const std::string step = shortage([] {
    sync("step");
    wait();
  });
  EXPECT_THAT(step, ContainsRegex("program 1 \\('step'\\)"));
  EXPECT_THAT(step, ContainsRegex("\n  device 0 \\([^)]+\\): 64 MiB of memory, "));
  EXPECT_THAT(step, ContainsRegex("\n  the program needs 16 MiB for its arguments, 64 MiB for its results"));
  EXPECT_THAT(step, HasSubstr("\n    16 MiB  tensor<1048576x4xf32>  argument  decoder, aten::repeat\n"));
  EXPECT_THAT(step, HasSubstr("\n    16 MiB  tensor<1048576x4xf32>  decoder.weight\n"));
  expect_same(weight.slice(0, 0, 2) * 3, torch::full({2, 4}, 3.0F), 0);
  restart();
}

TEST_F(Memory, OtherErrorsStayAsTheyAre) {
  const Error other = device::explained(Error(Code::kInvalidArgument, "no"), "launching", nullptr);
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_STREQ(other.what(), "launching: no");
  const Error upload = device::explained(Error(Code::kResourceExhausted, "no"), "copying", nullptr);
  EXPECT_THAT(upload.what(),
              AllOf(HasSubstr("copying: no\nThe device's memory did not suffice.\n  on each device between "),
                    Not(HasSubstr("the program needs"))));
}

}  // namespace
}  // namespace sluice::tests
