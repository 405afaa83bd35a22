// The memory of an export, of a checkpoint that is larger than what the host holds of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sluice/base/test_memory.h"
#include "sluice/base/text/join.h"
#include "sluice/session/export/export_weights.h"
#include "sluice/session/export/test_checkpoint.h"
#include "sluice/session/files/weights.h"

namespace sluice::sessions {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// More than what an export holds of a tensor at a time.
constexpr int64_t kLargest = 48 * kMiB, kOther = 8 * kMiB;
constexpr int kOthers = 19;  // 200 MiB in all

at::Tensor counted_bytes(int64_t bytes, int from) {
  return at::arange(from, from + bytes / 4, at::kInt).mul_(0x1234567).view({-1, 2048});
}

NamedTensors large_model() {
  NamedTensors tensors = {{"table", counted_bytes(kLargest, 1)}};
  for (int i = 0; i < kOthers; ++i)
    tensors.emplace_back(base::str("layer.", i), counted_bytes(kOther, i + 2));
  return tensors;
}

int64_t peak_of_an_export(const std::string& from, const std::string& to) {
  ExportOptions options;
  options.part_bytes = 64 * kMiB;
  base::reset_peak_memory();
  const int64_t before = base::peak_memory();
  const ExportReport report = export_weights(from, to, options);
  const int64_t peak = base::peak_memory() - before;
  EXPECT_EQ(report.tensors, kOthers + 1);
  EXPECT_EQ(report.bytes, kLargest + kOthers * kOther);
  EXPECT_EQ(report.files, 4);
  return peak;
}

class ExportMemory : public testing::TestWithParam<bool> {};

TEST_P(ExportMemory, IsLessThanTheLargestTensor) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string from = folder.path("from"), to = folder.path("to"), one = folder.path("to.safetensors");
  if (GetParam())
    test::write_pieces(from, large_model(), 3);
  else
    test::write_one_file(from, large_model());
  // A bound below the size of the whole; the constant is for the reader's own buffers.
  constexpr int64_t kConstant = 40 * kMiB, kBound = kLargest / 5 * 6 + kConstant;
  const int64_t peak = peak_of_an_export(from, to);
  EXPECT_GT(peak, kOther) << "the peak was not measured";
  EXPECT_LT(peak, kBound);
  base::reset_peak_memory();
  const int64_t before = base::peak_memory();
  export_weights(from, one);
  EXPECT_LT(base::peak_memory() - before, kBound);
  const NamedTensors wanted = large_model();
  test::expect_same(base::value_or_throw(read_weights(to)), wanted);
  test::expect_same(base::value_or_throw(read_weights(one)), wanted);
}

INSTANTIATE_TEST_SUITE_P(OfOneFileAndOfPieces, ExportMemory, testing::Bool());

}  // namespace
}  // namespace sluice::sessions
