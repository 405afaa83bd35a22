// The time of a step by layer: from calls that were made up to the nanosecond.
#include "sluice/profile/layers.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "sluice/profile/host_lines.h"

namespace sluice::profile {
namespace {

using Kind = LayerRow::Kind;

NamedCall call(const std::string& layer, const std::string& pass, int64_t begin, int64_t end,
               double flops = -1, double bytes = 0) {
  return {
      layer, pass, {.target = "sluice_product", .begin = begin, .end = end, .flops = flops, .bytes = bytes}};
}
base::SpanRecord program(int64_t begin, int64_t end) { return {kProgramSpan, begin, end, {}}; }

std::map<std::string, double> times(const LayerTable& table) {
  std::map<std::string, double> found;
  for (const LayerRow& row : table.rows)
    found[row.pass.empty() ? row.name : row.name + " " + row.pass] = row.nanoseconds;
  return found;
}

// Everything that there is: the sum is the window.
double sum(const LayerTable& table) {
  return table.nanoseconds(Kind::kLayer) + table.nanoseconds(Kind::kCompiled) + *table.idle_nanoseconds;
}

TEST(Layers, HaveTheirCallsAndWhatLiesBetween) {
  const LayerTable table = layers_of(
      {call("a", "forward", 110, 120), call("b", "forward", 125, 145), call("a", "backward", 145, 175)},
      {program(100, 180)}, 90, 190, 1);
  const std::map<std::string, double> expected = {{"a forward", 10},
                                                  {"b forward", 20},
                                                  {"a backward", 30},
                                                  {"XLA, before a forward", 10},
                                                  {"XLA, between a forward and b forward", 5},
                                                  {"XLA, after a backward", 5}};
  EXPECT_EQ(times(table), expected);
  EXPECT_EQ(table.idle_nanoseconds, 20);
  EXPECT_EQ(table.rows.front().name, "a") << "the longest comes first";
  EXPECT_EQ(table.rows.front().pass, "backward");
}

// Two calls at the same time share it, so that the sum is the time that has passed.
TEST(Layers, ThatRunAtTheSameTimeShareIt) {
  const LayerTable table =
      layers_of({call("a", "", 100, 140), call("b", "", 120, 160), call("c", "", 120, 140)},
                {program(100, 160)}, 100, 160, 1);
  const auto found = times(table);
  EXPECT_DOUBLE_EQ(found.at("a"), 20 + 20.0 / 3);
  EXPECT_DOUBLE_EQ(found.at("b"), 20 + 20.0 / 3);
  EXPECT_DOUBLE_EQ(found.at("c"), 20.0 / 3);
  EXPECT_DOUBLE_EQ(sum(table), 60);
}

TEST(Layers, OfSeveralStepsAreAStepsMean) {
  std::vector<NamedCall> calls;
  std::vector<base::SpanRecord> programs;
  for (int64_t step = 0; step < 4; ++step) {
    const int64_t t = 100 * step;
    calls.push_back(call("a", "forward", t + 20, t + 60, 800, 80));
    programs.push_back(program(t, t + 100));
  }
  // The window begins and ends in the middle of a call: half of each counts.
  const LayerTable table = layers_of(calls, programs, 40, 340, 3);
  EXPECT_DOUBLE_EQ(table.step_nanoseconds, 100);
  const auto found =
      std::find_if(table.rows.begin(), table.rows.end(), [](const LayerRow& row) { return row.name == "a"; });
  ASSERT_NE(found, table.rows.end());
  const LayerRow& row = *found;
  EXPECT_DOUBLE_EQ(row.nanoseconds, 40);
  EXPECT_DOUBLE_EQ(row.calls, 1);
  EXPECT_DOUBLE_EQ(row.flops, 800);
  EXPECT_DOUBLE_EQ(row.bytes, 80);
  EXPECT_DOUBLE_EQ(times(table).at("XLA, after a forward"), 40);
  EXPECT_DOUBLE_EQ(times(table).at("XLA, before a forward"), 20);
}

TEST(Layers, ProgramsWithoutCallsAreSaidToBeSo) {
  const LayerTable table =
      layers_of({call("a", "", 20, 30)}, {program(0, 10), program(15, 30), program(30, 50)}, 0, 60, 1);
  const std::map<std::string, double> expected = {
      {"a", 10}, {"XLA, before a", 5}, {"XLA, programs without library kernels", 30}};
  EXPECT_EQ(times(table), expected);
  EXPECT_EQ(table.idle_nanoseconds, 15);
}

// Whatever calls and programs do, each moment of the window is somewhere, once.
TEST(Layers, AddUpToTheWindow) {
  std::mt19937 random(1);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<base::SpanRecord> programs;
    std::vector<NamedCall> calls;
    for (int64_t t = below(50); t < 1000; t += below(40)) {
      const int64_t end = t + 1 + below(200);
      programs.push_back(program(t, end));
      t = end;
    }
    for (int i = 0; i < 30; ++i) {
      const int64_t begin = below(1000);
      calls.push_back(call(std::string(1, static_cast<char>('a' + below(5))), "", begin, begin + below(60)));
    }
    std::sort(calls.begin(), calls.end(),
              [](const auto& a, const auto& b) { return a.call.begin < b.call.begin; });
    const int64_t begin = below(300), end = begin + 1 + below(800);
    const LayerTable table = layers_of(calls, programs, begin, end, 1);
    EXPECT_NEAR(sum(table), static_cast<double>(end - begin), 1e-6) << "round " << round;
    // Moment by moment.
    int64_t busy = 0, idle = 0;
    for (int64_t t = begin; t < end; ++t) {
      const auto runs = [t](const base::SpanRecord& span) { return span.begin <= t && t < span.end; };
      const bool called = std::any_of(calls.begin(), calls.end(), [t](const NamedCall& c) {
        return c.call.begin <= t && t < c.call.end;
      });
      busy += called ? 1 : 0;
      idle += !called && std::none_of(programs.begin(), programs.end(), runs) ? 1 : 0;
    }
    EXPECT_NEAR(table.nanoseconds(Kind::kLayer), static_cast<double>(busy), 1e-6) << "round " << round;
    EXPECT_NEAR(*table.idle_nanoseconds, static_cast<double>(idle), 1e-6) << "round " << round;
  }
}

TEST(Bound, IsTheRoofThatIsLower) {
  LayerRow row{.name = "a", .pass = "", .nanoseconds = 1000, .calls = 1, .flops = 500'000, .bytes = 1000};
  const Peaks peaks{1e15, 1e10};  // 0.5 ns of operations, 100 ns of bytes
  auto bound = bound_of(row, peaks);
  ASSERT_TRUE(bound);
  EXPECT_FALSE(bound->by_compute);
  EXPECT_DOUBLE_EQ(bound->share, 0.1);
  bound = bound_of(row, {1e12, 1e10});  // 500 ns of operations
  ASSERT_TRUE(bound);
  EXPECT_TRUE(bound->by_compute);
  EXPECT_DOUBLE_EQ(bound->share, 0.5);
  EXPECT_FALSE(bound_of(row, {1e12, 0})) << "one roof is not known";
  row.bytes = 0;
  EXPECT_FALSE(bound_of(row, peaks)) << "its bytes are not known";
  row.bytes = 1000;
  row.kind = Kind::kCompiled;
  EXPECT_FALSE(bound_of(row, peaks)) << "nothing is known of its work";
}

LayerTable small_table() {
  LayerTable table = layers_of({call("conv1", "forward", 10'000'000, 30'000'000, 2e9, 3 << 20),
                                call("bn1", "forward", 40'000'000, 50'000'000, -1, 2 << 20)},
                               {program(0, 60'000'000)}, 0, 100'000'000, 1);
  table.peaks = {2e11, 1e10, "measured on 2 threads"};
  return table;
}

TEST(Layers, InWords) {
  const std::string text = layers_in_words(small_table());
  EXPECT_NE(
      text.find("By layer, a step: library kernels 30.000 ms (30.0 %), XLA's code around them 30.000 ms "
                "(30.0 %), no program on the device 40.000 ms (40.0 %)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("At most 200.0 GFLOP/s and 10.0 GB/s, measured on 2 threads"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("    20.000   20.00      1.0     2.000       3.00     100.0  compute 50 %   conv1 forward\n"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("    10.000   10.00      1.0                 2.00            memory 2 %     bn1 forward\n"),
      std::string::npos)
      << text;
  const std::string shortened = layers_in_words(small_table(), 2);
  EXPECT_NE(shortened.find("    30.000   30.00  in 3 more rows"), std::string::npos) << shortened;
}

TEST(Layers, WithoutPeaksSayNothingOfBounds) {
  LayerTable table = small_table();
  table.peaks = {};
  const std::string text = layers_in_words(table);
  EXPECT_EQ(text.find("At most"), std::string::npos) << text;
  EXPECT_EQ(text.find(" % conv1"), std::string::npos) << text;
  EXPECT_NE(text.find("conv1 forward\n"), std::string::npos) << text;
}

TEST(Layers, AsJsonHaveNoNumberThatIsNotKnown) {
  const auto page = nlohmann::json::parse(layers_as_json(small_table()));
  EXPECT_EQ(page.at("ms"), 100.0);
  EXPECT_EQ(page.at("layers_ms"), 30.0);
  EXPECT_EQ(page.at("compiled_ms"), 30.0);
  EXPECT_EQ(page.at("no_program_ms"), 40.0);
  ASSERT_EQ(page.at("rows").size(), 5u);
  const auto& conv = page.at("rows")[0];
  EXPECT_EQ(conv.at("name"), "conv1");
  EXPECT_EQ(conv.at("pass"), "forward");
  EXPECT_EQ(conv.at("flops"), 2e9);
  EXPECT_EQ(conv.at("flops_per_second"), 1e11);
  EXPECT_EQ(conv.at("bound_by"), "compute");
  for (const auto& row : page.at("rows")) {
    EXPECT_EQ(row.contains("flops"), row.at("name") == "conv1");
    EXPECT_EQ(row.contains("bytes") && row.contains("bound_by"), row.at("kind") == "layer");
  }
}

TEST(KernelCalls, AtTheSameTimeAreOnLinesOfTheirOwn) {
  const KernelCalls calls{{call("a", "forward", 0, 10), call("b", "", 5, 15), call("c", "", 10, 20)}, 0};
  const auto lines = lines_of(calls);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "xla:0, library kernels");
  ASSERT_EQ(lines[0].spans.size(), 2u);
  EXPECT_STREQ(lines[0].spans[0].name, "a, forward");
  EXPECT_STREQ(lines[0].spans[1].name, "c");
  EXPECT_EQ(lines[1].name, "xla:0, library kernels 2");
  EXPECT_NE(lines[0].id, lines[1].id);
}

TEST(KernelCalls, AreNamedByTheirLocation) {
  name_recorded(1001, {"layer1.0.conv1.weight/backward/aten::convolution_backward"});
  name_recorded(1002, {"aten::mm", [] { return std::string("train.cc:12"); }});
  name_recorded(1003, {"aten::mm", [] { return std::string(); }});
  ASSERT_TRUE(base::start_spans());
  for (const int64_t recorded : {1001, 1002, 1003, 0})
    record_kernel_call({.recorded = recorded, .target = "sluice_product", .begin = 10 - recorded, .end = 20});
  const int64_t since = base::stop_spans().begin;
  const KernelCalls found = take_kernel_calls(-5000);
  ASSERT_EQ(found.calls.size(), 4u);
  EXPECT_EQ(found.calls[2].layer, "layer1.0.conv1");
  EXPECT_EQ(found.calls[2].pass, "backward");
  EXPECT_EQ(found.calls[1].layer, "aten::mm, first called at train.cc:12");
  EXPECT_EQ(found.calls[0].layer, "aten::mm") << "the order is that of their begin";
  EXPECT_EQ(found.calls[3].layer, "sluice_product");
  ASSERT_TRUE(base::start_spans());
  record_kernel_call({.recorded = 1001, .target = "sluice_product", .begin = since - 1, .end = since});
  base::stop_spans();
  EXPECT_TRUE(take_kernel_calls(since).calls.empty()) << "it began before";
}

}  // namespace
}  // namespace sluice::profile
