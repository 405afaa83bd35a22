#include "sluice/data/tools/pack.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/decode.h"
#include "sluice/data/shards/remote_source.h"
#include "sluice/data/tools/table.h"

namespace sluice::data {
namespace {

struct ImageFile {
  std::string path, extension;
  std::string class_name;  // empty: no class
  std::string json;        // a further member, unless empty
  std::int64_t label = 0;
};

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  return base::lower_case(std::move(extension));
}

bool is_image(const std::string& path) { return format_of(extension_of(path)) == Format::kImage; }

// Returns the kind of a file that is left out, in a few words.
std::string kind_of(const std::string& path) {
  std::error_code unreadable;
  const std::string name = std::filesystem::path(path).filename().string();
  const bool folder = std::filesystem::is_directory(path, unreadable);
  if (base::starts_with(name, "._")) return "AppleDouble of macOS (._NAME)";
  if (name[0] == '.') return folder ? "folder that begins with a dot" : "file that begins with a dot";
  if (std::filesystem::is_symlink(path, unreadable)) return "link";
  if (folder) return "folder";
  const std::string extension = extension_of(path);
  return extension.empty() ? "without extension" : extension;
}

void leave_out(const std::string& path, PackReport& report) {
  if (report.left_out++ == 0) report.first_left_out = path;
  ++report.left_out_kinds[kind_of(path)];
}

// Whether `outer` is `inner` or a folder above it. Both paths have no links.
bool holds(const std::filesystem::path& outer, const std::filesystem::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Returns all files below a folder, in order. Links are followed, except a link back to a folder above it.
base::Result<std::vector<std::string>> files_below(const std::string& folder, PackReport& report) {
  namespace fs = std::filesystem;
  std::error_code failed, unreadable;
  std::vector<std::string> paths;
  std::vector<fs::path> above = {fs::canonical(folder, unreadable)};  // above the entry, links resolved
  for (auto entry =
           fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink, failed);
       !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const std::string path = entry->path().string();
    if (entry->path().filename().string()[0] == '.') {  // .ipynb_checkpoints, .git, ._cat.jpg
      if (entry->is_directory(unreadable)) entry.disable_recursion_pending();
      leave_out(path, report);
      continue;
    }
    if (entry->is_regular_file(unreadable)) {
      paths.push_back(path);
      continue;
    }
    if (!entry->is_directory(unreadable)) {  // a link to nothing, a socket
      leave_out(path, report);
      continue;
    }
    above.resize(static_cast<std::size_t>(entry.depth()) + 1);
    above.push_back(fs::canonical(entry->path(), unreadable));
    const auto leads_up = [&](const fs::path& one) { return holds(above.back(), one); };
    if (std::none_of(above.begin(), above.end() - 1, leads_up)) continue;
    entry.disable_recursion_pending();
    leave_out(path, report);
  }
  if (failed) return base::fail(Code::kPermissionDenied, "cannot list ", folder, ": ", failed.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

base::Status add_class(const std::string& folder, const std::string& name, std::int64_t label,
                       std::vector<ImageFile>& images, PackReport& report) {
  SLUICE_TRY(const auto paths, files_below(folder, report));
  const std::size_t before = images.size();
  std::set<std::string> inner;  // folders with images, right below this one
  bool direct = false;
  for (const std::string& path : paths) {
    if (is_image(path)) {
      const std::string rest = path.substr(folder.size() + 1);
      const std::size_t slash = rest.find('/');
      direct = direct || slash == std::string::npos;
      if (slash != std::string::npos) inner.insert(rest.substr(0, slash));
      images.push_back({path, extension_of(path), name, "", label});
    } else {
      leave_out(path, report);
    }
  }
  if (images.size() == before)
    return base::fail(Code::kInvalidArgument, "the class folder ", folder,
                      " holds no images: expected files that end on ", kImageExtensions);
  if (!direct) report.nested.emplace_back(name, std::vector<std::string>(inner.begin(), inner.end()));
  return {};
}

// Gives each image the class that its folder is named after.
base::Result<std::vector<ImageFile>> from_deepest_folders(const std::string& folder, PackReport& report) {
  const std::set<std::string> part_names = {"train", "training", "test",       "testing",
                                            "val",   "valid",    "validation", "dev"};
  SLUICE_TRY(const auto paths, files_below(folder, report));
  std::map<std::string, std::vector<ImageFile>> classes;
  std::set<std::string> parts;
  for (const std::string& path : paths) {
    const std::string rest = path.substr(folder.size() + (folder.back() == '/' ? 0 : 1));
    if (!is_image(path) || rest.find('/') == std::string::npos) {
      leave_out(path, report);
      continue;
    }
    const std::string name = std::filesystem::path(rest).parent_path().filename().string();
    const std::string first = rest.substr(0, rest.find('/'));
    if (part_names.contains(base::lower_case(first)) && rest.rfind('/') > first.size()) parts.insert(first);
    classes[name].push_back({path, extension_of(path), name, "", 0});
  }
  if (classes.empty())
    return base::fail(
        Code::kInvalidArgument, folder,
        " holds no images in folders: expected folders named after classes, with files in them that end on ",
        kImageExtensions);
  if (parts.size() > 1) report.joined_parts.assign(parts.begin(), parts.end());
  std::vector<ImageFile> images;
  for (auto& [name, files] : classes) {
    for (ImageFile& file : files) {
      file.label = static_cast<std::int64_t>(report.classes.size());
      images.push_back(std::move(file));
    }
    report.classes.push_back(name);
  }
  return images;
}

base::Result<std::vector<ImageFile>> from_folder(const std::string& folder, PackReport& report) {
  SLUICE_TRY(const auto names, base::list_directory(folder));
  std::vector<ImageFile> images;
  std::error_code unreadable;
  const auto root = std::filesystem::canonical(folder, unreadable);
  for (const std::string& name : names) {
    const std::string path = base::join_path(folder, name);
    if (name[0] == '.' || !base::is_directory(path) ||
        holds(std::filesystem::canonical(path, unreadable), root)) {
      leave_out(path, report);
      continue;
    }
    SLUICE_OK(add_class(path, name, static_cast<std::int64_t>(report.classes.size()), images, report));
    report.classes.push_back(name);
  }
  if (report.classes.empty())
    return base::fail(Code::kInvalidArgument, folder,
                      " holds no folders: expected one folder for each class, with ", "images in it");
  return images;
}

base::Result<ImageFile> listed_image(const ListedFile& file, const std::string& list) {
  const std::string full =
      file.path[0] == '/' ? file.path : base::join_path(base::parent_path(list), file.path);
  if (!is_image(full))
    return base::fail(Code::kInvalidArgument, list, ", line ", file.line, ": '", file.path,
                      "' is not an image by its extension: expected one of ", kImageExtensions);
  if (!base::path_exists(full))
    return base::fail(Code::kNotFound, list, ", line ", file.line, ": no such file: ", full);
  return ImageFile{full, extension_of(full), file.class_name, file.json, 0};
}

base::Result<std::vector<ImageFile>> from_list(const std::string& list, PackReport& report) {
  SLUICE_TRY(const std::string text, base::read_file(list));
  SLUICE_TRY(const auto files, parse_list(text, list));
  std::vector<ImageFile> images;
  for (const ListedFile& file : files) {
    SLUICE_TRY(auto image, listed_image(file, list));
    images.push_back(std::move(image));
  }
  const bool numbers = std::all_of(images.begin(), images.end(), [](const ImageFile& image) {
    return image.class_name.empty() || parse_whole_number(image.class_name).has_value();
  });
  std::map<std::string, std::int64_t> labels;
  for (const ImageFile& image : images)
    if (!image.class_name.empty()) labels[image.class_name] = 0;
  for (auto& [name, label] : labels) {
    label = numbers ? *parse_whole_number(name) : static_cast<std::int64_t>(report.classes.size());
    if (!numbers) report.classes.push_back(name);
  }
  for (ImageFile& image : images)
    if (!image.class_name.empty()) image.label = labels[image.class_name];
  return images;
}

// Gives classes the numbers in the set's classes.txt, and new classes the next ones. The names are written
// first: after the shards exist, the same command would add them again.
base::Status number_as_before(const PackOptions& options, std::vector<ImageFile>& images,
                              PackReport& report) {
  const std::string path = base::join_path(options.shards.folder, "classes.txt");
  SLUICE_TRY(const auto text, read_text(path));
  if (!text && !is_on_network(options.shards.folder) && !base::is_directory(options.shards.folder))
    return base::fail(Code::kNotFound, "there is no folder ", options.shards.folder,
                      ": expected the folder of a set; 'sluice data pack' makes one");
  if (!text)
    return base::fail(Code::kNotFound, path,
                      " is missing: the set's classes have no names, so Sluice cannot number '",
                      report.classes.front(), "'; expected a list with numbers for classes");
  std::vector<std::string> names = base::split(base::trim(*text), '\n');
  std::map<std::string, std::int64_t> labels;
  for (const std::string& name : report.classes)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (std::size_t i = 0; i < names.size(); ++i) labels[names[i]] = static_cast<std::int64_t>(i);
  for (ImageFile& image : images)
    if (!image.class_name.empty()) image.label = labels[image.class_name];
  report.classes = std::move(names);
  return write_lines(path, report.classes);
}

base::Result<NewSample> load(const ImageFile& image, std::int64_t index, bool check) {
  SLUICE_TRY(std::string bytes, base::read_file(image.path));
  if (check) {
    const auto decoded = decode_image(bytes, ColorModel::kRgb);
    if (!decoded) return base::fail_at(decoded, image.path);
  }
  NewSample sample{sample_key(index), {}};
  sample.members.emplace_back(image.extension, std::move(bytes));
  if (!image.class_name.empty()) sample.members.emplace_back("cls", std::to_string(image.label));
  if (!image.json.empty()) sample.members.emplace_back("json", image.json);
  return sample;
}

// Returns a hash that changes with every file, its size and time, its class and its place.
base::Result<std::string> fingerprint_of(const std::vector<ImageFile>& images, const PackOptions& options) {
  std::uint64_t hash = base::key({static_cast<std::uint64_t>(options.shards.shard_size), options.check});
  for (const ImageFile& image : images) {
    struct stat info {};
    if (::stat(image.path.c_str(), &info) != 0) return base::fail_errno(errno, "look at", image.path);
    hash = base::key({hash, base::key(image.path), base::key(image.class_name), base::key(image.json),
                      static_cast<std::uint64_t>(image.label), static_cast<std::uint64_t>(info.st_size),
                      static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                      static_cast<std::uint64_t>(info.st_mtim.tv_nsec)});
  }
  return base::str(images.size(), " images, ", hash);
}

}  // namespace

base::Result<PackReport> pack(const PackOptions& options) {
  if (!base::path_exists(options.input))
    return base::fail(Code::kNotFound, "no such folder or list: '", options.input, "'");
  PackReport report;
  std::vector<ImageFile> images;
  if (base::is_directory(options.input)) {
    SLUICE_TRY(images, options.class_folder == ClassFolder::kFirst
                           ? from_folder(options.input, report)
                           : from_deepest_folders(options.input, report));
  } else if (options.class_folder != ClassFolder::kFirst) {
    return base::fail(
        Code::kInvalidArgument, options.input,
        " is a list, which names the classes itself: leave out --class-folder, or pack a folder");
  } else {
    SLUICE_TRY(images, from_list(options.input, report));
  }
  for (const std::string& name : report.classes)
    if (name.find('\n') != std::string::npos)
      return base::fail(Code::kInvalidArgument, "the name of the class '", base::printable_line(name),
                        "' has a line break: classes.txt has one name a line; give it another name");
  if (options.shards.append && !report.classes.empty()) SLUICE_OK(number_as_before(options, images, report));
  if (options.shuffle) base::Random({options.seed}).shuffle(images);
  ShardOptions shards = options.shards;
  SLUICE_TRY(shards.fingerprint, fingerprint_of(images, options));
  if (!options.shards.append) shards.classes = report.classes;
  SLUICE_TRY(report.shards,
             write_shards(
                 static_cast<std::int64_t>(images.size()),
                 [&](std::int64_t i) { return load(images[static_cast<std::size_t>(i)], i, options.check); },
                 shards));
  return report;
}

}  // namespace sluice::data
