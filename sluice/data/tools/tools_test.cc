// Data sets that are downloaded, MNIST's files, statistics and sheets of images.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <map>

#include "sluice/data/dataset.h"
#include "sluice/data/images/image.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_labels.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/cifar10.h"
#include "sluice/data/tools/dataset_statistics.h"
#include "sluice/data/tools/digits.h"
#include "sluice/data/tools/download.h"
#include "sluice/data/tools/idx.h"
#include "sluice/data/tools/inspect.h"
#include "sluice/data/tools/pack.h"
#include "sluice/data/tools/sheet.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 10 digits of each class; the values tell which row it was.
std::string digits_csv() {
  std::string csv;
  for (int row = 0; row < 100; ++row) {
    for (int i = 0; i < 64; ++i) csv += std::to_string((row + i) % 17) + ",";
    csv += std::to_string(row % 10) + "\n";
  }
  return csv;
}

TEST(Digits, SplitByClassWithoutOverlap) {
  const test::Folder folder;
  DigitsOptions options;
  options.csv = folder.write("digits.csv", digits_csv());
  options.folder = folder.path("out");
  options.shard_size = 30;
  const auto report = pack_digits(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->train.samples, 80);
  EXPECT_EQ(report->train.shards.size(), 3u);
  const auto train = test::labels_in(folder.path("out/train-*.tar")),
             test = test::labels_in(folder.path("out/test-*.tar"));
  EXPECT_EQ(train.size() + test.size(), 100u);
  std::map<std::int64_t, int> counts;
  for (const auto& [key, label] : test) {
    EXPECT_FALSE(train.contains(key));
    EXPECT_EQ(std::stoi(key) % 10, label);
    ++counts[label];
  }
  for (const auto& [label, count] : counts) EXPECT_EQ(count, 2) << label;
  EXPECT_EQ(counts.size(), 10u);

  options.overwrite = true;
  options.seed = 1;
  ASSERT_TRUE(pack_digits(options));
  EXPECT_NE(test::labels_in(folder.path("out/test-*.tar")), test);
  options.seed = 0;
  ASSERT_TRUE(pack_digits(options));
  EXPECT_EQ(test::labels_in(folder.path("out/test-*.tar")), test);
  EXPECT_EQ(WebDataset(folder.path("out/test-*.tar")).images("png").batch(4).open()->next()->image.describe(),
            "uint8 [4, 3, 32, 32]");
}

TEST(Digits, MalformedLinesAreNamed) {
  EXPECT_THAT(parse_digits("1,2,3\n").error().what(),
              HasSubstr("line 1: expected 64 values and a digit, found 3"));
  std::string csv = digits_csv();
  csv[0] = 'x';
  EXPECT_THAT(parse_digits(csv).error().what(), HasSubstr("line 1, cell 1"));
  EXPECT_THAT(parse_digits("\n").error().what(), HasSubstr("no digits"));
}

std::string cifar_record(int label, int red, int green, int blue) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

