// The quick PNG decoder against libspng: equal pixels, or it stays out of it.
#include "sluice/data/images/png_fast.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "sluice/base/random.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6),
            Z_OK);
  out.resize(size);
  return out;
}

constexpr int kSamples[] = {1, 0, 3, 1, 2, 0, 4};

struct Layout {
  int width = 7, height = 9, color = 2, entries = 0, transparency = 0, parts = 1;
};

// Random filtered bytes in rows, each with a random filter: every such file is an image.
std::string random_png(const Layout& layout, base::Random& random) {
  std::string rows, palette, transparency;
  for (int y = 0; y < layout.height; ++y) {
    rows += static_cast<char>(random.below(5));
    for (int i = 0; i < layout.width * kSamples[layout.color]; ++i) {
      const auto limit = layout.color == 3 ? static_cast<std::uint64_t>(layout.entries) : 256;
      rows += static_cast<char>(random.below(limit));
    }
    // Filters other than none would lead out of a palette.
    if (layout.color == 3) rows[rows.size() - static_cast<std::size_t>(layout.width) - 1] = '\0';
  }
  for (int i = 0; i < 3 * layout.entries; ++i) palette += static_cast<char>(random.below(256));
  for (int i = 0; i < layout.transparency; ++i) transparency += static_cast<char>(random.below(256));
  std::string file = "\x89PNG\r\n\x1a\n";
  file += chunk("IHDR", big_endian(static_cast<std::uint32_t>(layout.width)) +
                            big_endian(static_cast<std::uint32_t>(layout.height)) + '\x08' +
                            static_cast<char>(layout.color) + std::string(3, '\0'));
  if (layout.entries > 0) file += chunk("PLTE", palette);
  if (layout.transparency > 0) file += chunk("tRNS", transparency);
  const std::string packed = deflated(rows);
  const std::size_t step = packed.size() / static_cast<std::size_t>(layout.parts);
  for (int part = 0; part < layout.parts; ++part)
    file += chunk("IDAT", packed.substr(static_cast<std::size_t>(part) * step,
                                        part + 1 == layout.parts ? std::string::npos : step));
  return file + chunk("IEND", "");
}

constexpr ColorModel kModels[] = {ColorModel::kGray, ColorModel::kRgb, ColorModel::kRgba};

TEST(PngFast, EveryColourFilterWidthAndModelAsLibspng) {
  base::Random random({5});
  const Layout layouts[] = {{1, 1, 0}, {1, 5, 2}, {16, 3, 2},        {17, 20, 2},       {33, 8, 6},
                            {5, 7, 4}, {9, 9, 0}, {6, 6, 3, 256},    {6, 6, 3, 3, 2},   {40, 30, 2, 0, 0, 5},
                            {3, 3, 6}, {2, 2, 4}, {300, 2, 0, 0, 2}, {4, 4, 2, 0, 6, 2}};
  int taken = 0;
  for (const Layout& layout : layouts) {
    for (int round = 0; round < 20; ++round) {
      const std::string file = random_png(layout, random);
      for (const ColorModel model : kModels) {
        const auto general = decode_png_general(file, model);
        ASSERT_TRUE(general) << general.error().what();
        const auto fast = decode_png_fast(file, model);
        if (!fast) {  // the one kind that it leaves to libspng
          EXPECT_TRUE(layout.transparency > 0 && layout.color != 3 && model == ColorModel::kRgba);
          continue;
        }
        ++taken;
        ASSERT_EQ(fast->bytes, general->bytes) << "colour " << layout.color << ", width " << layout.width;
        ASSERT_EQ(fast->channels, general->channels);
        ASSERT_EQ(fast->height, layout.height);
      }
    }
  }
  EXPECT_GT(taken, 700);
}

// What a damaged file is, libspng says; the fast decoder must never see an image where it sees none.
TEST(PngFast, DamagedFilesAreNeverTaken) {
  base::Random random({6});
  const std::string file = random_png({11, 13, 2}, random);
  for (std::size_t at = 0; at < file.size(); ++at) {
    EXPECT_FALSE(decode_png_fast(file.substr(0, at), ColorModel::kRgb)) << at;
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    EXPECT_FALSE(decode_png_fast(damaged, ColorModel::kRgb)) << at;
  }
  EXPECT_FALSE(decode_png_fast(file + "x", ColorModel::kRgb));
  EXPECT_FALSE(decode_png_fast(test::from_base64(test::kJpegColor), ColorModel::kRgb));
}

TEST(PngFast, SoundChunksWithWrongContents) {
  base::Random random({7});
  const auto made = [&](const std::string& header, const std::string& rows, const std::string& extra = "") {
    return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + extra + chunk("IDAT", deflated(rows)) +
           chunk("IEND", "");
  };
  const std::string header = big_endian(2) + big_endian(2) + std::string("\x08\x02\0\0\0", 5);
  const std::string rows(14, '\0');
  const std::string good = made(header, rows);
  ASSERT_TRUE(decode_png_fast(good, ColorModel::kRgb));
  const std::string indexed = big_endian(2) + big_endian(2) + std::string("\x08\x03\0\0\0", 5);
  const std::string inside = chunk("PLTE", std::string(6, 'x'));
  const std::vector<std::string> bad = {
      made(header, rows.substr(1)),                                // too few rows
      made(header, rows + "x"),                                    // too many
      made(header, "\x05" + rows.substr(1)),                       // no such filter
      made(big_endian(0) + big_endian(2) + header.substr(8), ""),  // no columns
      made(big_endian(1 << 27) + big_endian(1 << 27) + header.substr(8), rows),
      made(header.substr(0, 12), rows),                       // a header cut short
      made(indexed, std::string("\0\1\2\0\0\0", 6), inside),  // an index outside the palette
      made(indexed, std::string(6, '\0')),                    // no palette at all
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_FALSE(decode_png_fast(bad[i], ColorModel::kRgb)) << i;
    const auto general = decode_png(bad[i], ColorModel::kRgb);
    // libspng allows more bytes than the rows need, and takes an index outside the palette for black.
    EXPECT_EQ(general.has_value(), i == 1 || i == 6) << i;
  }
}

}  // namespace
}  // namespace sluice::data
