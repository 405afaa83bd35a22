// Packing; the digits and CIFAR-10.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "sluice/data/dataset.h"
#include "sluice/data/images/image.h"
#include "sluice/data/test_files.h"
#include "sluice/data/test_support.h"
#include "sluice/data/tools/cifar10.h"
#include "sluice/data/tools/dataset_statistics.h"
#include "sluice/data/tools/digits.h"
#include "sluice/data/tools/download.h"
#include "sluice/data/tools/idx.h"
#include "sluice/data/tools/inspect.h"
#include "sluice/data/tools/pack.h"
#include "sluice/data/tools/sheet.h"
#include "sluice/data/tools/table.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Key → label of all samples.
std::map<std::string, std::int64_t> labels_in(const std::string& urls) {
  std::map<std::string, std::int64_t> labels;
  const auto stream = WebDataset(urls).images("png").labels("cls").batch(64).open();
  while (auto batch = stream->next())
    for (std::int64_t i = 0; i < batch->count; ++i)
      labels[batch->keys[static_cast<std::size_t>(i)]] = batch->label.data<std::int64_t>()[i];
  return labels;
}

TEST(Pack, AFolderOfClasses) {
  const test::Folder folder;
  for (int i = 0; i < 5; ++i) {
    folder.write("in/dog/" + std::to_string(i) + ".png", test::gray_png(i));
    folder.write("in/cat/deep/" + std::to_string(i) + ".PNG", test::gray_png(100 + i));
  }
  folder.write("in/cat/notes.txt", "x");
  PackOptions options;
  options.input = folder.path("in");
  options.shards = {folder.path("out"), "train", 4, false, nullptr, 0, ""};
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_THAT(report->classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(report->shards.shards.size(), 3u);
  EXPECT_EQ(report->left_out, 1);
  EXPECT_THAT(report->first_left_out, HasSubstr("notes.txt"));
  EXPECT_EQ(*base::read_file(folder.path("out/classes.txt")), "cat\ndog\n");
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar", "train-0001.idx",
                          "train-0001.tar", "train-0002.idx", "train-0002.tar"));
  const auto sizes = read_sizes(folder.path("out/train-0002.tar"));
  EXPECT_EQ((*sizes)->at("train-0002.tar").samples, 2);
  EXPECT_EQ((*sizes)->at("train-0002.tar").sum, *sum_source(folder.path("out/train-0002.tar")));
  const auto stream = WebDataset(folder.path("out/*.tar")).images("png", "l8").labels("cls").batch(10).open();
  const auto batch = stream->next();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(batch->image.data<std::uint8_t>()[i * 4] >= 100 ? 0 : 1, batch->label.data<std::int64_t>()[i]);

  EXPECT_THAT(pack(options).error().what(), HasSubstr("already holds 3 shards"));
  options.shards.overwrite = true;
  options.shards.shard_size = 100;
  folder.write("out/sizes.json", "{\"other.tar\": 3, \"train-0000.tar\": 4, \"train-0001.tar\": 4}");
  ASSERT_TRUE(pack(options));
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar"));
  const auto written = read_sizes(folder.path("out/train-0000.tar"));
  EXPECT_EQ((*written)->size(), 2u);
  EXPECT_EQ((*written)->at("train-0000.tar").samples, 10);
  const std::string once = *base::read_file(folder.path("out/train-0000.tar"));
  ASSERT_TRUE(pack(options));
  EXPECT_EQ(*base::read_file(folder.path("out/train-0000.tar")), once);
}

TEST(Pack, LinksAreFollowedOnceAndThoseToNothingAreReported) {
  namespace fs = std::filesystem;
  const test::Folder folder;
  folder.write("in/cat/a.png", test::gray_png(1));
  folder.write("in/dog/deep/b.png", test::gray_png(2));
  folder.write("elsewhere/c.png", test::gray_png(3));
  fs::create_directory_symlink(folder.path("in/cat"), folder.path("in/cat/again"));
  fs::create_directory_symlink(folder.path("in/dog"), folder.path("in/dog/deep/up"));
  fs::create_directory_symlink(folder.path("elsewhere"), folder.path("in/dog/linked"));
  fs::create_symlink(folder.path("nowhere.png"), folder.path("in/dog/gone.png"));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->shards.samples, 3);
  EXPECT_EQ(report->left_out, 3);
}

