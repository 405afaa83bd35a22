// Compiling for slices that are not here. What needs libtpu is skipped without it.
#include "sluice/estimate/ahead_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/estimate/gpu_slice.h"
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
using ::testing::Not;

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

// A transform of this type, recorded for a layer.
std::string fft_program(const std::string& number) {
  const std::string type = "tensor<3x8xcomplex<" + number + ">>";
  return "module @fft {\n  func.func @main(%x: " + type + ") -> " + type +
         " {\n    %y = \"stablehlo.fft\"(%x) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: "
         "8>} : (" +
         type + ") -> " + type + " loc(\"mixer.weight/aten::_fft_c2c\")\n    \"func.return\"(%y) : (" + type +
         ") -> ()\n  }\n}\n";
}

TEST(Refusal, NamesTheOperation) {
  const Error refused(Code::kInvalidArgument, "Unexpected operand type for FFT: c128[3,8]{1,0}");
  const Error named = pjrt::with_operation(refused, fft_program("f64"));
  EXPECT_EQ(named.code(), Code::kInvalidArgument);
  EXPECT_STREQ(
      named.what(),
      "mixer.weight/aten::_fft_c2c: a TPU has no Fourier transforms of f64 and complex128; transform f32 or "
      "complex64. The compiler says: Unexpected operand type for FFT: c128[3,8]{1,0}");
  EXPECT_STREQ(pjrt::with_operation(Error(Code::kUnknown, "X{64|128} types: s64[2] dot(…)"),
                                    "%z = \"stablehlo.dot_general\"(%x, %y) : tensor<2xi64>")
                   .what(),
               "a TPU has no products of matrices of 64-bit integers; multiply int32 or floats. The compiler "
               "says: X{64|128} types: s64[2] dot(…)");
}

TEST(Refusal, OtherErrorsStay) {
  const Error refused(Code::kInvalidArgument, "Unexpected operand type for FFT: c64[3,8]{1,0}");
  EXPECT_STREQ(pjrt::with_operation(refused, fft_program("f32")).what(), refused.what());
  EXPECT_STREQ(pjrt::with_operation(Error(Code::kInternal, "else"), fft_program("f64")).what(), "else");
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

TEST(AheadForGpus, SaysHowToInstallTheCompiler) {
  if (pjrt::find_plugin("cuda", pjrt::plugin_search_folders())) GTEST_SKIP() << "it is installed";
  AheadRequest wanted = request("v3-8", add_program());
  wanted.slice = base::value_or_throw(find_slice("h100-8"));
  const auto report = compile_in_worker({SLUICE_COMPILE_WORKER}, wanted);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::kNotFound);
  EXPECT_THAT(
      report.error().what(),
      AllOf(HasSubstr("compiling for h100-8 needs XLA's CUDA plugin, which is not installed"),
            HasSubstr("pip install jax-cuda13-pjrt nvidia-cuda-nvcc"), Not(HasSubstr("SLUICE_PLUGIN"))));
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
  std::vector<int64_t> devices(32);
  std::iota(devices.begin(), devices.end(), 0);
  const std::string all = base::join(devices, ", ");
  const auto report = compile(request("v3-32", all_reduce_program("[[" + all + "]]", "1x32")));
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->program.collectives, ElementsAre(pjrt::Collective{"all-reduce", 1, 16, devices}));
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
  const auto report = compile(request("v6e-1", "module {\n  this is not a program\n}\n"));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what(), AllOf(HasSubstr("compiling for v6e-1"), HasSubstr(":2:")));
}

TEST_F(WithLibtpu, AnOperationThatNoTpuHasIsNamed) {
  const auto report = compile(request("v5litepod-1", fft_program("f64")));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what(),
              HasSubstr("mixer.weight/aten::_fft_c2c: a TPU has no Fourier transforms"));
}

TEST_F(WithLibtpu, TooManyReplicasAreRefused) {
  const auto report = compile(request("v3-8", add_program(), 9));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().what(), HasSubstr("expected 1 to 8 replicas, one a device, found 9"));
}

}  // namespace
}  // namespace sluice::estimate