TEST(Cifar10, TheBinaryArchive) {
  const test::Folder folder;
  Cifar10Options options;
  options.source = folder.write(
      "cifar.tar", test::archive({{"cifar-10-batches-bin/batches.meta.txt", "cat\ndog\n\n"},
                                  {"cifar-10-batches-bin/data_batch_1.bin",
                                   cifar_record(0, 1, 2, 3) + cifar_record(1, 4, 5, 6)},
                                  {"cifar-10-batches-bin/data_batch_2.bin", cifar_record(1, 7, 8, 9)},
                                  {"cifar-10-batches-bin/readme.html", "x"},
                                  {"cifar-10-batches-bin/test_batch.bin", cifar_record(0, 200, 201, 202)}}));
  options.folder = folder.path("out");
  const auto refused = pack_cifar10(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(), HasSubstr(kCifar10BinaryMd5));
  options.md5 = *md5_of_file(options.source);
  const auto report = pack_cifar10(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->train.samples, 3);
  EXPECT_THAT(
      test::labels_in(folder.path("out/train-*.tar")),
      ElementsAre(testing::Pair("0000000", 0), testing::Pair("0000001", 1), testing::Pair("0000002", 1)));
  const auto test = WebDataset(folder.path("out/test-*.tar")).images("png").labels("cls").open()->next();
  EXPECT_EQ(test->image.describe(), "uint8 [1, 3, 32, 32]");
  EXPECT_EQ(test->image.data<std::uint8_t>()[0], 200);
  EXPECT_EQ(test->image.data<std::uint8_t>()[2 * 1024], 202);
  EXPECT_EQ(*base::read_file(folder.path("out/classes.txt")), "cat\ndog\n");

  options.overwrite = true;
  options.source =
      folder.write("cifar.tar", test::archive({{"data_batch_1.bin", cifar_record(0, 1, 2, 3) + "x"}}));
  options.md5 = *md5_of_file(options.source);
  EXPECT_THAT(pack_cifar10(options).error().what(),
              HasSubstr("data_batch_1.bin: expected records of 3073 bytes"));
}

TEST(Cifar10, ThePythonArchiveIsRefusedWithTheOtherName) {
  const test::Folder folder;
  Cifar10Options options;
  options.folder = folder.path("out");
  for (const char* member : {"cifar-10-batches-py/batches.meta", "cifar-10-batches-py/data_batch_4"}) {
    options.source = folder.write("cifar.tar", test::archive({{member, "\x80\x02}."}}));
    options.md5 = *md5_of_file(options.source);
    const auto report = pack_cifar10(options);
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().what(), AllOf(HasSubstr(member), HasSubstr("use cifar-10-binary.tar.gz")));
  }
}

TEST(Cifar10, Md5AsPublishedForTheEmptyFile) {
  const test::Folder folder;  // RFC 1321, appendix A.5
  EXPECT_EQ(*md5_of_file(folder.write("empty", "")), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(*md5_of_file(folder.write("abc", "abc")), "900150983cd24fb0d6963f7d28e17f72");
}

TEST(Inspect, Lists) {
  const test::Folder folder;
  const auto listing = list_shard(
      folder.write("s.tar", test::archive({{"a.png", "12"}, {"a.cls", "3"}, {"noext", ""}, {"b.cls", "4"}})),
      true);
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->samples, 2);
  EXPECT_EQ(listing->members, 3);
  EXPECT_EQ(listing->left_out, 1);
  EXPECT_EQ(listing->payload, 4u);
  EXPECT_THAT(listing->keys, ElementsAre("a", "b"));
  EXPECT_THAT(listing->extensions, ElementsAre(testing::Pair("cls", 2), testing::Pair("png", 1)));
}

