// sluice data pack, digits, cifar10, idx, mds
#include <cstdio>
#include <functional>
#include <memory>

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/batch.h"
#include "sluice/data/tools/cifar10.h"
#include "sluice/data/tools/digits.h"
#include "sluice/data/tools/idx.h"
#include "sluice/data/tools/mds/mds_import.h"
#include "sluice/data/tools/pack.h"

namespace sluice::cli {
namespace {

void print_set(const data::ShardReport& report) {
  const auto shards = static_cast<std::int64_t>(report.shards.size());
  std::printf("%s in %s, %s: %s%s%s\n", counted(report.samples, "sample").c_str(),
              counted(shards, "shard").c_str(), size_text(report.bytes).c_str(),
              report.shards.front().c_str(), shards == 1 ? "" : " … ",
              shards == 1 ? "" : report.shards.back().c_str());
}

// Prints "3 files left out (2 svg, 1 txt), the first being …"
void print_left_out(const data::PackReport& report) {
  if (report.left_out == 0) return;
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : report.left_out_kinds) kinds.push_back(grouped(count) + " " + kind);
  std::printf(
      "%s left out (%s), the first being %s: only images are packed (%s), and no links to nothing or back to "
      "a folder above\n",
      counted(report.left_out, "file").c_str(), base::printable(base::join(kinds, ", ")).c_str(),
      base::printable(report.first_left_out).c_str(),
      base::join(base::split(data::kImageExtensions, ';'), ", ").c_str());
}

// Warns of nested folders: train/CLASS and test/CLASS make the classes "train" and "test".
void print_nested(const data::PackReport& report, const std::string& input) {
  if (report.nested.empty()) return;
  const auto& [name, inner] = report.nested.front();
  std::printf(
      "note: %s holds no images itself, only folders with images (%s%s), and all of them are of the class "
      "%s%s. If these folders are the classes, pack %s/%s instead, or all of them as one set with "
      "--class-folder deepest\n",
      base::printable(name).c_str(), base::printable(inner.front()).c_str(), inner.size() > 1 ? ", …" : "",
      base::printable(name).c_str(),
      report.nested.size() > 1
          ? base::str(" (it is so for ", counted(static_cast<std::int64_t>(report.nested.size()), "class"),
                      ")")
                .c_str()
          : "",
      base::printable(input).c_str(), base::printable(name).c_str());
}

// Notes that --class-folder deepest has joined these folders into one set.
void print_joined(const data::PackReport& report, const std::string& input) {
  if (report.joined_parts.empty()) return;
  std::printf("note: %s of %s are one set now. To test on samples that no training sees, pack each of them\n",
              base::printable(base::join(report.joined_parts, ", ")).c_str(), base::printable(input).c_str());
}

// clang-format off
Flag overwrite_row(bool& overwrite, const char* help = "Replace shards of the same prefix") {
  return {"", "--overwrite", &overwrite, "", help};
}

// The rows of a set's names and shard sizes.
std::vector<Flag> shard_rows(data::ShardOptions& o) {
  return {
      Flag{"", "--prefix", &o.prefix, "", "Shards are named PREFIX-0000.tar …"},
      Flag{"", "--shard-size", &o.shard_size, "", "Samples in a shard"}.above_zero(),
  };
}

Flag out_row(std::string& folder) {
  return Flag{"", "OUT", &folder, "", "Folder for the shards (made when missing)"}.required();
}

Flag input_row(std::string& input) {
  return Flag{"", "INPUT", &input, "", "Folder of classes, or list file"}.required();
}

Flag set_row(std::string& set) { return Flag{"", "SET", &set, "", "Folder of the set"}.required(); }

Flag shard_workers_row(data::ShardOptions& o) {
  return Flag{"", "--workers", &o.workers, "", "Shards written at a time (0: one for each core)"}.zero_or_more();
}

// The rows that pack and append share, before the rows of memory.
std::vector<Flag> pack_rows(data::PackOptions& o) {
  const auto take_folder = [&o](const std::string& which) {
    o.class_folder = which == "first" ? data::ClassFolder::kFirst : data::ClassFolder::kDeepest;
  };
  return {
      Flag{"", "--class-folder", base::ParsedText{take_folder}, "", "Name an image's class after the first folder below INPUT, or after the deepest one, which the image is in"}
          .one_of({"first", "deepest"}).shown("first"),
      Flag{"", "--seed", &o.seed, "", "Seed of the shuffled order"},
      Flag{"", "!--no-shuffle", &o.shuffle, "", "Keep the order of the list, or class by class"},
      Flag{"", "!--no-check", &o.check, "", "Do not decode each image while packing"},
      shard_workers_row(o.shards),
  };
}
// clang-format on

void add_pack_flags(CLI::App& app, data::PackOptions& options) {
  add_flags(app, pack_rows(options));
  add_flags(app, memory_rows());
}

// Returns a callback that shows the count; `progress` must outlive it.
std::function<void(std::int64_t, std::int64_t)> count_packed(Progress& progress) {
  return [&progress](std::int64_t done, std::int64_t total) { progress.show("packed", done, total); };
}

base::Status run_pack(data::PackOptions& options) {
  Progress progress;
  options.shards.progress = count_packed(progress);
  SLUICE_TRY(const auto report, data::pack(options));
  progress.clear();
  print_set(report.shards);
  if (report.shards.continued > 0)
    std::printf("%s of the shards were there from a run that was stopped\n",
                grouped(report.shards.continued).c_str());
  if (!report.classes.empty())
    std::printf("%s: %s/classes.txt\n",
                counted(static_cast<std::int64_t>(report.classes.size()), "class").c_str(),
                options.shards.folder.c_str());
  print_nested(report, options.input);
  print_joined(report, options.input);
  print_left_out(report);
  return {};
}

}  // namespace

