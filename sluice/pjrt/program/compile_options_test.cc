#include "sluice/pjrt/program/compile_options.h"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/pjrt/named_value.h"
#include "sluice/pjrt/types.h"

namespace sluice::pjrt {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text.push_back(static_cast<char>(value));
  return text;
}

// Written out by hand from the wire format and the messages' field numbers.
TEST(CompileOptions, OneReplica) {
  EXPECT_EQ(serialize_compile_options(std::vector<int>{2}),
            bytes({0x1a, 26,  // executable_build_options
                   0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,  // device_ordinal = -1
                   0x20, 1,    0x28, 1,                                               // replicas, partitions
                   0x4a, 9,    0x08, 1,    0x10, 1,    0x1a, 3,    0x0a, 1,    2}));  // device_assignment
}

TEST(CompileOptions, ManyReplicas) {
  const std::string text = serialize_compile_options(std::vector<int>{0, 300});
  EXPECT_EQ(text.substr(text.size() - 13),
            bytes({0x4a, 11, 0x08, 2, 0x10, 1, 0x1a, 5, 0x0a, 3, 0, 0xac, 0x02}));
}

TEST(CompileOptions, ReplicasThatTheCompilerPlaces) {
  EXPECT_EQ(serialize_compile_options(32), bytes({0x1a, 15, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                  0xff, 0xff, 0x01, 0x20, 32, 0x28, 1}));
}

// The bytes that JAX 0.10.2 writes for these fields.
TEST(CompileOptions, Partitions) {
  EXPECT_EQ(
      serialize_partitioned_options(std::vector<int>{0, 1, 2, 3}),
      bytes({0x1a, 46,   0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
             0x01, 0x20, 1,    0x28, 4,    0x30, 1,  // replicas, partitions, use_spmd_partitioning
             0x4a, 24,   0x08, 1,    0x10, 4,        // device_assignment
             0x1a, 3,    0x0a, 1,    0,    0x1a, 3,    0x0a, 1,    1,    0x1a, 3,
             0x0a, 1,    2,    0x1a, 3,    0x0a, 1,    3,    0x98, 0x01, 1}));  // use_shardy_partitioner
  EXPECT_EQ(serialize_partitioned_options(std::vector<int>{2}),
            serialize_compile_options(std::vector<int>{2}));
}

TEST(CompileOptions, FlagsOfXla) {
  const std::string plain = serialize_compile_options(1);
  EXPECT_EQ(serialize_compile_options(1, {{"xla_a", "/x"}}),
            plain + bytes({0x3a, 13, 0x0a, 5}) + "xla_a" + bytes({0x12, 4, 0x0a, 2}) + "/x");
}

TEST(NamedValues, ThereAndBack) {
  const Options options = {{"flag", true},
                           {"list", std::vector<int64_t>{1, 2}},
                           {"name", std::string("x")},
                           {"number", int64_t{-5}},
                           {"ratio", 0.5f},
                           {"some_version", std::vector<int64_t>{1, 13, 3}}};
  const auto values = to_named_values(options);
  const auto texts = to_texts(values.data(), values.size());
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"flag", "true"},
                                                       {"list", "[1, 2]"},
                                                       {"name", "x"},
                                                       {"number", "-5"},
                                                       {"ratio", "0.5"},
                                                       {"some_version", "1.13.3"}}));
}

TEST(Types, ThereAndBack) {
  for (int i = 0; i < stablehlo::kDTypeCount; ++i) {
    const auto dtype = static_cast<stablehlo::DType>(i);
    EXPECT_EQ(from_buffer_type(to_buffer_type(dtype)), dtype);
  }
  EXPECT_FALSE(from_buffer_type(static_cast<c::PJRT_Buffer_Type>(21)));  // s4
}

TEST(Types, EqualTypesHaveOneAddress) {
  const stablehlo::Type a{stablehlo::DType::kF32, {2, 3}}, b{stablehlo::DType::kF32, {3, 2}};
  EXPECT_EQ(interned(a), interned(stablehlo::Type(a)));
  EXPECT_NE(interned(a), interned(b));
  EXPECT_EQ(*interned(b), b);
}

}  // namespace
}  // namespace sluice::pjrt
