// Parts of JPEG files against the whole image.
#include <gmock/gmock.h>
#include <malloc.h>

#include <thread>

#include "sluice/base/random.h"
#include "sluice/data/images/image.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/images/test_jpeg.h"

// The address sanitizer's count of bytes; no address without the sanitizer.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace sluice::data {
namespace {

std::size_t allocated_bytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) return __sanitizer_get_current_allocated_bytes();
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

Region random_region(base::Random& random, std::int64_t height, std::int64_t width) {
  Region region;
  region.height = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height)));
  region.width = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
  region.top =
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height - region.height + 1)));
  region.left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width - region.width + 1)));
  return region;
}

constexpr JpegKind kKinds[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {2, 2, true}, {2, 2, false, 1}};

// Below twice the size nothing is scaled, so the part must be what the whole image has there.
TEST(JpegRegion, IsThePartOfTheWhole) {
  base::Random random({1});
  for (const JpegKind& kind : kKinds) {
    for (const auto& [height, width] : {std::pair{97, 131}, std::pair{64, 64}, std::pair{16, 200}}) {
      const std::string file = make_jpeg(height, width, kind);
      for (const ColorModel model : {ColorModel::kRgb, ColorModel::kGray, ColorModel::kRgba}) {
        const auto whole = decode_jpeg(file, model);
        ASSERT_TRUE(whole);
        for (int round = 0; round < 25; ++round) {
          const Region region = random_region(random, height, width);
          const std::int64_t size =
              std::max(region.height, region.width) / 2 + 1 + static_cast<std::int64_t>(random.below(40));
          const auto part = decode_jpeg_region(
              file, model,
              [&](std::int64_t h, std::int64_t w) {
                EXPECT_EQ(h, height);
                EXPECT_EQ(w, width);
                return region;
              },
              size, size);
          ASSERT_TRUE(part) << part.error().what();
          ASSERT_EQ(part->bytes, resize_region(*whole, region, size, size).bytes)
              << kind.across << "×" << kind.down << ", " << region.top << " " << region.left << " "
              << region.height << " " << region.width;
        }
      }
    }
  }
}

TEST(JpegRegion, ScaledReadingComesNear) {
  base::Random random({2});
  const std::string file = make_jpeg(400, 520, {2, 2});
  const auto whole = decode_jpeg(file, ColorModel::kRgb);
  for (const std::int64_t size : {16, 30, 60, 100}) {
    const Region region{3, 21, 390, 480};
    const auto part = decode_jpeg_region(
        file, ColorModel::kRgb, [&](auto, auto) { return region; }, size, size);
    ASSERT_TRUE(part);
    const Pixels expected = resize_region(*whole, region, size, size);
    double sum = 0;
    for (std::size_t i = 0; i < expected.bytes.size(); ++i)
      sum += std::abs(part->bytes[i] - expected.bytes[i]);
    EXPECT_LT(sum / static_cast<double>(expected.bytes.size()), 3.0) << size;
  }
}

TEST(JpegRegion, CutOffAndDamagedFiles) {
  const std::string file = make_jpeg(64, 64, {2, 2});
  const auto upper = [](auto, auto) { return Region{0, 0, 16, 64}; };
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(decode_jpeg_region(file.substr(0, size), ColorModel::kRgb, upper, 32, 32)) << size;
  // One file's failure is no other's, on the same thread.
  EXPECT_TRUE(decode_jpeg_region(file, ColorModel::kRgb, upper, 32, 32));
}

// The coefficients of a progressive file must not stay with the thread: nobody claims their room any more.
TEST(Jpeg, FreesTheCoefficientsOfTheFile) {
  const std::string file = make_jpeg(1500, 2000, {1, 1, true});  // 18 MB of coefficients, 9 MB of pixels
  std::thread([&] {
    ASSERT_TRUE(decode_jpeg(make_jpeg(16, 16, {1, 1}), ColorModel::kRgb));
    const std::size_t before = allocated_bytes();
    ASSERT_TRUE(decode_jpeg(file, ColorModel::kRgb));
    EXPECT_LT(allocated_bytes(), before + (1 << 20));
    const auto corner = [](auto, auto) { return Region{0, 0, 16, 16}; };
    ASSERT_TRUE(decode_jpeg_region(file, ColorModel::kRgb, corner, 8, 8));
    EXPECT_LT(allocated_bytes(), before + (1 << 20));
  }).join();
}

// Tables of one file must not serve another that lacks them: here its quantisation tables were renamed.
TEST(Jpeg, ForgetsTheTablesOfTheFileBefore) {
  const std::string file = make_jpeg(32, 32, {1, 1});
  std::string bare = file;
  for (std::size_t at = bare.find("\xff\xdb"); at != std::string::npos; at = bare.find("\xff\xdb", at + 2))
    bare[at + 1] = '\xed';  // quantisation tables become application data
  std::string first;
  std::thread([&] { first = decode_jpeg(bare, ColorModel::kRgb).error().what(); }).join();
  EXPECT_THAT(first, testing::HasSubstr("a quantization table is missing"));
  ASSERT_TRUE(decode_jpeg(file, ColorModel::kRgb));
  const auto after = decode_jpeg(bare, ColorModel::kRgb);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().what(), first);
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(decode_jpeg(file, ColorModel::kGray));
}

}  // namespace
}  // namespace sluice::data
