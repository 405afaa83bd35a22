// Compiling for slices that are not here. What needs libtpu is skipped without it.
#include "sluice/estimate/ahead_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "sluice/base/clock.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/pjrt/testing/programs.h"

namespace sluice::estimate {
namespace {

using pjrt::testing::add_program;
using pjrt::testing::all_reduce_program;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MemoryShortage, IsReadFromTheMessage) {
  const auto found = pjrt::memory_shortage(
      "E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO temporaries "
      "(18.58G) exceeds available HBM (15.48G). HLO module: big_arg.");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->needed / (1 << 30), 18.58, 1e-9);
  EXPECT_NEAR(found->available / (1 << 30), 15.48, 1e-9);
  EXPECT_NEAR(pjrt::memory_shortage("HLO temporaries (1.5M) exceeds available HBM (512.0K)")->needed,
              1.5 * (1 << 20), 1);
  EXPECT_FALSE(pjrt::memory_shortage("something else (1G)"));
  EXPECT_FALSE(pjrt::memory_shortage("HLO temporaries (x) exceeds available HBM (15.48G)"));
}

AheadRequest request(const std::string& slice, std::string text, int replicas = 0) {
  return {base::value_or_throw(find_tpu_slice(slice)), std::move(text), replicas};
}

// Puts another file in libtpu's place.
class AheadWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = ::getenv("TPU_LIBRARY_PATH");
    if (path != nullptr) saved_ = path;
  }
  void TearDown() override {
    saved_ ? ::setenv("TPU_LIBRARY_PATH", saved_->c_str(), 1) : ::unsetenv("TPU_LIBRARY_PATH");
  }
  static Error compile_with(const char* library, const std::vector<std::string>& worker,
                            double deadline = 60) {
    ::setenv("TPU_LIBRARY_PATH", library, 1);
    AheadRequest wanted = request("v3-8", add_program());
    wanted.deadline_seconds = deadline;
    const auto report = compile_in_worker(worker, wanted);
    return report ? Error(Code::kOk, "compiled") : report.error();
  }
  std::optional<std::string> saved_;
};

TEST_F(AheadWorker, SaysHowToInstallLibtpu) {
  const Error error = compile_with("/no/libtpu.so", {SLUICE_COMPILE_WORKER});
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("scripts/setup --libtpu"));
}

TEST_F(AheadWorker, AProcessThatEndsIsAnError) {
  const Error error = compile_with(
      "/bin/sh", {"/bin/sh", "-c", "echo 'F1 x.cc] Check failed: HasCore(chip)' >&2; kill -ABRT $$"});
  EXPECT_EQ(error.code(), Code::kInternal);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("libtpu ended the compiler's process for v3-8 (signal 6"),
                                  HasSubstr("Check failed: HasCore(chip)")));
}

TEST_F(AheadWorker, AnEndlessCompileIsStopped) {
  const Error error = compile_with("/bin/sh", {"/bin/sh", "-c", "exec sleep 600"}, 0.2);
  EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
}

TEST_F(AheadWorker, AFileThatIsNoPluginIsAnError) {
  const Error error = compile_with("/bin/sh", {SLUICE_COMPILE_WORKER});
  EXPECT_THAT(error.what(), HasSubstr("compiling for v3-8: "));
}

class WithLibtpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto plugin = pjrt::find_plugin("tpu", pjrt::plugin_search_folders()); !plugin)
      GTEST_SKIP() << "libtpu is not installed; " << kInstallLibtpu;
  }
  static base::Result<AheadReport> compile(const AheadRequest& wanted) {
    return compile_in_worker({SLUICE_COMPILE_WORKER}, wanted);
  }
};

TEST_F(WithLibtpu, EveryGenerationCompiles) {
  for (const TpuGeneration& generation : tpu_generations()) {
    const std::string name = base::str(generation.prefix, "-", generation.sizes.front());
    const auto report = compile(request(name, add_program()));
    ASSERT_TRUE(report) << name << ": " << report.error().what();
    EXPECT_TRUE(report->fits) << name;
    EXPECT_THAT(report->device_kind, HasSubstr("TPU")) << name;
    // A device's memory is its share of the chip's, less what the system keeps.
    const double share = generation.memory_gib * (int64_t{1} << 30) / generation.devices_per_chip;
    EXPECT_LE(static_cast<double>(report->memory_limit), share * 1.01) << name;
    EXPECT_GE(static_cast<double>(report->memory_limit), share * 0.9) << name;
    EXPECT_GT(report->program.total_memory, 0) << name;
    EXPECT_THAT(report->program.collectives, IsEmpty()) << name;
  }
}

TEST_F(WithLibtpu, CollectivesAreCounted) {
  std::string all;
  for (int i = 0; i < 32; ++i) all += base::str(i == 0 ? "" : ", ", i);
  const auto report = compile(request("v3-32", all_reduce_program("[[" + all + "]]", "1x32")));
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->program.collectives, ElementsAre(pjrt::Collective{"all-reduce", 1, 16}));
}

TEST_F(WithLibtpu, WhatDoesNotFitSaysByHowMuch) {
  const auto report = compile(request("v3-8", add_program("tensor<2147483648xf32>")));
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_FALSE(report->fits);
  ASSERT_TRUE(report->shortage);
  EXPECT_NEAR(report->shortage->needed / (1 << 30), 24, 0.1);
  EXPECT_NEAR(report->shortage->available / (1 << 30), 15.48, 0.01);
  EXPECT_EQ(report->memory_limit, 16624107520);
}

TEST_F(WithLibtpu, ErrorsOfTheProgramHaveItsLine) {
  const auto report = compile(request("v6e-1", "module {\n  this is no program\n}\n"));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what(), AllOf(HasSubstr("compiling for v6e-1"), HasSubstr(":2:")));
}

TEST_F(WithLibtpu, TooManyReplicasAreRefused) {
  const auto report = compile(request("v3-8", add_program(), 9));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what(), HasSubstr("expected 1 to 8 replicas, one a device, found 9"));
}

}  // namespace
}  // namespace sluice::estimate
