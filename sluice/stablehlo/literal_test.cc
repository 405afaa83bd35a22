#include "sluice/stablehlo/literal.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "sluice/stablehlo/test_support.h"

namespace sluice::stablehlo::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string text_of(DType dtype, uint64_t bits) {
  std::string text;
  literal::append(text, dtype, bits);
  return text;
}

double bf16_value(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

TEST(Type, TextAndSizes) {
  EXPECT_EQ(f32({4, 5}).str(), "tensor<4x5xf32>");
  EXPECT_EQ(pred().str(), "tensor<i1>");
  EXPECT_EQ((Type{DType::kBF16, {0}}).str(), "tensor<0xbf16>");
  EXPECT_EQ((Type{DType::kU16, {2}}).str(), "tensor<2xui16>");
  EXPECT_EQ(f32({4, 5}).numel(), 20);
  EXPECT_EQ(f32().numel(), 1);
  EXPECT_EQ((Type{DType::kF64, {3}}).bytes(), 24u);
  EXPECT_EQ((Type{DType::kPred, {3}}).bytes(), 3u);
}

// The compiler's own half type is the oracle.
TEST(Literal, F16RoundsAsTheHardwareDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const double value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(literal::encode(value, DType::kF16), expected) << value;
  }
  for (double value :
       {65504.0, 65519.9, 65520.0, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1.002p0, 0x1.006p0, -0.0, kInf}) {
    EXPECT_EQ(literal::encode(value, DType::kF16), std::bit_cast<uint16_t>(static_cast<_Float16>(value)))
        << value;
  }
  // In one step: by way of f32 this would round twice, and up.
  EXPECT_EQ(literal::encode(1 + 0x1p-11 - 0x1p-40, DType::kF16), 0x3C00u);
  EXPECT_EQ(literal::encode(1 + 0x1p-11 + 0x1p-40, DType::kF16), 0x3C01u);
  EXPECT_EQ(literal::encode(kNaN, DType::kF16), 0x7E00u);
}

// The patterns of the OCP's "8-bit Floating Point Specification", revision 1.0, table 1.
TEST(Literal, Float8HasTheFormatsPatterns) {
  const std::pair<double, uint64_t> e4m3[] = {
      {1, 0x38},    {448, 0x7E},  {0x1p-6, 0x08}, {0x1p-9, 0x01}, {0x1p-10, 0}, {464, 0x7E}, {465, 0x7F},
      {kInf, 0x7F}, {kNaN, 0x7F}, {-448, 0xFE},   {-0.0, 0x80},   {17, 0x58},   {19, 0x5A}};
  for (const auto& [value, bits] : e4m3) EXPECT_EQ(literal::encode(value, DType::kF8E4M3FN), bits) << value;
  const std::pair<double, uint64_t> e5m2[] = {{1, 0x3C},     {57344, 0x7B}, {0x1p-14, 0x04}, {0x1p-16, 0x01},
                                              {61439, 0x7B}, {61440, 0x7C}, {kInf, 0x7C},    {-kInf, 0xFC},
                                              {kNaN, 0x7E},  {-0.0, 0x80}};
  for (const auto& [value, bits] : e5m2) EXPECT_EQ(literal::encode(value, DType::kF8E5M2), bits) << value;
  EXPECT_EQ(text_of(DType::kF8E4M3FN, 0x7E), "448.0");
  EXPECT_EQ(text_of(DType::kF8E4M3FN, 0x7F), "0x7F");
  EXPECT_EQ(text_of(DType::kF8E5M2, 0xFC), "0xFC");
  // Every number has a text that is read back as the same bits.
  for (const DType dtype : {DType::kF8E4M3FN, DType::kF8E5M2}) {
    for (uint64_t bits = 0; bits < 256; ++bits) {
      const std::string text = text_of(dtype, bits);
      if (text.substr(0, 2) == "0x") continue;
      EXPECT_EQ(literal::encode(std::stod(text), dtype), bits) << text;
    }
  }
}

// bf16 is the upper half of f32: the nearest of the two neighbours, the even one of a tie.
TEST(Literal, BF16RoundsToTheNearestEven) {
  std::mt19937 random(2);
  for (int i = 0; i < 200000; ++i) {
    const auto raw = static_cast<uint32_t>(random());
    const double value = std::bit_cast<float>(raw);
    if (!std::isfinite(value) || std::abs(value) > 3e38) continue;
    const uint32_t below = raw >> 16, above = below + 1;
    const double to_below = std::abs(value - bf16_value(below)),
                 to_above = std::abs(bf16_value(above) - value);
    const uint32_t expected = to_below < to_above ? below : to_above < to_below ? above : below + (below & 1);
    ASSERT_EQ(literal::encode(value, DType::kBF16), expected) << value;
  }
  EXPECT_EQ(literal::encode(3.4e38, DType::kBF16), 0x7F80u);
  EXPECT_EQ(literal::encode(-kInf, DType::kBF16), 0xFF80u);
  EXPECT_EQ(literal::encode(kNaN, DType::kBF16), 0x7FC0u);
  EXPECT_EQ(literal::encode(1 + 0x1p-8 + 0x1p-40, DType::kBF16), 0x3F81u);
  EXPECT_EQ(literal::encode(int64_t{257}, DType::kBF16), 0x4380u);
}

