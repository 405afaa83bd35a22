#include "sluice/estimate/largest_buffers.h"

#include <gtest/gtest.h>

#include "sluice/base/files/file.h"

namespace sluice::estimate {
namespace {

// As libtpu 0.0.51 writes them.
const char* const kAssigned = R"(BufferAssignment:
allocation 0: size 16777216, page 0, parameter 0, shape |f32[1024,4096]| at ShapeIndex {}:
 value: <68 param.1 @0> (size=16777216,offset=0): f32[1024,4096]{1,0:T(8,128)}
allocation 14: size 46154752, page 0, preallocated-temp:
 value: <69 convert @0> (size=2097152,offset=0): bf16[256,4096]{1,0:T(8,128)(2,1)}
 value: <70 all-gather @0> (size=8388608,offset=12582912): bf16[1024,4096]{1,0:T(8,128)(2,1)}
 value: <75 multiply_reduce_fusion{1} @0> (size=2097152,offset=0): f32[512,1024]{1,0:T(8,128)}
 value: <78 fusion @0> (size=16777216,offset=29360128): f32[1024,4096]{1,0:T(8,128)}
 value: <79 nonsense
)";
const char* const kOptimized =
    R"(ENTRY %main {
  %all-gather = bf16[1024,4096]{1,0} all-gather(%convert), metadata={op_name="fc1.weight/aten::mm" stack_frame_id=2}
  %fusion = f32[1024,4096]{1,0} fusion(%all-gather), kind=kLoop
  ROOT %multiply_reduce_fusion = (f32[], f32[512,1024]) fusion(%convert), metadata={op_name="fc2/aten::tanh"}
}
)";

TEST(LargestBuffers, AreThoseOfTheTemporaryMemory) {
  const auto found = largest_buffers(kAssigned, kOptimized, 3);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].bytes, 16777216);
  EXPECT_EQ(found[0].type, "f32[1024,4096]");
  EXPECT_EQ(found[0].instruction, "fusion");
  EXPECT_EQ(found[0].operation, "");
  EXPECT_EQ(found[1].type, "bf16[1024,4096]");
  EXPECT_EQ(found[1].operation, "fc1.weight/aten::mm");
  // Two values of one place are one buffer, by the name of the first.
  EXPECT_EQ(found[2].instruction, "convert");
  EXPECT_EQ(largest_buffers(kAssigned, kOptimized, 8).size(), 3u);
  EXPECT_TRUE(largest_buffers("", "", 8).empty());
}

TEST(LargestBuffers, OfTheLargestProgramOfAFolder) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::write_file_atomically(folder.path(name), text));
  };
  EXPECT_TRUE(dumped_buffers(folder.path("none"), 5).empty());
  write("module_1.small.after_optimizations-buffer-assignment.txt", "BufferAssignment:\n");
  write("module_2.step.after_optimizations-buffer-assignment.txt", kAssigned);
  write("module_2.step.after_optimizations.txt", kOptimized);
  const auto found = dumped_buffers(folder.path(""), 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].operation, "fc1.weight/aten::mm");
}

}  // namespace
}  // namespace sluice::estimate
