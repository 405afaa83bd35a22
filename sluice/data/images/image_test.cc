#include "sluice/data/images/image.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "sluice/data/decode/npy.h"
#include "sluice/data/decode/npz.h"
#include "sluice/data/images/resize.h"
#include "sluice/data/memory.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

unsigned long crc(const std::vector<std::uint8_t>& bytes) {
  return crc32(0, bytes.data(), static_cast<uInt>(bytes.size()));
}

// (3x² + 17y + 29c + xy) mod 256 at row y, column x, channel c: the images that Pillow was given too.
Pixels formula(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Pixels pixels{height, width, channels, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        pixels.bytes.push_back(static_cast<std::uint8_t>(x * x * 3 + y * 17 + c * 29 + x * y));
  return pixels;
}

struct Decoded {
  const char* file;
  std::int64_t height, width;
  unsigned long gray, rgb, rgba;  // CRC-32 of numpy.asarray(Image.open(file).convert("L" | "RGB" | "RGBA"))
};

class DecodeTest : public ::testing::TestWithParam<Decoded> {};

TEST_P(DecodeTest, GivesPillowsPixels) {
  const Decoded& expected = GetParam();
  const std::string bytes = test::from_base64(expected.file);
  for (const auto& [model, sum] :
       {std::pair(ColorModel::kGray, expected.gray), std::pair(ColorModel::kRgb, expected.rgb),
        std::pair(ColorModel::kRgba, expected.rgba)}) {
    const auto pixels = decode_image(bytes, model);
    ASSERT_TRUE(pixels) << pixels.error().what();
    EXPECT_EQ(pixels->height, expected.height);
    EXPECT_EQ(pixels->width, expected.width);
    EXPECT_EQ(pixels->channels, static_cast<std::int64_t>(model));
    EXPECT_EQ(crc(pixels->bytes), sum) << "channels " << pixels->channels;
  }
}

TEST_P(DecodeTest, EveryTruncationIsAnError) {
  const std::string bytes = test::from_base64(GetParam().file);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto pixels = decode_image(bytes.substr(0, size), ColorModel::kRgb);
    // A JPEG that lacks its end marker alone has all its pixels.
    if (bytes.ends_with("\xff\xd9") && size + 2 >= bytes.size()) continue;
    EXPECT_FALSE(pixels) << "cut at " << size << " of " << bytes.size();
  }
}

// As Pillow 13 has it: what follows the last row of a file with one scan does not matter. Of several scans it
// may have been one.
TEST(Image, AJpegNeedsNoEndMarker) {
  for (const char* file : {test::kJpegColor, test::kJpegGray}) {
    const std::string bytes = test::from_base64(file), data = bytes.substr(0, bytes.size() - 2);
    const auto whole = decode_image(bytes, ColorModel::kRgb);
    ASSERT_TRUE(whole);
    for (const std::string& end :
         {std::string(64, '\0'), std::string("\xff\xfe\0\4ab", 6), std::string("trailing text")}) {
      const auto found = decode_image(data + end, ColorModel::kRgb);
      ASSERT_TRUE(found) << found.error().what();
      EXPECT_EQ(found->bytes, whole->bytes);
    }
  }
  const std::string scans = test::from_base64(test::kJpegProgressive);
  EXPECT_FALSE(decode_image(scans.substr(0, scans.size() - 2) + std::string(64, '\0'), ColorModel::kRgb));
}

INSTANTIATE_TEST_SUITE_P(
    Files, DecodeTest,
    ::testing::Values(Decoded{test::kJpegColor, 16, 16, 0x7374f6ba, 0xa4ec4858, 0x19ddd469},
                      Decoded{test::kJpegGray, 16, 16, 0xc42526b6, 0x90b5aaab, 0x323262d4},
                      Decoded{test::kJpegProgressive, 16, 16, 0x223e45a5, 0xb617dbc3, 0x6800812c},
                      Decoded{test::kJpegCmyk, 16, 16, 0x2d6f6ae5, 0x8ebe37be, 0x73e7bcab},
                      Decoded{test::kPngColor, 6, 5, 0xd025d588, 0xcff08f9, 0x1f7ce0be},
                      Decoded{test::kPngAlpha, 6, 5, 0xd025d588, 0xcff08f9, 0x1dc7ba2c},
                      Decoded{test::kPngPalette, 6, 5, 0xb9f63ff7, 0x2c580fbc, 0x8db665fd},
                      Decoded{test::kWebpLossy, 12, 20, 0x346e57cc, 0xd2b22a38, 0x6d6aa6cb},
                      Decoded{test::kWebpLossless, 12, 20, 0xea738d6a, 0x6016b647, 0xfa4d33f5},
                      Decoded{test::kPngGrayAlpha, 6, 5, 0xd025d588, 0xf31e072, 0xaead08bc}));

TEST(Image, FlippedBitsOfAPngAreErrors) {
  const std::string bytes = test::from_base64(test::kPngColor);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_FALSE(decode_image(damaged, ColorModel::kRgb)) << at;
  }
}