Verb pack_verb() {
  auto options = std::make_shared<data::PackOptions>();
  return {.name = "pack",
          .help = "Pack images into shards",
          .footer =
              "INPUT is a folder with one folder of images for each class (classes are numbered in "
              "alphabetical order, and\n"
              "their names are written to OUT/classes.txt; --class-folder deepest takes the folder "
              "that an image is in), or a list:\n"
              "  list.txt    an image and its class on each line, separated by a tab, a comma or a "
              "space\n"
              "  list.csv    the same as CSV, with or without a line that names the columns file and "
              "class\n"
              "  list.jsonl  {\"file\": …, \"class\": …, …} on each line; any other keys go into a "
              "member json\n"
              "Shards appear when the whole set is written. A run that was stopped continues when it "
              "is started again.\n"
              "Examples: sluice data pack photos/train shards --prefix train --shard-size 1000\n"
              "          sluice data pack photos shards --class-folder deepest   (photos/2024/cat, "
              "photos/2025/cat)\n"
              "          sluice data pack train.jsonl shards",
          .add_flags =
              [options](CLI::App& app) {
                add_flags(app, {input_row(options->input), out_row(options->shards.folder)});
                add_flags(app, shard_rows(options->shards));
                add_pack_flags(app, *options);
                add_flags(app, {overwrite_row(options->shards.overwrite)});
              },
          .run = guarded("pack", [options] { return run_pack(*options); })};
}

Verb append_verb() {
  auto options = std::make_shared<data::PackOptions>();
  options->shards.append = true;
  return {.name = "append",
          .help = "Add images to a set, in new shards",
          .footer =
              "INPUT is a folder of classes or a list, as for 'sluice data pack'. The numbers of "
              "shards and\n"
              "samples continue where SET ends, and its other shards stay as they are. Classes have "
              "the\n"
              "numbers that SET/classes.txt gives them, and new ones those behind. The new shards are "
              "moved\n"
              "into place one after the other at the end, and then into sizes.json: start no run on "
              "the set in\n"
              "that moment. A run that was stopped continues when it is started again; one that ended "
              "adds the\n"
              "images again.\n"
              "Examples: sluice data append shards photos/new\n"
              "          sluice data append gs://bucket/set train.csv --prefix train",
          .add_flags =
              [options](CLI::App& app) {
                add_flags(app, {set_row(options->shards.folder), input_row(options->input)});
                add_flags(app, shard_rows(options->shards));
                add_pack_flags(app, *options);
              },
          .run = guarded("append", [options] { return run_pack(*options); })};
}

