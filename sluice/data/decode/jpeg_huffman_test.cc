// Our reader of JPEG coefficients against libjpeg's.
#include "sluice/data/decode/jpeg_huffman.h"

#include <gtest/gtest.h>

#include "sluice/data/decode/image.h"
#include "sluice/data/decode/test_jpeg.h"

namespace sluice::data {
namespace {

// The same pixels, or the same error. Twice, because a small file's tables are only noted the first time.
void expect_libjpegs(const std::string& file, ColorModel model = ColorModel::kRgb) {
  const auto expected = decode_jpeg_general(file, model);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto found = decode_jpeg(file, model);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!found) {
      ASSERT_EQ(std::string(found.error().what()), expected.error().what());
      continue;
    }
    ASSERT_EQ(found->height, expected->height);
    ASSERT_EQ(found->width, expected->width);
    ASSERT_EQ(found->bytes, expected->bytes);
  }
}

TEST(JpegHuffman, GivesLibjpegsPixels) {
  for (const auto& [across, down] : {std::pair{1, 1}, std::pair{2, 1}, std::pair{2, 2}, std::pair{4, 2}})
    for (const int quality : {5, 60, 93, 100})
      for (const bool optimized : {false, true})
        for (const auto& [height, width] :
             {std::pair{1, 1}, std::pair{8, 8}, std::pair{33, 17}, std::pair{75, 300}, std::pair{300, 410}})
          for (const bool gray : {false, true}) {
            JpegKind kind{across, down};
            kind.quality = quality;
            kind.optimized = optimized;
            kind.gray = gray;
            expect_libjpegs(make_jpeg(height, width, kind), gray ? ColorModel::kGray : ColorModel::kRgb);
          }
}

TEST(JpegHuffman, DamagedFilesAreWhatLibjpegMakesOfThem) {
  base::Random random({7});
  for (const bool optimized : {false, true}) {
    JpegKind kind{2, 2};
    kind.optimized = optimized;
    const std::string sound = make_jpeg(90, 120, kind);
    for (int round = 0; round < 1500; ++round) {
      std::string file = sound;
      for (std::uint64_t change = random.below(4); change > 0; --change)
        file[100 + random.below(file.size() - 100)] = static_cast<char>(random.below(256));
      if (random.below(4) == 0) file.resize(random.below(file.size()));
      if (random.below(8) == 0) file.insert(random.below(file.size()), "\xff\xd3");
      expect_libjpegs(file);
    }
  }
}

// Whether the reader takes a file that jpeg_start_decompress has begun.
bool takes(JpegHuffman& huffman, const std::string& file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  const bool taken = huffman.take_over(info);
  jpeg_destroy_decompress(&info);
  return taken;
}

TEST(JpegHuffman, TakesOrdinaryFilesAndLeavesOthers) {
  JpegHuffman huffman;
  JpegKind small{2, 2}, own = small, progressive = small, restart = small;
  own.optimized = true;
  progressive.progressive = true;
  restart.restart = 1;
  EXPECT_FALSE(takes(huffman, make_jpeg(16, 16, small))) << "tables for one small file alone";
  EXPECT_TRUE(takes(huffman, make_jpeg(16, 16, small)));
  EXPECT_FALSE(takes(huffman, make_jpeg(16, 16, own)));
  EXPECT_TRUE(takes(huffman, make_jpeg(300, 300, own)));
  EXPECT_FALSE(takes(huffman, make_jpeg(300, 300, progressive)));
  EXPECT_FALSE(takes(huffman, make_jpeg(300, 300, restart)));
}

}  // namespace
}  // namespace sluice::data