TEST(Image, CmykIsReadAlikeWithAndWithoutAdobesMarker) {
  const std::string with = test::from_base64(test::kJpegCmyk);
  const std::size_t marker = with.find("\xff\xee");
  ASSERT_NE(marker, std::string::npos);
  const std::string without = with.substr(0, marker) + with.substr(marker + 16);
  const auto expected = decode_image(with, ColorModel::kRgb), found = decode_image(without, ColorModel::kRgb);
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->bytes, expected->bytes);
}

TEST(Image, WhatIsNoImageIsSaid) {
  EXPECT_THAT(decode_image("", ColorModel::kRgb).error().what(), HasSubstr("empty"));
  EXPECT_THAT(decode_image("%PDF-1", ColorModel::kRgb).error().what(), HasSubstr("25 50 44 46 2d 31"));
}

TEST(Image, PngRoundTrip) {
  for (const std::int64_t channels : {1, 3, 4}) {
    const Pixels pixels = formula(7, 9, channels);
    const auto file = encode_png(pixels);
    ASSERT_TRUE(file);
    EXPECT_EQ(decode_png(*file, static_cast<ColorModel>(channels))->bytes, pixels.bytes);
  }
}

TEST(Image, NetpbmFormats) {
  const auto gray = [](std::string_view bytes) {
    const auto pixels = decode_image(bytes, ColorModel::kGray);
    EXPECT_TRUE(pixels) << pixels.error().what();
    return pixels ? std::vector<int>(pixels->bytes.begin(), pixels->bytes.end()) : std::vector<int>{};
  };
  EXPECT_THAT(gray("P5\n# a comment\n2 1\n255\n\x05\xff"), ElementsAre(5, 255));
  EXPECT_THAT(gray("P2 2 1 15 0 15"), ElementsAre(0, 255));
  EXPECT_THAT(gray("P1 3 1 101"), ElementsAre(0, 255, 0));
  EXPECT_THAT(gray("P4 3 1\n\xa0"), ElementsAre(0, 255, 0));
  EXPECT_THAT(gray(std::string_view("P5 1 1 65535 \xff\xff", 15)), ElementsAre(255));
  const auto color = decode_image("P6 1 1 255 abc", ColorModel::kRgb);
  ASSERT_TRUE(color);
  EXPECT_THAT(color->bytes, ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(decode_image("P3 1 1 255 1 2 3", ColorModel::kRgb)->bytes, (std::vector<std::uint8_t>{1, 2, 3}));
  for (const char* bad : {"P6 1 1 255 ab", "P5 2 2 255 abc", "P2 1 1 15 16", "P5 0 1 255 ",
                          "P5 99999999 1 255 ", "P2 2 1 255 1", "P1 1 1 2", "P5 x"})
    EXPECT_THAT(decode_image(bad, ColorModel::kRgb).error().what(), HasSubstr("not a valid PNM")) << bad;
}

// CRC-32 of numpy.asarray(Image.fromarray(formula).resize((width, height), Image.BILINEAR)), Pillow 13.
TEST(Resize, GivesPillowsBilinearPixels) {
  const auto sum = [](std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t height,
                      std::int64_t width) {
    return crc(resize_bilinear(formula(h, w, c), height, width).bytes);
  };
  EXPECT_EQ(sum(23, 37, 3, 12, 16), 0xfcdfc5ddul);
  EXPECT_EQ(sum(4, 5, 3, 9, 12), 0x4d6c4a39ul);
  EXPECT_EQ(sum(8, 8, 1, 32, 32), 0x78b69091ul);
  EXPECT_EQ(sum(300, 200, 3, 224, 149), 0xd7ae1188ul);
  EXPECT_EQ(sum(20, 30, 3, 20, 11), 0xb237d2d4ul);
  // Where columns come first, and at the border of that.
  EXPECT_EQ(sum(90, 50, 3, 30, 40), 0x40828a34ul);
  EXPECT_EQ(sum(100, 64, 1, 20, 60), 0xd17ce905ul);
  EXPECT_EQ(sum(60, 40, 3, 20, 60), 0x96e94572ul);
  EXPECT_EQ(sum(43, 38, 3, 33, 33), 0x3565d6eeul);
  EXPECT_EQ(sum(44, 38, 3, 33, 33), 0xa226bad6ul);
  const Pixels small = resize_bilinear(formula(23, 37, 3), 12, 16);
  const std::uint8_t* middle = small.bytes.data() + (6 * 16 + 5) * 3;
  EXPECT_EQ(std::vector<int>(middle, middle + 3), (std::vector<int>{117, 121, 131}));
  EXPECT_EQ(resize_bilinear(small, 12, 16).bytes, small.bytes);
}

TEST(Resize, CropsWithABorderAndTurns) {
  const Pixels pixels{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(crop_pixels(pixels, 0, 1, 2, 2).bytes, ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(crop_pixels(pixels, -1, -1, 2, 3).bytes, ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT(crop_pixels(pixels, 1, 2, 2, 2).bytes, ElementsAre(6, 0, 0, 0));
  EXPECT_THAT(crop_pixels(pixels, 0, 0, 2, 3, true).bytes, ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(crop_pixels(pixels, 0, -1, 1, 3, true).bytes, ElementsAre(2, 1, 0));
  EXPECT_THAT(crop_pixels(pixels, 5, 5, 1, 2).bytes, ElementsAre(0, 0));
}

// 2×2 pixels of (200, 100, 50) with alpha 128, by Pillow.
constexpr const char* kAvifAlpha =
    "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAAGGbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAA"
    "AAAAAAAAAAAOcGl0bQAAAAAAAQAAACxpbG9jAAAAAEQAAAIAAQAAAAEAAAG7AAAAHgACAAAAAQAAAa4AAAANAAAAQmlpbmYA"
    "AAAAAAIAAAAaaW5mZQIAAAAAAQAAYXYwMUNvbG9yAAAAABppbmZlAgAAAAACAABhdjAxQWxwaGEAAAAAGmlyZWYAAAAAAAAA"
    "DmF1eGwAAgABAAEAAADDaXBycAAAAJ1pcGNvAAAAFGlzcGUAAAAAAAAAAgAAAAIAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOB"
    "IAAAAAAAE2NvbHJuY2x4AAEADQAGgAAAAA5waXhpAAAAAAEIAAAADGF2MUOBABwAAAAAOGF1eEMAAAAAdXJuOm1wZWc6bXBl"
    "Z0I6Y2ljcDpzeXN0ZW1zOmF1eGlsaWFyeTphbHBoYQAAAAAeaXBtYQAAAAAAAAACAAEEAQKDBAACBAEFhgcAAAAzbWRhdBIA"
    "CgQYADYVMgMQAAwSAAoHOAA2EBDQaTIREAAARmesvIVs7zvb3MAiZuA=";

TEST(Avif, AlphaDoesNotChangeColours) {
  const std::string file = test::from_base64(kAvifAlpha);
  EXPECT_THAT(decode_image(file, ColorModel::kRgba)->bytes,
              ElementsAre(200, 100, 50, 128, 200, 100, 50, 128, 200, 100, 50, 128, 200, 100, 50, 128));
  EXPECT_THAT(decode_image(file, ColorModel::kRgb)->bytes,
              ElementsAre(200, 100, 50, 200, 100, 50, 200, 100, 50, 200, 100, 50));
  EXPECT_THAT(decode_image(file, ColorModel::kGray)->bytes, ElementsAre(124, 124, 124, 124));  // Pillow's "L"
}

TEST(Avif, AboveTheLimitOfPixelsTheFlagIsNamed) {
  const std::int64_t before = std::exchange(memory_limits().pixels, 3);
  const auto decoded = decode_image(test::from_base64(kAvifAlpha), ColorModel::kRgb);
  memory_limits().pixels = before;
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().what(), HasSubstr("--max-pixels"));
}

TEST(Npy, ReadsNumpysFiles) {
  const std::string file = test::from_base64(test::kNpyFloat);
  const auto array = parse_npy(file);
  ASSERT_TRUE(array) << array.error().what();
  EXPECT_EQ(array->describe(), "float32 [2, 3]");
  EXPECT_EQ(array->data<float>()[5], 1.25F);
  const std::string scalar = test::from_base64(test::kNpyVersion2);
  EXPECT_EQ(parse_npy(scalar)->describe(), "bool []");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse_npy(file.substr(0, size))) << size;
  EXPECT_THAT(parse_npy(test::from_base64(test::kNpyFortran)).error().what(), HasSubstr("Fortran"));
  EXPECT_THAT(parse_npy(test::from_base64(test::kNpyText)).error().what(), HasSubstr("element type"));
  EXPECT_THAT(parse_npy(test::from_base64(test::kNpyBig)).error().what(), HasSubstr("little-endian"));
}

TEST(Npz, ReadsNumpysFiles) {
  const std::string stored = test::from_base64(test::kNpzStored),
                    deflated = test::from_base64(test::kNpzDeflated);
  const auto arrays = parse_npz(stored);
  ASSERT_TRUE(arrays) << arrays.error().what();
  EXPECT_EQ(arrays->at("a").describe(), "int16 [3]");
  EXPECT_EQ(arrays->at("b").describe(), "float32 [1, 2]");
  EXPECT_EQ(arrays->at("b").data<float>()[0], 1.5F);
  EXPECT_EQ(parse_npz(deflated)->at("zeros").describe(), "float64 [40]");
  EXPECT_EQ(parse_npz(deflated)->at("a").data<std::int16_t>()[2], 2);
  for (const std::string& file : {stored, deflated})
    for (std::size_t size = 0; size < file.size(); ++size)
      EXPECT_FALSE(parse_npz(file.substr(0, size))) << size;
  std::string damaged = stored;
  damaged[damaged.find("\x93NUMPY") + 130] ^= 1;
  EXPECT_THAT(parse_npz(damaged).error().what(), HasSubstr("a.npy does not have its checksum"));
}

}  // namespace
}  // namespace sluice::data
