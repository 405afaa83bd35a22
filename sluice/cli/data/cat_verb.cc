// sluice data cat
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/data/common.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/tools/sheet.h"

namespace sluice::cli {
namespace {

using data::Field;
using data::Format;
using data::RawSample;

struct CatOptions {
  std::vector<std::string> shards, keys, where;
  std::int64_t skip = 0, count = 0;
  std::string part, folder, sheet;
  bool raw = false;
  std::int64_t columns = 8, side = 112;
};

// Describes a part of a sample in one line: its text or size, or an image's size.
std::string describe(const Field& field) {
  const Format format = data::format_of(field.extension);
  const bool packed = base::ends_with(field.extension, ".gz");
  if (format == Format::kImage && !packed) {
    const auto pixels = data::decode_image(field.bytes, data::ColorModel::kRgb);
    return base::str(grouped(static_cast<std::int64_t>(field.bytes.size())), " bytes, ",
                     pixels ? base::str(pixels->width, " × ", pixels->height, " pixels")
                            : std::string(pixels.error().what()));
  }
  const bool text = format == Format::kText || format == Format::kNumber || format == Format::kJson;
  constexpr std::size_t kShown = 200;
  if (!text || packed || !data::is_utf8(field.bytes) || field.bytes.find('\0') != std::string::npos)
    return grouped(static_cast<std::int64_t>(field.bytes.size())) + " bytes";
  const std::string_view shown = base::trim(field.bytes);
  if (shown.size() <= kShown) return std::string(shown);
  return base::str(shown.substr(0, kShown), "… (", grouped(static_cast<std::int64_t>(shown.size())),
                   " bytes)");
}

base::Status write_parts(const RawSample& sample, const std::string& folder) {
  for (const Field& field : sample.fields) {
    // A key may contain folders, but the path must stay inside `folder`.
    std::string name = sample.key + "." + field.extension;
    while (base::starts_with(name, "./")) name.erase(0, 2);  // as `tar c ./images` writes it
    const auto joined = base::safe_join(folder, name);
    if (!joined) return base::fail_at(joined, sample.where(), ": its key leads out of the folder");
    const std::string& path = *joined;
    SLUICE_OK(base::make_directories(base::parent_path(path)));
    SLUICE_OK(base::write_file_atomically(path, field.bytes));
    std::printf("%s\n", base::printable(path).c_str());
  }
  return {};
}

// Returns the first image of a sample with its key and its class, by the class's name if it has one.
std::optional<data::SheetTile> tile_of(const RawSample& sample, const std::vector<std::string>& classes) {
  std::string label;
  std::optional<data::SheetTile> tile;
  for (const Field& field : sample.fields) {
    const Format format = data::format_of(field.extension);
    if (format == Format::kNumber && label.empty()) label = base::trim(field.bytes);
    if (format != Format::kImage || tile) continue;
    auto pixels = data::decode_image(field.bytes, data::ColorModel::kRgb);
    if (pixels) tile = data::SheetTile{std::move(*pixels), sample.key};
  }
  const auto number = data::parse_whole_number(label);
  if (number && *number >= 0 && *number < static_cast<std::int64_t>(classes.size()))
    label = classes[static_cast<std::size_t>(*number)];
  if (tile && !label.empty()) tile->caption += ": " + label;
  return tile;
}

class Cat {
 public:
  explicit Cat(const CatOptions& options) : options_(options), skip_(options.skip), left_(count()) {}

  base::Status run() {
    if (!options_.sheet.empty() && !base::ends_with(options_.sheet, ".png"))
      return base::fail(Code::kInvalidArgument,
                        "--sheet writes PNG: expected a name that ends in .png, found ", options_.sheet);
    SLUICE_TRY(const auto urls, expand_arguments(options_.shards));
    SLUICE_TRY(filters_, filters_of(options_.where));
    for (const std::string& url : urls) {
      if (!options_.sheet.empty()) classes_ = data::class_names(url);
      SLUICE_TRY(const auto index, useful_index(url));
      if (index)
        SLUICE_OK(read_indexed(url, *index));
      else
        SLUICE_OK(read_all(url));
      if (left_ == 0) break;
    }
    return finish();
  }

