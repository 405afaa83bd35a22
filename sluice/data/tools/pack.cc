#include "sluice/data/tools/pack.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include "sluice/base/file.h"
#include "sluice/base/random.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/tools/table.h"

namespace sluice::data {
namespace {

struct Picture {
  std::string path, extension;
  std::string class_name;  // empty: it has none
  std::string json;        // a further member, unless empty
  std::int64_t label = 0;
};

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool is_picture(const std::string& path) { return format_of(extension_of(path)) == Format::kImage; }

base::Status add_class(const std::string& folder, const std::string& name, std::int64_t label,
                       std::vector<Picture>& pictures, PackReport& report) {
  std::error_code failed;
  const auto options = std::filesystem::directory_options::follow_directory_symlink;
  std::vector<std::string> paths;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder, options, failed);
       !failed && entry != std::filesystem::recursive_directory_iterator(); entry.increment(failed))
    if (entry->is_regular_file(failed)) paths.push_back(entry->path().string());
  if (failed) return base::fail(Code::kPermissionDenied, "cannot list ", folder, ": ", failed.message());
  std::sort(paths.begin(), paths.end());
  const std::size_t before = pictures.size();
  for (const std::string& path : paths) {
    if (is_picture(path)) {
      pictures.push_back({path, extension_of(path), name, "", label});
    } else if (report.left_out++ == 0) {
      report.first_left_out = path;
    }
  }
  if (pictures.size() == before)
    return base::fail(Code::kInvalidArgument, "the class folder ", folder,
                      " holds no pictures: expected jpg, jpeg, png, webp, ppm, pgm or pbm files");
  return {};
}

base::Result<std::vector<Picture>> from_folder(const std::string& folder, PackReport& report) {
  SLUICE_TRY(const auto names, base::list_directory(folder));
  std::vector<Picture> pictures;
  for (const std::string& name : names) {
    const std::string path = base::join_path(folder, name);
    if (name[0] == '.' || !base::is_directory(path)) {
      if (report.left_out++ == 0) report.first_left_out = path;
      continue;
    }
    SLUICE_OK(add_class(path, name, static_cast<std::int64_t>(report.classes.size()), pictures, report));
    report.classes.push_back(name);
  }
  if (report.classes.empty())
    return base::fail(Code::kInvalidArgument, folder,
                      " holds no folders: expected one folder for each class, with ", "pictures in it");
  return pictures;
}

base::Result<Picture> listed_picture(const ListedFile& file, const std::string& list) {
  const std::string full =
      file.path[0] == '/' ? file.path : base::join_path(base::parent_path(list), file.path);
  if (!is_picture(full))
    return base::fail(Code::kInvalidArgument, list, ", line ", file.line, ": '", file.path,
                      "' is no picture by its extension: expected jpg, jpeg, png, webp, ppm, pgm or pbm");
  if (!base::path_exists(full))
    return base::fail(Code::kNotFound, list, ", line ", file.line, ": no such file: ", full);
  return Picture{full, extension_of(full), file.class_name, file.json, 0};
}

base::Result<std::vector<Picture>> from_list(const std::string& list, PackReport& report) {
  SLUICE_TRY(const std::string text, base::read_file(list));
  SLUICE_TRY(const auto files, parse_list(text, list));
  std::vector<Picture> pictures;
  for (const ListedFile& file : files) {
    SLUICE_TRY(auto picture, listed_picture(file, list));
    pictures.push_back(std::move(picture));
  }
  const bool numbers = std::all_of(pictures.begin(), pictures.end(), [](const Picture& picture) {
    return picture.class_name.empty() || parse_whole_number(picture.class_name).has_value();
  });
  std::map<std::string, std::int64_t> labels;
  for (const Picture& picture : pictures)
    if (!picture.class_name.empty()) labels[picture.class_name] = 0;
  for (auto& [name, label] : labels) {
    label = numbers ? *parse_whole_number(name) : static_cast<std::int64_t>(report.classes.size());
    if (!numbers) report.classes.push_back(name);
  }
  for (Picture& picture : pictures)
    if (!picture.class_name.empty()) picture.label = labels[picture.class_name];
  return pictures;
}

base::Result<NewSample> load(const Picture& picture, std::int64_t index, bool check) {
  SLUICE_TRY(std::string bytes, base::read_file(picture.path));
  if (check) {
    const auto decoded = decode_image(bytes, ColorModel::kRgb);
    if (!decoded) return base::fail_at(decoded, picture.path);
  }
  NewSample sample{sample_key(index), {}};
  sample.members.emplace_back(picture.extension, std::move(bytes));
  if (!picture.class_name.empty()) sample.members.emplace_back("cls", std::to_string(picture.label));
  if (!picture.json.empty()) sample.members.emplace_back("json", picture.json);
  return sample;
}

// Changes with every file, its size and time, its class and its place.
base::Result<std::string> fingerprint_of(const std::vector<Picture>& pictures, const PackOptions& options) {
  std::uint64_t hash = base::key({static_cast<std::uint64_t>(options.shards.shard_size), options.check});
  for (const Picture& picture : pictures) {
    struct stat info {};
    if (::stat(picture.path.c_str(), &info) != 0)
      return base::fail_errno(errno, "cannot look at", picture.path);
    hash = base::key({hash, base::key(picture.path), base::key(picture.class_name), base::key(picture.json),
                      static_cast<std::uint64_t>(picture.label), static_cast<std::uint64_t>(info.st_size),
                      static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                      static_cast<std::uint64_t>(info.st_mtim.tv_nsec)});
  }
  return base::str(pictures.size(), " pictures, ", hash);
}

}  // namespace

base::Result<PackReport> pack(const PackOptions& options) {
  if (!base::path_exists(options.input))
    return base::fail(Code::kNotFound, "no such folder or list: '", options.input, "'");
  PackReport report;
  std::vector<Picture> pictures;
  if (base::is_directory(options.input)) {
    SLUICE_TRY(pictures, from_folder(options.input, report));
  } else {
    SLUICE_TRY(pictures, from_list(options.input, report));
  }
  if (options.shuffle) base::Random({options.seed}).shuffle(pictures);
  ShardOptions shards = options.shards;
  SLUICE_TRY(shards.fingerprint, fingerprint_of(pictures, options));
  SLUICE_TRY(report.shards, write_shards(
                                static_cast<std::int64_t>(pictures.size()),
                                [&](std::int64_t i) {
                                  return load(pictures[static_cast<std::size_t>(i)], i, options.check);
                                },
                                shards));
  if (!report.classes.empty())
    SLUICE_OK(write_lines(base::join_path(options.shards.folder, "classes.txt"), report.classes));
  return report;
}

}  // namespace sluice::data
