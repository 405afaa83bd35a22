#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/base/test_memory.h"
#include "sluice/session/files/checkpoint_writer.h"

namespace sluice::sessions {
namespace {

// Writes a model of `mib` MiB under two names, and returns the largest memory that the process held
// meanwhile.
int64_t peak_of_a_write(int64_t mib) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const Backend cpu("cpu", {}, {});
  torch::nn::Sequential model;
  for (int64_t i = 0; i < mib / 4; ++i)
    model->push_back(torch::nn::Linear(torch::nn::LinearOptions(1024, 1024).bias(false)));
  CheckpointWriter writer;
  base::reset_peak_memory();
  const int64_t before = base::peak_memory();
  const auto written =
      writer.write(take_snapshot(cpu, *model, {}, Progress()), {folder.path("best"), folder.path("last")});
  EXPECT_TRUE(written && writer.wait());
  return base::peak_memory() - before;
}

// The snapshot is one copy of the values, and no second one is made to write them.
TEST(Checkpoint, HoldsOneCopyOfTheValues) {
  constexpr int64_t kSmall = 48, kLarge = 192;
  const int64_t small = peak_of_a_write(kSmall), large = peak_of_a_write(kLarge);
  const double held = static_cast<double>(large - small) / static_cast<double>((kLarge - kSmall) << 20);
  EXPECT_GT(held, 0.8) << "the peak was not measured";
  EXPECT_LT(held, 1.2) << small << " and " << large << " bytes";
}

}  // namespace
}  // namespace sluice::sessions
