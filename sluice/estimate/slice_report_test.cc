// compile_for_slice with a worker that answers from a script, and what is printed.
#include "sluice/estimate/slice_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sluice/base/files/file.h"

namespace sluice::estimate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kProgram =
    "module @m {\n  func.func public @main(%arg0: tensor<1024xf32>) -> tensor<1024xf32> {\n"
    "    %0 = \"stablehlo.tanh\"(%arg0) : (tensor<1024xf32>) -> tensor<1024xf32> "
    "loc(\"layer1.conv/aten::tanh\")\n"
    "    \"func.return\"(%0) : (tensor<1024xf32>) -> ()\n  }\n}\n";

const char* const kFits = R"({"device_kind": "TPU v3", "memory_limit": 16000000000, "program": {
  "seconds": 2.5, "arguments": 1, "outputs": 2, "aliased": 3, "temporary": 4, "code": 5, "total_memory": 8000000000,
  "flops": 61.5e12, "bytes_accessed": 45e9, "serialized_bytes": 9,
  "collectives": [{"kind": "all-reduce", "count": 1, "bytes": 102000000}]}})";
const char* const kDoesNot =
    R"({"device_kind": "TPU v3", "memory_limit": 16000000000, "does_not_fit": "E1000",
  "shortage": {"needed": 21474836480, "available": 16000000000}})";

class SliceReport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* path = ::getenv("TPU_LIBRARY_PATH")) saved_ = path;
    ::setenv("TPU_LIBRARY_PATH", "/bin/sh", 1);  // some file: the worker does not load it
  }
  void TearDown() override {
    saved_ ? ::setenv("TPU_LIBRARY_PATH", saved_->c_str(), 1) : ::unsetenv("TPU_LIBRARY_PATH");
  }

  // A worker that answers kFits while the program's text begins with a number up to `largest`.
  std::vector<std::string> worker(int64_t largest) {
    EXPECT_TRUE(base::write_file_atomically(folder_.path("fits"), kFits));
    EXPECT_TRUE(base::write_file_atomically(folder_.path("not"), kDoesNot));
    const std::string script = base::str(
        "program=$(sed 's/.*\"program\":\"\\([^\"]*\\)\".*/\\1/' \"$0\"); read -r slashes batch < "
        "\"$program\"; "
        "if [ \"$batch\" -le ",
        largest, " ]; then cp ", folder_.path("fits"), " \"$1\"; else cp ", folder_.path("not"),
        " \"$1\"; fi");
    return {"/bin/sh", "-c", script};
  }
  // The text begins with the batch.
  SliceResult compile(int64_t largest, SliceOptions options = {}, const std::string& program = kProgram) {
    options.worker = worker(largest);
    const StepSource source = [&](int64_t batch, const TpuSlice& slice) {
      EXPECT_EQ(slice.devices, 32);
      return StepText{base::str("// ", batch, "\n", program), true};
    };
    return base::value_or_throw(
        compile_for_slice(base::value_or_throw(find_tpu_slice("v3-32")), source, options));
  }
  // The text begins with the number of devices along data; a worker lets up to `largest` of them pass.
  SliceResult compile_over_meshes(int64_t largest, std::vector<std::string>& tried) {
    SliceOptions options;
    options.worker = worker(largest);
    const auto source = [&](const Mesh& mesh) -> StepSource {
      tried.push_back(mesh.str());
      return [mesh](int64_t, const TpuSlice&) {
        return StepText{base::str("// ", mesh.size("data"), "\n  ", mesh.declaration(),
                                  "\n  func.func public @main() -> () {\n"),
                        true};
      };
    };
    return base::value_or_throw(
        compile_over_a_mesh(base::value_or_throw(find_tpu_slice("v3-32")), source, options));
  }
  static std::string printed(const SliceResult& result, const EstimateOptions* options = nullptr) {
    ::testing::internal::CaptureStdout();
    options == nullptr ? print_compiled("a step", {result}) : print_estimate("a step", {result}, *options);
    return ::testing::internal::GetCapturedStdout();
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  std::optional<std::string> saved_;
};

// As JAX prints it.
TEST_F(SliceReport, AProgramFromElsewhereThatDoesNotFit) {
  const SliceResult result =
      compile(1, {},
              "module @jit_f {\n  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {\n"
              "    %0 = stablehlo.tanh %arg0 : tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n");
  EXPECT_FALSE(result.report.fits);
  EXPECT_EQ(result.error, "");
  EXPECT_FALSE(result.estimate);
  EXPECT_EQ(compiled_json(result)["compiled"]["fits"], false);
  EXPECT_THAT(printed(result), AllOf(HasSubstr("no, needs 20.00 GiB"),
                                     HasSubstr("v3-32 does not fit. Its largest values are not listed")));
}

TEST_F(SliceReport, WhatFits) {
  const SliceResult result = compile(128);
  EXPECT_TRUE(result.report.fits);
  EXPECT_FALSE(result.estimate);
  const auto json = compiled_json(result);
  EXPECT_EQ(json["devices"], 32);
  EXPECT_EQ(json["compiled"]["fits"], true);
  EXPECT_EQ(json["compiled"]["memory"], 8000000000);
  EXPECT_EQ(json["compiled"]["collectives"][0]["bytes"], 102000000);
  EXPECT_EQ(json["measured"]["compile_seconds"], 2.5);
  const std::string text = printed(result);
  EXPECT_THAT(text,
              AllOf(HasSubstr("v3-32  32       yes       7.45 GiB of 14.90 GiB"), HasSubstr("61.5 TFLOP"),
                    HasSubstr("1 all-reduce, 102 MB"), HasSubstr("2.5 s"), HasSubstr("measured")));
  EXPECT_THAT(text, Not(HasSubstr("collectives are missing")));
}