TEST(Pack, HiddenFoldersAndAppleDoublesArePassedOver) {
  const test::Folder folder;
  for (const char* split : {"train", "test"}) {
    folder.write(base::str("in/", split, "/cat/0.png"), test::gray_png(1));
    folder.write(base::str("in/", split, "/cat/.ipynb_checkpoints/0-checkpoint.png"), test::gray_png(1));
    folder.write(base::str("in/", split, "/cat/._0.png"), "x");
  }
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  for (const char* left :
       {"train-0000.tar.tmp-999999999-0", "sizes.json.tmp-999999999-3", "notes.tmp-999999999-3"})
    folder.write(base::str("out/", left), "x");
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(report->shards.samples, 2);
  EXPECT_EQ(report->left_out_kinds.at("folder that begins with a dot"), 2);
  EXPECT_EQ(report->left_out_kinds.at("AppleDouble of macOS (._NAME)"), 2);
  ASSERT_EQ(report->nested.size(), 2u);
  EXPECT_EQ(report->nested.front().first, "test");
  EXPECT_THAT(report->nested.front().second, ElementsAre("cat"));
  EXPECT_THAT(
      *base::list_directory(folder.path("out")),
      ElementsAre("classes.txt", "notes.tmp-999999999-3", "sizes.json", "train-0000.idx", "train-0000.tar"));
}

TEST(Pack, ClassesNamedAfterTheDeepestFolders) {
  const test::Folder folder;
  for (const char* name :
       {"2024/dog/0.png", "2024/cat/1.png", "2025/cat/old/2.png", "2025/cat/3.png", "4.png"})
    folder.write(base::str("in/", name), test::gray_png(name[std::strlen(name) - 5] - '0'));
  PackOptions options;
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  options.shuffle = false;
  options.class_folder = ClassFolder::kDeepest;
  for (const char* input : {"in", "in/"}) {
    options.input = folder.path(input);
    const auto report = pack(options);
    ASSERT_TRUE(report) << report.error().what();
    EXPECT_THAT(report->classes, ElementsAre("cat", "dog", "old"));
    EXPECT_EQ(*base::read_file(folder.path("out/classes.txt")), "cat\ndog\nold\n");
    // 2024/cat/1, 2025/cat/3, 2024/dog/0, 2025/cat/old/2
    EXPECT_THAT(labels_in(folder.path("out/*.tar")),
                ElementsAre(testing::Pair("0000000", 0), testing::Pair("0000001", 0),
                            testing::Pair("0000002", 1), testing::Pair("0000003", 2)));
    EXPECT_EQ(report->first_left_out, folder.path(base::str(input, input[2] == '/' ? "" : "/", "4.png")));
    EXPECT_TRUE(report->nested.empty() && report->joined_parts.empty());
  }
  for (const char* name : {"train/cat/0.png", "Val/cat/1.png", "test/2.png", "more/cat/3.png"})
    folder.write(base::str("split/", name), test::gray_png(1));
  options.input = folder.path("split");
  EXPECT_THAT(pack(options)->joined_parts,
              ElementsAre("Val", "train"));  // images of test are of a class "test"

  std::filesystem::create_directories(folder.path("empty/cat"));
  options.input = folder.path("empty");
  EXPECT_THAT(pack(options).error().what(),
              HasSubstr("empty holds no images in folders: expected folders named"));
  options.input = folder.write("list.csv", "0.png,1\n");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("list.csv is a list, which names the classes itself"));
  folder.write("lines/a\nb/0.png", test::gray_png(1));
  options.input = folder.path("lines");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("the class 'a b' has a line break"));
}

