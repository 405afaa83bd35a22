#include "sluice/estimate/mesh_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::estimate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// A step over eight devices: a weight and its momentum of 8 MiB each in eighths, a table of 2 MiB that is
// whole, and a batch of 256 KiB in quarters. The gradient of the weight outlives it.
const char* const kStep =
    R"(module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["fsdp"=4, "tensor"=2]>
  func.func public @main(%arg0: tensor<1024x2048xf32> {tf.aliasing_output = 0 : i32, sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}p1, {"tensor"}p1]>}, %arg1: tensor<1024x2048xf32> {tf.aliasing_output = 1 : i32, sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}p1, {"tensor"}p1]>}, %arg2: tensor<1024x512xf32> {tf.aliasing_output = 2 : i32, sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg3: tensor<64x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}) -> (tensor<1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}p1, {"tensor"}p1]>}, tensor<1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}p1, {"tensor"}p1]>}, tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}p1, {"tensor"}p1]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
)";
const std::vector<std::string> kNames = {"fc.weight", "optimizer.fc.weight.momentum_buffer", "table.weight",
                                         ""};

stablehlo::LaidOutProgram step() { return stablehlo::read_layouts(kStep).value(); }
TpuSlice slice_named(const char* name) { return base::value_or_throw(find_tpu_slice(name)); }

pjrt::AheadProgram compiled(std::vector<pjrt::Collective> collectives = {}) {
  pjrt::AheadProgram program;
  program.memory = {.temporary = 5 * kMiB, .code = kMiB};
  program.collectives = std::move(collectives);
  program.output_types = {"tensor<256x1024xf32>", "tensor<256x1024xf32>", "tensor<1024x512xf32>",
                          "tensor<256x1024xf32>", "tensor<f32>"};
  return program;
}
MeshReport report_of(const char* name, std::vector<pjrt::Collective> collectives = {}) {
  return base::value_or_throw(
      mesh_report(slice_named(name), step(), kNames, compiled(std::move(collectives))));
}

TEST(MeshReport, MemoryByKind) {
  const MemoryByKind memory = report_of("v3-8").memory;
  EXPECT_EQ(memory.weights, 8 * kMiB / 8 + 2 * kMiB);
  EXPECT_EQ(memory.optimizer, 8 * kMiB / 8);
  EXPECT_EQ(memory.inputs, 64 * 1024 * 4 / 4);
  EXPECT_EQ(memory.results, 8 * kMiB / 8 + 4);  // the gradient, and the loss
  EXPECT_EQ(memory.temporary, 5 * kMiB);
  EXPECT_EQ(memory.code, kMiB);
}

TEST(MeshReport, WithoutNamesWhatIsReplacedCountsAsWeights) {
  const auto report = base::value_or_throw(mesh_report(slice_named("v3-8"), step(), {}, compiled()));
  EXPECT_EQ(report.memory.weights, 4 * kMiB);
  EXPECT_EQ(report.memory.optimizer, 0);
}

TEST(MeshReport, WhatIsWhole) {
  const auto whole = report_of("v3-8").whole;
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].name, "table.weight");
  EXPECT_EQ(whole[0].type, "tensor<1024x512xf32>");
  EXPECT_EQ(whole[0].bytes, 2 * kMiB);
}

TEST(MeshReport, AxesOfGroups) {
  const Mesh mesh({{"fsdp", 4}, {"tensor", 2}});
  EXPECT_EQ(axes_of(mesh, {0, 1}), "tensor");
  EXPECT_EQ(axes_of(mesh, {0, 2, 4, 6}), "fsdp");
  EXPECT_EQ(axes_of(mesh, {1, 3, 5, 7}), "fsdp");
  EXPECT_EQ(axes_of(mesh, {0, 1, 2, 3, 4, 5, 6, 7}), "fsdp+tensor");
  EXPECT_EQ(axes_of(mesh, {0, 4}), "fsdp (a part)");
  EXPECT_EQ(axes_of(mesh, {}), "other devices");
  EXPECT_EQ(axes_of(Mesh({{"data", 2}, {"fsdp", 4}}), {0, 1, 2, 3}), "fsdp");
}

double seconds(const char* name, const std::string& kind, std::vector<int64_t> group) {
  return report_of(name, {{kind, 1, 1'000'000, std::move(group)}}).exchanges.at(0).seconds;
}