TEST(Literal, Integers) {
  EXPECT_EQ(literal::encode(int64_t{-1}, DType::kU8), 255u);
  EXPECT_EQ(literal::encode(int64_t{-1}, DType::kU64), UINT64_MAX);
  EXPECT_EQ(literal::encode(-2.9, DType::kS8), 0xFEu);
  EXPECT_EQ(literal::encode(18446744073709549568.0, DType::kU64), 18446744073709549568u);
  EXPECT_EQ(literal::encode(-0x1p63, DType::kS64), uint64_t{1} << 63);
  EXPECT_EQ(literal::encode(0.5, DType::kPred), 1u);
  EXPECT_EQ(literal::encode(int64_t{0}, DType::kPred), 0u);
  EXPECT_EQ(literal::encode(INT64_MAX, DType::kF32), std::bit_cast<uint32_t>(0x1p63f));
  for (const auto& [value, dtype] : std::vector<std::pair<double, DType>>{{kNaN, DType::kS32},
                                                                          {kInf, DType::kS64},
                                                                          {256, DType::kU8},
                                                                          {-1, DType::kU32},
                                                                          {128, DType::kS8},
                                                                          {0x1p63, DType::kS64},
                                                                          {-129, DType::kS8}}) {
    EXPECT_THAT(rejection([&, v = value, d = dtype] { (void)literal::encode(v, d); }),
                ::testing::HasSubstr("does not fit"))
        << value;
  }
}

TEST(Literal, Extremes) {
  EXPECT_EQ(text_of(DType::kF32, literal::lowest(DType::kF32)), "0xFF800000");
  EXPECT_EQ(text_of(DType::kF64, literal::highest(DType::kF64)), "0x7FF0000000000000");
  EXPECT_EQ(text_of(DType::kBF16, literal::lowest(DType::kBF16)), "0xFF80");
  EXPECT_EQ(text_of(DType::kS8, literal::lowest(DType::kS8)), "-128");
  EXPECT_EQ(text_of(DType::kS64, literal::lowest(DType::kS64)), "-9223372036854775808");
  EXPECT_EQ(text_of(DType::kS32, literal::highest(DType::kS32)), "2147483647");
  EXPECT_EQ(text_of(DType::kU64, literal::highest(DType::kU64)), "18446744073709551615");
  EXPECT_EQ(text_of(DType::kU16, literal::lowest(DType::kU16)), "0");
  EXPECT_EQ(text_of(DType::kPred, literal::highest(DType::kPred)), "true");
}

TEST(Literal, FloatText) {
  const auto f32_text = [](double v) { return text_of(DType::kF32, literal::encode(v, DType::kF32)); };
  EXPECT_EQ(f32_text(1), "1.0");
  EXPECT_EQ(f32_text(0.1), "0.1");
  EXPECT_EQ(f32_text(-0.0), "-0.0");
  EXPECT_EQ(f32_text(1e-5), "1.0e-05");
  EXPECT_EQ(f32_text(1.5e30), "1.5e+30");
  EXPECT_EQ(f32_text(kNaN), "0x7FC00000");
  EXPECT_EQ(text_of(DType::kF16, 0x3C00), "1.0");
  EXPECT_EQ(text_of(DType::kF64, literal::encode(1.0 / 3, DType::kF64)), "0.3333333333333333");
}

// The text read by strtod, as MLIR reads it, and rounded to the element type gives the same bits back.
TEST(Literal, FloatTextReadsBack) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t raw = random();
    for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      const size_t width = 8 * dtype_size(dtype);
      const uint64_t bits = width == 64 ? raw : raw & ((uint64_t{1} << width) - 1);
      const std::string text = text_of(dtype, bits);
      const uint64_t read = text.starts_with("0x")
                                ? std::stoull(text, nullptr, 16)
                                : literal::encode(std::strtod(text.c_str(), nullptr), dtype);
      ASSERT_EQ(read, bits) << text << " " << dtype_name(dtype);
    }
  }
}

TEST(Literal, Dense) {
  const auto dense = [](const Type& type, const void* data) {
    std::string text;
    literal::append_dense(text, type, data);
    return text;
  };
  const float floats[] = {1, 2};
  EXPECT_EQ(dense(f32({2}), floats), "dense<\"0x0000803F00000040\">");
  EXPECT_EQ(dense(f32({1}), floats), "dense<1.0>");
  EXPECT_EQ(dense(f32({0}), nullptr), "dense<>");
  const uint8_t truths[] = {1, 0, 7, 1};
  EXPECT_EQ(dense(pred({2, 2}), truths), "dense<[[true, false], [true, true]]>");
  EXPECT_EQ(dense(pred({1}), truths + 2), "dense<true>");
}

}  // namespace
}  // namespace sluice::stablehlo::testing