 private:
  std::int64_t count() const {
    if (options_.count > 0) return options_.count;
    if (!options_.keys.empty()) return static_cast<std::int64_t>(options_.keys.size());
    return options_.sheet.empty() ? 1 : 64;
  }
  bool wanted(std::string_view key) const {
    return options_.keys.empty() ||
           std::find(options_.keys.begin(), options_.keys.end(), key) != options_.keys.end();
  }
  // Returns the shard's index if it saves reading: some samples are skipped, and the shard is not packed.
  base::Result<std::optional<data::ShardIndex>> useful_index(const std::string& url) const {
    const bool all = options_.keys.empty() && options_.skip == 0;
    if (all || !filters_.empty() || !data::can_be_read_again(url) || data::is_packed(url))
      return std::optional<data::ShardIndex>();
    return data::read_index(url);
  }
  base::Status read_indexed(const std::string& url, const data::ShardIndex& index) {
    const std::vector<std::uint64_t> starts = index.starts();
    for (std::size_t i = 0; i < starts.size() && left_ > 0; ++i) {
      const std::string& name = index.samples[i].front().name;
      const auto split = data::split_name(name);
      if (!split || !wanted(split->key) || skip_-- > 0) continue;
      data::SourceOptions place;
      place.begin = starts[i];
      if (i + 1 < starts.size()) place.end = starts[i + 1];
      SLUICE_TRY(auto source, data::open_source(url, place));
      data::ShardReader reader(std::move(source), {}, data::ArchivePart{place.begin, place.end.has_value()});
      RawSample sample;
      SLUICE_TRY(const bool found, reader.next(sample));
      if (!found || sample.key != split->key)
        return base::fail(Code::kDataLoss, url, ": its index has ", name, " at byte ", place.begin,
                          ", where the shard has ", found ? sample.key : "nothing",
                          ": make it again with 'sluice data index'");
      SLUICE_OK(show(sample));
    }
    return {};
  }
  base::Status read_all(const std::string& url) {
    SLUICE_TRY(auto source, data::open_source(url));
    data::ShardReader reader(std::move(source), {});
    RawSample sample;
    while (left_ > 0) {
      SLUICE_TRY(const bool found, reader.next(sample));
      if (!found) break;
      if (!wanted(sample.key)) continue;
      SLUICE_TRY(const bool taken, data::is_taken(filters_, sample));
      if (!taken || skip_-- > 0) continue;
      SLUICE_OK(show(sample));
    }
    return {};
  }
  base::Status show(const RawSample& sample) {
    if (sample.failed) return tl::unexpected<Error>(*sample.failed);
    --left_;
    ++shown_;
    if (!options_.sheet.empty()) {
      if (auto tile = tile_of(sample, classes_)) tiles_.push_back(std::move(*tile));
      return {};
    }
    if (!options_.folder.empty()) return write_parts(sample, options_.folder);
    if (options_.part.empty()) {
      std::printf("%s\n", base::printable(sample.where()).c_str());
      for (const Field& field : sample.fields)
        std::printf("  %-8s %s\n", base::printable(field.extension).c_str(),
                    base::printable(describe(field)).c_str());
      return {};
    }
    const Field* field = sample.find(options_.part);
    if (field == nullptr) return base::fail(Code::kNotFound, sample.where(), ": no member ", options_.part);
    const bool is_shown = !options_.raw && ::isatty(STDOUT_FILENO) != 0;
    const std::string bytes = is_shown ? base::printable(field->bytes) : std::string(field->bytes);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return {};
  }
  base::Status finish() const {
    if (shown_ == 0)
      return base::fail(
          Code::kNotFound,
          options_.skip > 0 ? base::str("no sample is left after --skip ", options_.skip, ": expected less")
          : !options_.keys.empty()
              ? base::str("no sample of these shards has the key '", options_.keys.front(),
                          "': 'sluice data ls --keys' lists the keys")
          : !filters_.empty()
              ? std::string(
                    "--where holds for no sample of these shards: without it, 'sluice data cat' shows "
                    "what members they have")
              : std::string("these shards have no samples"));
    if (options_.sheet.empty()) return {};
    if (tiles_.empty()) return base::fail(Code::kNotFound, "no images in ", counted(shown_, "sample"));
    SLUICE_TRY(const std::string png,
               data::encode_png(data::contact_sheet(tiles_, options_.columns, options_.side)));
    SLUICE_OK(base::write_file_atomically(options_.sheet, png));
    std::printf("%s: %s\n", counted(static_cast<std::int64_t>(tiles_.size()), "image").c_str(),
                options_.sheet.c_str());
    return {};
  }

  const CatOptions& options_;
  std::int64_t skip_, left_, shown_ = 0;
  std::vector<data::SheetTile> tiles_;
  std::vector<data::Filter> filters_;
  std::vector<std::string> classes_;  // the classes of the shard that is read
};

Flag key_row(CatOptions& o) {
  return {"", "--key", RepeatedText{&o.keys}, "", "The sample with this key (may be repeated)"};
}

// clang-format off
std::vector<Flag> output_rows(CatOptions& o) {
  return {
      Flag{"", "--skip", &o.skip, "", "Samples passed over first"}.zero_or_more(),
      Flag{"", "--count", &o.count, "", "Samples (default: 1; on a sheet 64; one for each key)"}.above_zero(),
      Flag{"", "--part", &o.part, "", "Only this part, as it is, to standard output"},
      Flag{"", "--raw", &o.raw, "", "Also a terminal gets the bytes of --part as they are; else control characters visibly"},
      Flag{"", "--out", &o.folder, "", "Write the parts into this folder as files"},
      Flag{"", "--sheet", &o.sheet, "", "Write a PNG file with the images, their keys and classes"},
      Flag{"", "--columns", &o.columns, "", "Images in a row of the sheet", {1, 100}},
      Flag{"", "--side", &o.side, "", "Height and width of an image on the sheet, in pixels", {16, 1024}},
  };
}
// clang-format on

}  // namespace

Verb cat_verb() {
  auto options = std::make_shared<CatOptions>();
  return {.name = "cat",
          .help = "Show samples: their parts, as files, or images on one sheet",
          .footer =
              "Without further flags, the parts of the first sample. Examples:\n"
              "  sluice data cat shards/train-0000.tar --key 0000017\n"
              "  sluice data cat shards/train-0000.tar --key 0000017 --part jpg >image.jpg\n"
              "  sluice data cat shards/train-0000.tar --count 10 --out samples\n"
              "  sluice data cat 'shards/train-*.tar' --where 'cls in 0,3' --count 64 --sheet sheet.png",
          .add_flags =
              [options](CLI::App& app) {
                add_flags(app, shard_rows(options->shards));
                add_flags(app, {key_row(*options), where_row(options->where)});
                add_flags(app, memory_rows());
                add_flags(app, output_rows(*options));
                app.get_option("--sheet")->excludes("--part")->excludes("--out");
              },
          .run = guarded("cat", [options] { return Cat(*options).run(); })};
}

}  // namespace sluice::cli