TEST(Pack, AListOfImages) {
  const test::Folder folder;
  folder.write("a b.png", test::gray_png(1));
  folder.write("c.png", test::gray_png(2));
  PackOptions options;
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  options.shuffle = false;
  const auto packed = [&](const std::string& list) {
    options.input = folder.write("list.txt", list);
    return pack(options);
  };
  ASSERT_TRUE(packed("# images\na b.png 3\nc.png\t12\n"));
  EXPECT_THAT(labels_in(folder.path("out/*.tar")),
              ElementsAre(testing::Pair("0000000", 3), testing::Pair("0000001", 12)));
  EXPECT_THAT(packed("a b.png,zebra\nc.png,ant\n")->classes, ElementsAre("ant", "zebra"));
  EXPECT_THAT(labels_in(folder.path("out/*.tar")),
              ElementsAre(testing::Pair("0000000", 1), testing::Pair("0000001", 0)));
  EXPECT_THAT(packed("c.png\n").error().what(),
              HasSubstr("list.txt, line 1: expected an image and its class"));
  EXPECT_THAT(packed("c.png 1\nd.png 1\n").error().what(), HasSubstr("line 2: no such file"));
  EXPECT_THAT(packed("").error().what(), HasSubstr("no samples"));
}

TEST(Pack, ListsAsCsvAndJsonLines) {
  const auto parsed = parse_list("label,file\n1,\"a, \"\"b\"\".png\"\n\n2,c.png\r\n", "x.csv");
  ASSERT_TRUE(parsed) << parsed.error().what();
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].path, "a, \"b\".png");
  EXPECT_EQ((*parsed)[0].class_name, "1");
  EXPECT_EQ((*parsed)[1].line, 4u);
  EXPECT_EQ((*parse_list("a.png,x,7\n", "x.csv"))[0].class_name, "7");
  const auto marked = parse_list(
      "\xef\xbb\xbf"
      "file,class\na.png,1\n",
      "x.csv");
  ASSERT_TRUE(marked) << marked.error().what();
  ASSERT_EQ(marked->size(), 1u);
  EXPECT_EQ((*marked)[0].path, "a.png");
  EXPECT_THAT(parse_list("a.png,1\nb.png\n", "x.csv").error().what(), HasSubstr("x.csv, line 2: expected"));
  EXPECT_THAT(parse_list("\"a.png,1\n", "x.csv").error().what(), HasSubstr("a quote is not closed"));
  const auto lines =
      parse_list("{\"image\": \"a.png\", \"label\": 3, \"by\": \"me\"}\n{\"file\":\"b.png\"}", "x.jsonl");
  ASSERT_TRUE(lines) << lines.error().what();
  EXPECT_EQ((*lines)[0].class_name, "3");
  EXPECT_EQ((*lines)[0].json, "{\"by\":\"me\"}");
  EXPECT_EQ((*lines)[1].class_name + (*lines)[1].json, "");
  EXPECT_THAT(parse_list("[1]", "x.jsonl").error().what(), HasSubstr("line 1: expected a JSON object"));
  EXPECT_THAT(parse_list("{\"file\": \"a.png\"}\n{bad\n", "x.jsonl").error().what(),
              testing::StartsWith("x.jsonl, line 2: not valid JSON: at column 2: "));
  EXPECT_THAT(parse_list("{\"cls\": 1}", "x.jsonl").error().what(), HasSubstr("expected a member \"file\""));

  const test::Folder folder;
  folder.write("a.png", test::gray_png(1));
  folder.write("b.png", test::gray_png(2));
  PackOptions options;
  options.shuffle = false;
  options.shards.folder = folder.path("out");
  options.input =
      folder.write("list.jsonl", "{\"file\":\"a.png\",\"class\":\"x\",\"n\":[1]}\n{\"file\":\"b.png\"}\n");
  ASSERT_TRUE(pack(options));
  EXPECT_THAT(list_shard(folder.path("out/train-0000.tar"))->extensions,
              ElementsAre(testing::Pair("cls", 1), testing::Pair("json", 1), testing::Pair("png", 2)));
}

