// Programs are compiled once for each signature. What a recompile says is tested with the device's reports
// (tests/device/reports_test.cc).
#include "sluice/device/program/program.h"

#include <gmock/gmock.h>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/device/device.h"
#include "sluice/device/testing/recording.h"

namespace sluice::device::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class Programs : public Recording {
 protected:
  static void start(const std::string& dump = "") {
    DeviceOptions options;
    options.cache = false;
    options.dump = dump;
    init(options);
  }
  void SetUp() override { start(); }
  void TearDown() override {
    trace.clear();
    shutdown();
  }
  // The program of exp(x), for the boundary `what`, with an operation that nobody keeps.
  ProgramPtr exp_program(int64_t size, std::string_view what) {
    const at::Tensor x = input({size}), y = record("aten::exp", {x});
    record("aten::sin", {x});
    std::vector<uint32_t> output_of;
    const Plan plan = make_plan(trace, runtime().world, output_of);
    canonical_ = canonical_hash(trace, plan);
    return find_program(trace, plan, what);
  }
  uint64_t canonical_ = 0;
};

TEST_F(Programs, AreFoundBySignatureWhateverTheBoundary) {
  const int64_t before = counters().programs;
  const ProgramPtr first = exp_program(3, "step");
  trace.clear();
  EXPECT_EQ(exp_program(3, "step"), first);
  trace.clear();
  EXPECT_EQ(exp_program(3, "sync"), first);
  trace.clear();
  EXPECT_EQ(counters().programs - before, 1);
  EXPECT_NE(exp_program(4, "step"), first);
  EXPECT_EQ(counters().programs - before, 2);
}

TEST_F(Programs, KnowWhatTheyWereMadeOf) {
  const ProgramPtr made = exp_program(3, "step");
  const Program& program = *made;
  EXPECT_THAT(program.instances, ElementsAre(instance_of("aten::exp", {input({3})}).id));
  EXPECT_EQ(program.canonical, canonical_);
  EXPECT_EQ(program.estimate.peak_bytes, 24);  // x and its exponential
  EXPECT_NE(program.executable, nullptr);
}

// Each place that reads a value has programs of its own: nothing to warn of.
TEST_F(Programs, HostReadsOfSeveralPlacesAreNoRecompiles) {
  ::testing::internal::CaptureStderr();
  exp_program(1, kHostRead);
  trace.clear();
  exp_program(2, kHostRead);
  trace.clear();
  exp_program(3, kHostRead);
  trace.clear();
  exp_program(4, kHostRead);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Programs, ThatWereForgottenAreCompiledAgain) {
  exp_program(3, "step");
  trace.clear();
  const int64_t before = counters().programs;
  forget_programs();
  exp_program(3, "step");
  EXPECT_EQ(counters().programs - before, 1);
}

TEST_F(Programs, AreDumpedInTheOrderInWhichTheyAreMade) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  shutdown();
  start(folder.path());
  exp_program(3, "step");
  trace.clear();
  exp_program(3, "again");
  trace.clear();
  exp_program(4, kHostRead);
  EXPECT_THAT(base::value_or_throw(base::list_directory(folder.path())),
              ElementsAre("0000-step.mlir", "0001-host_read.mlir"));
}

}  // namespace
}  // namespace sluice::device::testing
