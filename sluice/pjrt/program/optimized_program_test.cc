#include "sluice/pjrt/program/optimized_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::pjrt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Messages written by hand from the wire format; all lengths below 128.
std::string number(int field, int value) { return {static_cast<char>(field << 3), static_cast<char>(value)}; }
std::string bytes(int field, const std::string& content) {
  EXPECT_LT(content.size(), 128u);
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(content.size())} + content;
}
constexpr int kF32 = 11, kTuple = 13, kBF16 = 16, kU32 = 8;
std::string array(int type, const std::string& dims) { return number(2, type) + bytes(3, dims); }
std::string instruction(const std::string& opcode, const std::string& shape) {
  return bytes(2, bytes(1, "%x") + bytes(2, opcode) + bytes(3, shape));
}
// HloModuleProtoWithConfig with one computation.
std::string module_of(const std::string& instructions) {
  const std::string computation = bytes(1, "main") + instructions;
  const std::string module =
      bytes(1, "m") + std::string{3 << 3 | 2, static_cast<char>(computation.size())} + computation;
  std::string length;
  length.push_back(static_cast<char>((module.size() & 0x7f) | 0x80));
  length.push_back(static_cast<char>(module.size() >> 7));
  return std::string{1 << 3 | 2} + length + module;
}
std::vector<Collective> read(const std::string& hlo) { return base::value_or_throw(read_collectives(hlo)); }

TEST(Collectives, CountsKindsAndBytes) {
  const std::string two =
      number(2, kTuple) + bytes(4, array(kF32, "\x04")) + bytes(4, array(kBF16, "\x03\x02"));
  EXPECT_THAT(read(module_of(instruction("add", array(kF32, "\x04")) + instruction("all-reduce", two))),
              ElementsAre(Collective{"all-reduce", 1, 16 + 12}));
}

TEST(Collectives, StartsCountDonesDoNot) {
  const std::string pair = number(2, kTuple) + bytes(4, array(kF32, "\x02")) + bytes(4, array(kF32, "\x08"));
  const std::string hlo =
      module_of(instruction("all-gather-start", pair) + instruction("all-gather-done", array(kF32, "\x08")));
  EXPECT_THAT(read(hlo), ElementsAre(Collective{"all-gather", 1, 32}));
  EXPECT_THAT(read(module_of(instruction("all-reduce-start", array(kF32, "\x08")) +
                             instruction("all-reduce-start", array(kF32, "\x08")))),
              ElementsAre(Collective{"all-reduce", 2, 64}));
}

TEST(Collectives, ScalarsAndUnpackedDimensions) {
  EXPECT_THAT(read(module_of(instruction("reduce-scatter", number(2, kU32)))),
              ElementsAre(Collective{"reduce-scatter", 1, 4}));
  EXPECT_THAT(read(module_of(instruction("all-to-all", number(2, kF32) + number(3, 5) + number(3, 2)))),
              ElementsAre(Collective{"all-to-all", 1, 40}));
}

// An instruction with its number and its operands.
std::string numbered(int id, const std::string& opcode, const std::string& shape,
                     const std::string& operands) {
  const auto field = [](int number, int wire) {
    return std::string{static_cast<char>(((number << 3 | wire) & 0x7f) | 0x80),
                       static_cast<char>((number << 3 | wire) >> 7)};
  };
  return bytes(2, bytes(2, opcode) + bytes(3, shape) + field(35, 0) + static_cast<char>(id) + field(36, 2) +
                      static_cast<char>(operands.size()) + operands);
}
// A module whose only computation is the body of a fusion, or the program.
std::string computation_of(const std::string& instructions, int root, bool fusion = true) {
  const std::string computation = instructions + number(6, root) + number(7, fusion ? 1 : 0);
  const auto sized = [](int field, const std::string& content) {
    return std::string{static_cast<char>(field << 3 | 2), static_cast<char>((content.size() & 0x7f) | 0x80),
                       static_cast<char>(content.size() >> 7)} +
           content;
  };
  return sized(1, sized(3, computation));
}

TEST(Collectives, HalvesOfAnAllReduce) {
  const std::string whole = array(kF32, "\x10"), part = array(kF32, "\x02"), padded = array(kF32, "\x18");
  const std::string scatter = numbered(1, "parameter", whole, "") +
                              numbered(2, "all-reduce", padded, "\x01") +
                              numbered(3, "dynamic-slice", part, "\x02");
  EXPECT_THAT(read(computation_of(scatter, 3)), ElementsAre(Collective{"reduce-scatter", 1, 8}));
  EXPECT_THAT(read(computation_of(scatter, 3, false)), ElementsAre(Collective{"all-reduce", 1, 96}));
  EXPECT_THAT(read(computation_of(scatter + numbered(4, "add", padded, "\x02\x02"), 3)),
              ElementsAre(Collective{"all-reduce", 1, 96}));
  const std::string gather = numbered(1, "parameter", part, "") +
                             numbered(2, "dynamic-update-slice", padded, "\x01") +
                             numbered(3, "all-reduce", padded, "\x02") + numbered(4, "slice", whole, "\x03");
  EXPECT_THAT(read(computation_of(gather, 4)), ElementsAre(Collective{"all-gather", 1, 64}));
}