namespace {

constexpr char kTestShare[] = "--test-share";
constexpr char kBothSets[] = "Replace train and test shards that are there";

// clang-format off
std::vector<Flag> digits_rows(data::DigitsOptions& o) {
  return {
      Flag{"", "CSV", &o.csv, "", "digits.csv.gz, or the same unpacked"}.required(),
      out_row(o.folder),
      Flag{"", "--side", &o.side, "", "Height and width of the images, in pixels", {8, 1024}},
      Flag{"", kTestShare, &o.test_share, "", "Part of each class that is held out for the test"},
      Flag{"", "--seed", &o.seed, "", "Seed of the split and the order"},
      Flag{"", "--shard-size", &o.shard_size, "", "Samples in a shard"}.above_zero(),
      overwrite_row(o.overwrite, kBothSets),
  };
}
// clang-format on

}  // namespace

Verb digits_verb() {
  auto options = std::make_shared<data::DigitsOptions>();
  return {
      .name = "digits",
      .help = "Make shards of scikit-learn's handwritten digits",
      .footer =
          "CSV is digits.csv.gz as scikit-learn's package holds it (sklearn/datasets/data/digits.csv.gz): "
          "1,797 "
          "images of\n"
          "8×8. Writes OUT/train-*.tar and OUT/test-*.tar, split by class with the seed.",
      .add_flags =
          [options](CLI::App& app) {
            add_flags(app, digits_rows(*options));
            app.get_option(kTestShare)->check(between(0.01, 0.99));
          },
      .run = guarded("digits", [options]() -> base::Status {
        SLUICE_TRY(const auto report, data::pack_digits(*options));
        print_set(report.train);
        print_set(report.test);
        return {};
      })};
}

namespace {

struct Cifar10Flags {
  std::vector<std::string> places;  // [SOURCE] DIR
  data::Cifar10Options options;
};

// clang-format off
std::vector<Flag> cifar10_rows(Cifar10Flags& f) {
  return {
      Flag{"", "[SOURCE] OUT", Words{&f.places, 1, 2}, "", "The archive, and the folder for the shards"}.required(),
      Flag{"", "--md5", &f.options.md5, "", "Expected MD5 sum of an archive other than the published one"},
      Flag{"", "--seed", &f.options.seed, "", "Seed of the training samples' order"},
      Flag{"", "--shard-size", &f.options.shard_size, "", "Samples in a shard"}.above_zero(),
      overwrite_row(f.options.overwrite, kBothSets),
  };
}
// clang-format on

}  // namespace

Verb cifar10_verb() {
  auto flags = std::make_shared<Cifar10Flags>();
  return {.name = "cifar10",
          .help = "Make shards of the published CIFAR-10 archive",
          .footer = base::str(
              "SOURCE is cifar-10-binary.tar.gz on this disk, its address, or the data set's\n"
              "home page; without it the archive is downloaded from ",
              data::kCifar10Page, ".\n",
              "The archive's MD5 sum must be the published one. Writes OUT/train-*.tar, OUT/test-*.tar and\n"
              "OUT/classes.txt.\n"
              "Examples: sluice data cifar10 shards\n"
              "          sluice data cifar10 ~/cifar-10-binary.tar.gz shards"),
          .add_flags = [flags](CLI::App& app) { add_flags(app, cifar10_rows(*flags)); },
          .run = guarded("cifar10", [flags]() -> base::Status {
            Progress progress;
            if (flags->places.size() == 2) flags->options.source = flags->places.front();
            flags->options.folder = flags->places.back();
            flags->options.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
              progress.show(what, done, total);
            };
            SLUICE_TRY(const auto report, data::pack_cifar10(flags->options));
            progress.clear();
            print_set(report.train);
            print_set(report.test);
            return {};
          })};
}