// What a run leaves that was killed: the hidden folder with the shards that were finished.
TEST(Pack, AStoppedRunGoesOn) {
  const test::Folder folder;
  std::atomic<int> produced{0};
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    ++produced;
    return NewSample{sample_key(i), {{"cls", std::to_string(i)}}};
  };
  ShardOptions options;
  options.folder = folder.path("whole");
  options.shard_size = 10;
  options.fingerprint = "one";
  ASSERT_TRUE(write_shards(35, produce, options));
  EXPECT_EQ(produced, 35);
  options.folder = folder.path("out");
  const auto leave = [&](const std::string& fingerprint) {
    folder.write("out/.train.partial/fingerprint", fingerprint + "\n0 4 0");
    for (const char* name : {"train-0000.tar", "train-0002.tar"})
      folder.write(std::string("out/.train.partial/") + name,
                   *base::read_file(folder.path(std::string("whole/") + name)));
  };
  leave("one");
  produced = 0;
  const auto report = write_shards(35, produce, options);
  ASSERT_TRUE(report) << report.error().what();
  EXPECT_EQ(produced, 15);
  EXPECT_EQ(report->continued, 2);
  EXPECT_EQ(report->samples, 35);
  for (const char* name : {"train-0000.tar", "train-0001.tar", "train-0002.tar", "train-0003.tar"})
    EXPECT_EQ(*base::read_file(folder.path(std::string("out/") + name)),
              *base::read_file(folder.path(std::string("whole/") + name)));
  EXPECT_EQ(base::list_directory(folder.path("out"))->size(), 9u);  // with index files, and sizes.json
  // Another set is begun again.
  leave("two");
  produced = 0;
  options.overwrite = true;
  EXPECT_EQ(write_shards(35, produce, options)->continued, 0);
  EXPECT_EQ(produced, 35);
}

TEST(Pack, TheNumberOfThreadsChangesNothing) {
  const test::Folder folder;
  for (int i = 0; i < 40; ++i) folder.write("in/a/" + std::to_string(i) + ".png", test::gray_png(i));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.shard_size = 7;
  for (const int workers : {1, 4}) {
    options.shards.folder = folder.path(std::to_string(workers));
    options.shards.workers = workers;
    std::int64_t last = 0;
    options.shards.progress = [&](std::int64_t done, std::int64_t total) {
      EXPECT_GT(done, last);
      EXPECT_EQ(total, 40);
      last = done;
    };
    ASSERT_TRUE(pack(options));
    EXPECT_EQ(last, 40);
  }
  const auto names = base::list_directory(folder.path("1"));
  EXPECT_EQ(names->size(), 14u);  // six shards and index files, sizes.json, the classes
  for (const std::string& name : *names)
    EXPECT_EQ(*base::read_file(folder.path("1/" + name)), *base::read_file(folder.path("4/" + name)));
}

TEST(Pack, AFailureLeavesTheOldSet) {
  const test::Folder folder;
  folder.write("in/a/1.png", test::gray_png(1));
  PackOptions options;
  options.input = folder.path("in");
  options.shards.folder = folder.path("out");
  options.shards.overwrite = true;
  ASSERT_TRUE(pack(options));
  const std::string before = *base::read_file(folder.path("out/train-0000.tar"));
  folder.write("in/a/2.png", "no image");
  EXPECT_THAT(pack(options).error().what(), HasSubstr("2.png: not an image"));
  EXPECT_EQ(*base::read_file(folder.path("out/train-0000.tar")), before);
  EXPECT_THAT(*base::list_directory(folder.path("out")),
              ElementsAre("classes.txt", "sizes.json", "train-0000.idx", "train-0000.tar"));
}

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
  const auto train = labels_in(folder.path("out/train-*.tar")),
             test = labels_in(folder.path("out/test-*.tar"));
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
  EXPECT_NE(labels_in(folder.path("out/test-*.tar")), test);
  options.seed = 0;
  ASSERT_TRUE(pack_digits(options));
  EXPECT_EQ(labels_in(folder.path("out/test-*.tar")), test);
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
      labels_in(folder.path("out/train-*.tar")),
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
      labels_in(folder.path("out/*.tar")),
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