TEST_F(SliceReport, WhatDoesNotFitListsLayers) {
  const SliceResult result = compile(64);
  ASSERT_TRUE(result.estimate);
  EXPECT_EQ(compiled_json(result)["estimate"]["peak_bytes"], 8192);
  EXPECT_EQ(compiled_json(result)["compiled"]["memory"], 21474836480);
  EXPECT_THAT(printed(result), AllOf(HasSubstr("no, needs 20.00 GiB"), HasSubstr("estimate"),
                                     HasSubstr("tensor<1024xf32>  stablehlo.tanh  layer1, aten::tanh")));
}

TEST_F(SliceReport, TheLargestBatchAndTheCost) {
  SliceOptions options;
  options.max_batch = true;
  const SliceResult result = compile(200, options);
  EXPECT_EQ(result.max_batch, 200);
  const EstimateOptions estimate{list_prices(), 32 * 128 * 3600};
  const auto json = estimate_json(result, estimate);
  // 61.5 TFLOP on a device of 61.5 TFLOP/s: a second a step, an hour an epoch, on 16 chips.
  EXPECT_NEAR(json["bound"]["step_seconds"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(json["bound"]["hours"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(json["bound"]["on_demand"].get<double>(), 32.0, 1e-9);
  EXPECT_THAT(printed(result, &estimate),
              AllOf(HasSubstr("200"), HasSubstr("FLOPs"), HasSubstr("32.00"), HasSubstr("8.16"),
                    HasSubstr(kPriceDate), HasSubstr("bound")));
}

TEST_F(SliceReport, WithoutRoomTheBoundsAreForTheLargestBatch) {
  SliceOptions options;
  options.max_batch = true;
  const SliceResult result = compile(64, options);
  EXPECT_EQ(result.max_batch, 64);
  const EstimateOptions estimate{list_prices(), 32 * 64 * 10};
  const auto json = estimate_json(result, estimate);
  EXPECT_EQ(json["compiled"]["fits"], false);
  EXPECT_EQ(json["bound"]["batch"], 64);
  EXPECT_NEAR(json["bound"]["hours"].get<double>(), 10.0 / 3600, 1e-9);
  const SliceResult none = compile(4, options);
  EXPECT_EQ(none.max_batch, 0);
  EXPECT_FALSE(estimate_json(none, estimate).contains("bound"));
  EXPECT_THAT(printed(none, &estimate), HasSubstr("none"));
}

// A program of 32 devices over one mesh, as with_layouts() writes it.
std::string over_a_mesh(const std::string& mesh) {
  return base::str("module @m attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 32 : i32} {\n  ",
                   "sdy.mesh @mesh = <[", mesh, "]>\n  func.func public @main(%arg0: tensor<1024xf32> ",
                   "{sdy.sharding = #sdy.sharding<@mesh, [{\"fsdp\"}]>}) -> () {\n");
}

TEST_F(SliceReport, AMesh) {
  const SliceResult result = compile(128, {}, over_a_mesh("\"fsdp\"=32"));
  EXPECT_EQ(result.error, "");
  ASSERT_TRUE(result.over_mesh);
  EXPECT_EQ(result.over_mesh->memory.inputs, 1024 * 4 / 32);
  const auto json = compiled_json(result);
  EXPECT_EQ(json["mesh"], "fsdp=32");
  EXPECT_EQ(json["over_mesh"]["memory"]["temporary"], 4);
  EXPECT_THAT(printed(result),
              AllOf(HasSubstr("v3-32 over fsdp=32"), Not(HasSubstr("collectives are missing"))));
  EXPECT_EQ(compile(64, {}, over_a_mesh("\"fsdp\"=32")).mesh.str(), "fsdp=32");
  EXPECT_THAT(compile(128, {}, over_a_mesh("\"fsdp\"=8")).error,
              HasSubstr("fsdp=8 of 8 devices, and v3-32 has 32"));
}

TEST_F(SliceReport, TheSmallestPartThatFits) {
  std::vector<std::string> tried;
  const SliceResult result = compile_over_meshes(8, tried);
  EXPECT_EQ(result.mesh.str(), "data=8,fsdp=4");
  EXPECT_TRUE(result.report.fits);
  EXPECT_THAT(tried, ::testing::ElementsAre("data=32", "data=16,fsdp=2", "data=8,fsdp=4"));
  tried.clear();
  EXPECT_FALSE(compile_over_meshes(0, tried).report.fits);
  EXPECT_EQ(tried.back(), "fsdp=32");
  EXPECT_EQ(tried.size(), 6u);
}

TEST_F(SliceReport, AnErrorStandsInTheTable) {
  SliceResult result = compile(128);
  result.error = "compiling for v3-32: refused";
  EXPECT_THAT(printed(result), HasSubstr("v3-32  32       error"));
  EXPECT_EQ(compiled_json(result)["error"], "compiling for v3-32: refused");
}

}  // namespace
}  // namespace sluice::estimate