// A v3's chip has two devices and 328 GB/s of links, a v5p's one device and 600 GB/s.
TEST(MeshReport, TheLinksBound) {
  const std::vector<int64_t> fsdp = {0, 2, 4, 6}, all = {0, 1, 2, 3, 4, 5, 6, 7};
  // Both devices of a chip get three quarters of a megabyte from other chips.
  EXPECT_DOUBLE_EQ(seconds("v3-8", "all-gather", fsdp), 2 * 0.75e6 / 328e9);
  EXPECT_DOUBLE_EQ(seconds("v3-8", "all-reduce", fsdp), 4 * 0.75e6 / 328e9);
  // A megabyte is what each of four devices keeps of four.
  EXPECT_DOUBLE_EQ(seconds("v3-8", "reduce-scatter", fsdp), 2 * 3e6 / 328e9);
  // All eight: a chip gets three quarters once, for both devices.
  EXPECT_DOUBLE_EQ(seconds("v3-8", "all-gather", all), 0.75e6 / 328e9);
  EXPECT_DOUBLE_EQ(seconds("v3-8", "all-to-all", all), 2 * 0.75e6 / 328e9);
  EXPECT_EQ(seconds("v3-8", "all-reduce", {0, 1}), 0);
  EXPECT_EQ(seconds("v3-8", "collective-permute", {0, 1}), 0);
  EXPECT_DOUBLE_EQ(seconds("v5p-16", "all-gather", all), 0.875e6 / 600e9);
  EXPECT_DOUBLE_EQ(seconds("v5p-16", "collective-permute", all), 1e6 / 600e9);
}

// Two slices of four v5p chips each, on one host each: fsdp spans them.
TEST(MeshReport, BetweenSlices) {
  const TpuSlice slices = base::value_or_throw(find_tpu_slices("2*v5p-8"));
  const auto report = base::value_or_throw(
      mesh_report(slices, step(), kNames,
                  compiled({{"all-gather", 1, 1'000'000, {0, 2}}, {"all-reduce", 2, 3'000'000, {}, true}})));
  ASSERT_EQ(report.exchanges.size(), 2u);
  EXPECT_EQ(report.exchanges[0].axes, "fsdp (a part)");
  EXPECT_EQ(report.exchanges[0].kind, "all-gather");
  EXPECT_EQ(report.exchanges[0].host_bytes, 0);
  EXPECT_EQ(report.exchanges[1].axes, "fsdp (a part)");
  EXPECT_EQ(report.exchanges[1].host_bytes, 4 * 3'000'000);
  EXPECT_EQ(report.exchanges[1].seconds, 0);
  EXPECT_EQ(report.host_bytes(), 12'000'000);
  ::testing::internal::CaptureStdout();
  print_mesh(slices.name, report, 0.25);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, AllOf(HasSubstr("2*v5p-8 over fsdp=4,tensor=2"), HasSubstr("between slices along"),
                          HasSubstr("12 MB")));
  EXPECT_EQ(mesh_json(report)["host_bytes_between_slices"], 12'000'000);
}

TEST(MeshReport, AWrongBlockIsAnError) {
  auto program = compiled();
  program.output_types[1] = "tensor<1024x2048xf32>";
  const auto report = mesh_report(slice_named("v3-8"), step(), kNames, program);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::kInternal);
  EXPECT_THAT(report.error().what(),
              AllOf(HasSubstr("result 1"), HasSubstr("expected tensor<256x1024xf32>")));
}

TEST(MeshReport, IsPrinted) {
  const auto report =
      report_of("v3-8", {{"all-reduce", 3, 4'000'000, {0, 1}}, {"all-gather", 2, 8'000'000, {0, 2, 4, 6}}});
  ::testing::internal::CaptureStdout();
  print_mesh("v3-8", report, 0.25);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, AllOf(HasSubstr("v3-8 over fsdp=4,tensor=2"), HasSubstr("3 MiB"),
                          HasSubstr("table.weight"), HasSubstr("all-gather"), HasSubstr("250 ms")));
  EXPECT_LT(text.find("all-gather"), text.find("all-reduce"));  // fsdp before tensor
  const auto json = mesh_json(report);
  EXPECT_EQ(json["exchanges"][0]["axes"], "fsdp");
  EXPECT_EQ(json["exchanges"][1]["count"], 3);
  EXPECT_EQ(json["memory"]["weights"], 3 * kMiB);
}

}  // namespace
}  // namespace sluice::estimate