TEST(Collectives, HalvesOfTwoValuesAtOnce) {
  const std::string two = number(2, kTuple) + bytes(4, array(kF32, "\x10")) + bytes(4, array(kF32, "\x10"));
  const std::string parts = number(2, kTuple) + bytes(4, array(kF32, "\x02")) + bytes(4, array(kF32, "\x02"));
  const std::string part = array(kF32, "\x02");
  const std::string scatter =
      numbered(1, "all-reduce", two, "") + numbered(2, "get-tuple-element", part, "\x01") +
      numbered(3, "dynamic-slice", part, "\x02") + numbered(4, "get-tuple-element", part, "\x01") +
      numbered(5, "dynamic-slice", part, "\x04") + numbered(6, "tuple", parts, "\x03\x05");
  EXPECT_THAT(read(computation_of(scatter, 6)), ElementsAre(Collective{"reduce-scatter", 1, 16}));
}

// A field with a number above 15.
std::string wide_field(int number, int wire, const std::string& content) {
  return std::string{static_cast<char>(((number << 3 | wire) & 0x7f) | 0x80),
                     static_cast<char>((number << 3 | wire) >> 7)} +
         content;
}
std::string wide_bytes(int number, const std::string& content) {
  return wide_field(number, 2, static_cast<char>(content.size()) + content);
}
std::string sized(int field, const std::string& content) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>((content.size() & 0x7f) | 0x80),
                     static_cast<char>(content.size() >> 7)} +
         content;
}

// As libtpu writes an exchange between slices. Its send, and a receive for something else, do not count.
TEST(Collectives, BetweenSlices) {
  const auto transfer = [](const std::string& opcode, const std::string& key) {
    const std::string shape = number(2, kTuple) + bytes(4, array(kF32, "\x08")) + bytes(4, number(2, kU32));
    const std::string attributes = bytes(1, bytes(1, key) + bytes(2, "ALL_REDUCE"));
    return sized(2, bytes(2, opcode) + bytes(3, shape) + wide_bytes(68, attributes));
  };
  const std::string type = "_xla_megascale_transfer_type";
  const std::string one = sized(3, transfer("recv", type) + transfer("recv", "else")),
                    other = sized(3, transfer("recv", type) + transfer("send", type));
  EXPECT_THAT(read(sized(1, one + other)),
              ElementsAre(Collective{"all-reduce", 2, 64, {}, /*between_slices=*/true}));
}
std::string computation(int id, int root, const std::string& instructions) {
  return sized(3, instructions + number(5, id) + number(6, root));
}

// A loop of six rounds, in whose body a fusion gathers over two devices.
TEST(Collectives, ALoopCountsItsRounds) {
  const std::string groups = wide_bytes(87, std::string("\x0a\x04\x0a\x02\x00\x01", 6));
  const std::string gather = bytes(2, bytes(2, "all-gather") + bytes(3, array(kF32, "\x04")) + groups);
  const std::string literal = bytes(8, bytes(4, "\x06"));
  const auto compare = [](const std::string& direction) {
    return bytes(2, bytes(2, "compare") + wide_field(35, 0, "\x03") + wide_bytes(36, "\x01\x02") +
                        wide_bytes(63, direction));
  };
  const auto loop = [&](const std::string& direction) {
    const std::string limit = bytes(2, bytes(2, "constant") + literal + wide_field(35, 0, "\x02"));
    const std::string start = bytes(2, bytes(2, "get-tuple-element") + wide_field(35, 0, "\x01"));
    const std::string call = bytes(2, bytes(2, "fusion") + wide_bytes(38, "\x0a"));
    const std::string all = bytes(2, bytes(2, "while") + wide_bytes(38, "\x0b\x0c"));
    return sized(1, computation(10, 9, gather) + computation(11, 9, call) +
                        computation(12, 3, start + limit + compare(direction)) +
                        computation(13, 9, all + gather));
  };
  EXPECT_THAT(read(loop("LT")), ElementsAre(Collective{"all-gather", 7, 7 * 16, {0, 1}}));
  EXPECT_THAT(read(loop("NE")), ElementsAre(Collective{"all-gather", 2, 2 * 16, {0, 1}}));
}

TEST(Collectives, GroupsAreApart) {
  const auto gather = [](const std::string& groups) {
    return bytes(2, bytes(2, "all-gather") + bytes(3, array(kF32, "\x04")) + wide_bytes(87, groups));
  };
  const std::string pairs("\x0a\x04\x0a\x02\x00\x01", 6), others("\x0a\x04\x0a\x02\x00\x02", 6);
  EXPECT_THAT(read(module_of(gather(pairs) + gather(others) + gather(pairs))),
              ElementsAre(Collective{"all-gather", 2, 32, {0, 1}}, Collective{"all-gather", 1, 16, {0, 2}}));
}

TEST(Collectives, NoneIsAnEmptyList) {
  EXPECT_THAT(read(module_of(instruction("parameter", array(kF32, "\x04")))), IsEmpty());
}

TEST(Collectives, OtherBytesAreRefused) {
  const std::string good = module_of(instruction("all-reduce", array(kF32, "\x04")));
  for (size_t size = 0; size < good.size(); ++size) {
    const auto cut = read_collectives(std::string_view(good).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), Code::kDataLoss);
  }
  EXPECT_FALSE(read_collectives("module @text {}"));
}

}  // namespace
}  // namespace sluice::pjrt
