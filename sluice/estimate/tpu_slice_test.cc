#include "sluice/estimate/tpu_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::estimate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Expected {
  const char *name, *topology;
  int chips, devices, hosts;
};

TEST(TpuSlice, NamesAsPeopleWriteThem) {
  for (const Expected& want : std::initializer_list<Expected>{{"v2-8", "v2:2x2", 4, 8, 1},
                                                              {"v2-256", "v2:8x16", 128, 256, 32},
                                                              {"v3-8", "v3:2x2", 4, 8, 1},
                                                              {"v3-32", "v3:4x4", 16, 32, 4},
                                                              {"v3-64", "v3:4x8", 32, 64, 8},
                                                              {"v3-2048", "v3:32x32", 1024, 2048, 256},
                                                              {"v4-8", "v4:2x2x1", 4, 4, 1},
                                                              {"v4-32", "v4:2x2x4", 16, 16, 4},
                                                              {"v4-64", "v4:2x4x4", 32, 32, 8},
                                                              {"v4-1024", "v4:8x8x8", 512, 512, 128},
                                                              {"v5litepod-1", "v5e:1x1", 1, 1, 1},
                                                              {"v5litepod-8", "v5e:2x4", 8, 8, 1},
                                                              {"v5litepod-16", "v5e:4x4", 16, 16, 4},
                                                              {"v5p-8", "v5p:2x2x1", 4, 4, 1},
                                                              {"v5p-16", "v5p:2x2x2", 8, 8, 2},
                                                              {"v6e-1", "v6e:1x1", 1, 1, 1},
                                                              {"v6e-4", "v6e:2x2", 4, 4, 1},
                                                              {"v6e-8", "v6e:2x4", 8, 8, 1},
                                                              {"v6e-256", "v6e:16x16", 256, 256, 64},
                                                              {"tpu7x-8", "tpu7x:2x2x1", 4, 8, 1},
                                                              {"tpu7x-128", "tpu7x:4x4x4", 64, 128, 16}}) {
    const auto slice = find_tpu_slice(want.name);
    ASSERT_TRUE(slice) << slice.error().what();
    EXPECT_EQ(slice->name, want.name);
    EXPECT_EQ(slice->topology, want.topology) << want.name;
    EXPECT_EQ(slice->chips, want.chips) << want.name;
    EXPECT_EQ(slice->devices, want.devices) << want.name;
    EXPECT_EQ(slice->hosts, want.hosts) << want.name;
  }
}

TEST(TpuSlice, OtherSpellings) {
  EXPECT_EQ(base::value_or_throw(find_tpu_slice(" V3-32 ")).name, "v3-32");
  EXPECT_EQ(base::value_or_throw(find_tpu_slice("v5e-16")).name, "v5litepod-16");
}

TEST(TpuSlice, Options) {
  EXPECT_TRUE(base::value_or_throw(find_tpu_slice("v3-32")).options.empty());
  const auto v4 = base::value_or_throw(find_tpu_slice("v4-8"));
  EXPECT_EQ(std::get<std::string>(v4.options.at("chip_config_name")), "megacore");
  const auto v6e = base::value_or_throw(find_tpu_slice("v6e-8"));
  EXPECT_EQ(std::get<std::vector<int64_t>>(v6e.options.at("chips_per_host_bounds")),
            (std::vector<int64_t>{2, 4, 1}));
}

TEST(TpuSlice, Several) {
  const TpuSlice one = base::value_or_throw(find_tpu_slices("v5p-32"));
  EXPECT_EQ(one.slices, 1);
  EXPECT_EQ(one.options.count("num_slices"), 0u);
  const TpuSlice two = base::value_or_throw(find_tpu_slices("2*V5p-32"));
  EXPECT_EQ(two.name, "2*v5p-32");
  EXPECT_EQ(two.topology, one.topology);
  EXPECT_EQ(two.slices, 2);
  EXPECT_EQ(two.chips, 2 * one.chips);
  EXPECT_EQ(two.devices, 32);
  EXPECT_EQ(two.hosts, 8);
  EXPECT_EQ(two.options.at("num_slices"), pjrt::OptionValue(int64_t{2}));
  for (const char* wrong : {"1*v5p-32", "*v5p-32", "two*v5p-32", "1000*v5p-32"})
    EXPECT_THAT(find_tpu_slices(wrong).error().what(), HasSubstr("a number from 2 to 256 before the *"))
        << wrong;
  EXPECT_THAT(find_tpu_slices("2*v5p_32").error().what(), HasSubstr("did you mean v5p-32?"));
  EXPECT_FALSE(find_tpu_slice("2*v5p-32")) << "it is not the name of a slice that can be made";
}

TEST(TpuSlice, WrongNamesNameTheNearest) {
  for (const auto& [name, near] : std::initializer_list<std::pair<const char*, const char*>>{
           {"v3_32", "did you mean v3-32?"},
           {"v5litepod16", "did you mean v5litepod-16?"},
           {"tpu7-8", "did you mean tpu7x-8?"},
           {"", "Known: v2-8 to v2-512, "},
           {"h100-8", "v6e-1 to v6e-256"}}) {
    const auto slice = find_tpu_slice(name);
    ASSERT_FALSE(slice) << name;
    EXPECT_EQ(slice.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(slice.error().what(), AllOf(HasSubstr("unknown TPU slice"), HasSubstr(near))) << name;
  }
  EXPECT_STREQ(
      find_tpu_slice("v2-16").error().what(),
      "there is no TPU slice 'v2-16': v2-N counts cores, two a chip, and N is one of 8, 32, 128, 256, "
      "512");
  EXPECT_THAT(find_tpu_slice("v6e-2").error().what(),
              HasSubstr("v6e-N counts chips, and N is one of 1, 4, 8"));
}

TEST(TpuSlice, EveryNameIsFound) {
  for (const std::string& name : tpu_slice_names()) {
    const auto slice = find_tpu_slice(name);
    ASSERT_TRUE(slice) << name;
    EXPECT_EQ(slice->name, name);
    int chips = 1;
    for (int bound : slice->bounds) chips *= bound;
    EXPECT_EQ(chips, slice->chips) << name;
    EXPECT_EQ(slice->devices, slice->chips * slice->generation->devices_per_chip);
  }
}

}  // namespace
}  // namespace sluice::estimate