TEST(Idx, MnistsFiles) {
  const test::Folder folder;
  std::string images("\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02", 16), labels("\0\0\x08\x01\0\0\0\x03", 8);
  for (int i = 0; i < 12; ++i) images += static_cast<char>(i * 20);
  labels += std::string("\x07\x00\x09", 3);
  IdxOptions options;
  options.images = folder.write("images", images);
  options.labels = folder.write("labels", labels);
  options.shards.folder = folder.path("out");
  const auto report = pack_idx(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(
      test::labels_in(folder.path("out/*.tar")),
      ElementsAre(testing::Pair("0000000", 7), testing::Pair("0000001", 0), testing::Pair("0000002", 9)));
  const auto all =
      WebDataset(folder.path("out/*.tar")).images("png", "l8").labels("cls").batch(3).open()->next();
  for (int row = 0; row < 3; ++row)
    EXPECT_EQ(all->image.data<std::uint8_t>()[row * 4 + 1],
              std::stoi(all->keys[static_cast<std::size_t>(row)]) * 80 + 20);
  options.shards.overwrite = true;
  options.labels = folder.write("labels", labels + "x");
  EXPECT_THAT(pack_idx(options).error().what(), HasSubstr("labels: not a readable IDX file: its shape [3]"));
  for (std::size_t size = 0; size < images.size(); ++size)
    EXPECT_FALSE(parse_idx(images.substr(0, size))) << size;
  images[2] = 0x0d;
  EXPECT_THAT(parse_idx(images).error().what(), HasSubstr("element type 13"));
}

TEST(Stats, MeansDeviationsSizesAndClasses) {
  const test::Folder folder;
  const auto image = [](std::int64_t height, std::uint8_t red, std::uint8_t blue) {
    Pixels pixels{height, 2, 3, {}};
    for (std::int64_t i = 0; i < height * 2; ++i) pixels.bytes.insert(pixels.bytes.end(), {red, 51, blue});
    return *encode_png(pixels);
  };
  DatasetStatisticsOptions options;
  options.urls = {
      folder.write("a.tar", test::archive({{"a.png", image(2, 0, 10)}, {"a.cls", "1"}})),
      folder.write("b.tar", test::archive({{"b.png", image(6, 255, 10)}, {"b.cls", "4"}, {"c.cls", "4"}}))};
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const auto stats = dataset_statistics(options);
    ASSERT_TRUE(stats) << stats.error().what();
    EXPECT_EQ(stats->samples, 3);
    EXPECT_EQ(stats->images, 2);
    EXPECT_EQ(stats->pixels, 16);
    EXPECT_THAT(stats->classes, ElementsAre(testing::Pair(1, 1), testing::Pair(4, 2)));
    EXPECT_THAT(stats->sizes,
                ElementsAre(testing::Pair(std::pair(2L, 2L), 1), testing::Pair(std::pair(6L, 2L), 1)));
    EXPECT_DOUBLE_EQ(stats->mean()[0], 0.75);
    EXPECT_DOUBLE_EQ(stats->mean()[1], 0.2);
    EXPECT_NEAR(stats->deviation()[0], std::sqrt(0.75 * 0.25), 1e-12);
    EXPECT_NEAR(stats->deviation()[1], 0, 1e-6);
  }
  options.urls.push_back(folder.write("c.tar", test::archive({{"x.png", "no"}})));
  EXPECT_THAT(dataset_statistics(options).error().what(),
              HasSubstr("c.tar: member x.png (header at byte 0): not an image"));
}

TEST(Sheet, PlacesImagesAndCaptions) {
  std::vector<SheetTile> tiles;
  for (int i = 0; i < 3; ++i)
    tiles.push_back(
        {{4, 8, 3, std::vector<std::uint8_t>(96, static_cast<std::uint8_t>(50 * (i + 1)))}, "key/7"});
  const Pixels sheet = contact_sheet(tiles, 2, 32);
  EXPECT_EQ(sheet.width, 2 * (32 + 6) + 6);
  EXPECT_EQ(sheet.height, 2 * (32 + 9 + 6) + 6);
  const auto level = [&](std::int64_t y, std::int64_t x) {
    return int{sheet.bytes[static_cast<std::size_t>((y * sheet.width + x) * 3)]};
  };
  // 8 × 4 becomes 32 × 16 in the middle of its place.
  EXPECT_EQ(level(6 + 7, 6), 255);
  EXPECT_EQ(level(6 + 8, 6), 50);
  EXPECT_EQ(level(6 + 23, 6 + 31), 50);
  EXPECT_EQ(level(6 + 16, 6 + 38), 100);
  EXPECT_EQ(level(6 + 47 + 16, 6), 150);
  EXPECT_EQ(level(6 + 47 + 16, 6 + 38), 255);
  int dots = 0;
  for (std::int64_t y = 6 + 34; y < 6 + 42; ++y)
    for (std::int64_t x = 6; x < 6 + 32; ++x) dots += level(y, x) == 0;
  EXPECT_GT(dots, 30);
}

}  // namespace
}  // namespace sluice::data
