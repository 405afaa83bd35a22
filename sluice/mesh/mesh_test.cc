#include "sluice/mesh/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/mesh/test_refusal.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(Mesh, TextThereAndBack) {
  for (const char* text : {"", "fsdp=4", "data=2,fsdp=-1", "data=2,fsdp=4,sequence=1,tensor=4"})
    EXPECT_EQ(Mesh::parse(text).str(), text);
  EXPECT_EQ(Mesh::parse(" data = 2 , fsdp = 4 ").str(), "data=2,fsdp=4");
  EXPECT_EQ(Mesh::parse("data=2"), Mesh({{"data", 2}}));
  EXPECT_EQ(Mesh({{"data", 2}, {"fsdp", 4}}).declaration(), "sdy.mesh @mesh = <[\"data\"=2, \"fsdp\"=4]>");
}

TEST(Mesh, AxesHaveOneOrder) {
  EXPECT_EQ(Mesh::parse("tensor=4,fsdp=2,data=3").str(), "data=3,fsdp=2,tensor=4");
}

TEST(Mesh, TheRest) {
  EXPECT_EQ(Mesh::parse("data=2,fsdp=-1").over(8).str(), "data=2,fsdp=4");
  EXPECT_EQ(Mesh::parse("fsdp=-1").over(1).str(), "fsdp=1");
  EXPECT_EQ(Mesh::parse("data=2,fsdp=4").over(8).devices(), 8);
  EXPECT_EQ(Mesh().over(1).devices(), 1);
  EXPECT_FALSE(Mesh::parse("fsdp=-1").complete());
  EXPECT_EQ(test::refusal([] { Mesh::parse("data=2,fsdp=4").over(4); }),
            "the mesh data=2,fsdp=4 needs 8 devices, found 4: change a size, or the number of devices");
  EXPECT_EQ(test::refusal([] { Mesh::parse("data=3,fsdp=-1").over(8); }),
            "the mesh data=3,fsdp=-1 needs a multiple of 3 devices, found 8: change a size, or the number of "
            "devices");
  EXPECT_THAT(test::refusal([] { (void)Mesh::parse("fsdp=-1").devices(); }), HasSubstr("-1 is the rest"));
}

// 2 × 3 devices: tensor varies fastest.
TEST(Mesh, PlacesOfDevices) {
  const Mesh mesh({{"tensor", 3}, {"data", 2}});
  const int64_t data[] = {0, 0, 0, 1, 1, 1}, tensor[] = {0, 1, 2, 0, 1, 2};
  for (int64_t device = 0; device < 6; ++device) {
    EXPECT_EQ(mesh.place(device, "data"), data[device]);
    EXPECT_EQ(mesh.place(device, "tensor"), tensor[device]);
    EXPECT_EQ(mesh.place(device, "fsdp"), 0);
  }
  EXPECT_EQ(mesh.size("tensor"), 3);
  EXPECT_EQ(mesh.size("fsdp"), 1);
}

TEST(Mesh, Refusals) {
  EXPECT_EQ(test::refusal([] { Mesh::parse("fsdb=4"); }),
            "\"fsdb\" is not an axis of a mesh: expected data, fsdp, sequence, tensor; did you mean fsdp?");
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp"); }),
              HasSubstr("has the part \"fsdp\": expected an axis and"));
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp=4,"); }), HasSubstr("has the part \"\""));
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp=four"); }), HasSubstr("gives fsdp the size \"four\""));
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp=0"); }), HasSubstr("has the size 0"));
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp=2,fsdp=2"); }), HasSubstr("the axis fsdp twice"));
  EXPECT_THAT(test::refusal([] { Mesh::parse("fsdp=-1,data=-1"); }), HasSubstr("several sizes of -1"));
  EXPECT_THAT(test::refusal([] { (void)Mesh::parse("fsdp=2147483647,data=2147483647").devices(); }),
              HasSubstr("more devices than any machine"));
  EXPECT_THAT(test::refusal([] { (void)Mesh().size("rows"); }), HasSubstr("\"rows\" is not an axis"));
}

}  // namespace
}  // namespace sluice