// Packs one pair of files, images and labels; MNIST's four files are two such pairs.
Verb idx_verb() {
  auto options = std::make_shared<data::IdxOptions>();
  return {
      .name = "idx",
      .help = "Make shards of IDX files, as MNIST and its relatives come in",
      .footer =
          "IMAGES and LABELS are IDX files of unsigned bytes, plain or gzip. Images become grey PNG files.\n"
          "Example: sluice data idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz mnist --prefix "
          "train",
      .add_flags =
          [options](CLI::App& app) {
            add_flags(app, {Flag{"", "IMAGES", &options->images, "", "Images: N × height × width"}.required(),
                            Flag{"", "LABELS", &options->labels, "", "Classes: N"}.required(),
                            out_row(options->shards.folder)});
            add_flags(app, shard_rows(options->shards));
            add_flags(app, {{"", "--seed", &options->seed, "", "Seed of the shuffled order"},
                            {"", "!--no-shuffle", &options->shuffle, "", "Keep the order of the files"},
                            overwrite_row(options->shards.overwrite)});
          },
      .run = guarded("idx", [options]() -> base::Status {
        Progress progress;
        options->shards.progress = count_packed(progress);
        SLUICE_TRY(const auto report, data::pack_idx(*options));
        progress.clear();
        print_set(report);
        return {};
      })};
}

namespace {

Flag column_row(std::vector<std::string>& columns) {
  return Flag{"", "--column", RepeatedText{&columns}, "",
              "A column to take, NAME or NAME=EXTENSION of its member; once for each (default: all)"}
      .called("NAME[=EXTENSION]");
}

}  // namespace

Verb mds_verb() {
  auto options = std::make_shared<data::MdsOptions>();
  return {.name = "mds",
          .help = "Make shards of a set in MDS, the format of MosaicML's Streaming",
          .footer =
              "SET is the folder with index.json, on a disk or in a bucket; its shards may be packed "
              "(zstd, gz).\n"
              "A column is a member NAME.ENDING: txt for str, cls for whole numbers, npy for real "
              "numbers and arrays,\n"
              "json, jpg and png as they are, png for pil, bin for bytes. The order stays, and a key "
              "is the sample's\n"
              "place. A run that was stopped continues when it is started again.\n"
              "Examples: sluice data mds mds/train shards --column image=jpg --column label=cls\n"
              "          sluice data mds s3://bucket/c4/train texts --column text=txt",
          .add_flags =
              [options](CLI::App& app) {
                add_flags(app, {set_row(options->input), out_row(options->shards.folder)});
                add_flags(app, shard_rows(options->shards));
                add_flags(app, {column_row(options->columns), shard_workers_row(options->shards),
                                overwrite_row(options->shards.overwrite)});
                add_flags(app, memory_rows());
              },
          .run = guarded("mds", [options]() -> base::Status {
            Progress progress;
            options->shards.progress = count_packed(progress);
            SLUICE_TRY(const auto report, data::pack_mds(*options));
            progress.clear();
            print_set(report.shards);
            std::vector<std::string> members;
            for (const auto& [member, encoding] : report.members)
              members.push_back(member + " (" + encoding + ")");
            std::printf("members: %s\n", base::printable(base::join(members, ", ")).c_str());
            if (!report.unknown_hashes.empty())
              std::printf("not compared, as this program does not compute them: sums of %s\n",
                          base::printable(base::join(report.unknown_hashes, ", ")).c_str());
            return {};
          })};
}

}  // namespace sluice::cli
