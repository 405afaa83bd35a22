#include "sluice/data/shards/urls.h"

#include <glob.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"

namespace sluice::data {
namespace {

using Strings = std::vector<std::string>;
constexpr int kMaxNestedLists = 8;

std::atomic<bool>& pipe_in_lists() {
  static std::atomic<bool> allowed = false;
  return allowed;
}

base::Status expand_part(const std::string& part, const std::string& folder, int depth, Strings& urls);

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Replaces ${X} by the value of WDS_X. Values may refer to others; a name that is not set is an error.
base::Result<std::string> substitute(std::string text) {
  for (int round = 0; round < 10; ++round) {
    std::string result;
    bool changed = false;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i + 2;
      if (text.compare(i, 2, "${") == 0)
        while (end < text.size() && is_name_character(text[end])) ++end;
      if (text.compare(i, 2, "${") != 0 || end == i + 2 || end >= text.size() || text[end] != '}') {
        result += text[i++];
        continue;
      }
      const std::string name = "WDS_" + text.substr(i + 2, end - i - 2);
      const auto value = base::environment(name.c_str());
      if (!value)
        return base::fail(Code::kNotFound, "'", text, "' needs the environment variable ", name,
                          ", which is not set: export it, or write the path out");
      result += *value;
      changed = true;
      i = end + 1;
    }
    text = std::move(result);
    if (!changed) break;
  }
  return text;
}

bool has_wildcard(std::string_view path) { return path.find_first_of("*?[") != std::string_view::npos; }

// Marks the name of a file that was found as a file: it may look like a command or an address.
std::string as_file(const std::string& path) { return is_remote(path) ? "./" + path : path; }

base::Status add_glob(const std::string& pattern, Strings& urls) {
  const std::string folder = base::parent_path(pattern);
  if (!folder.empty() && !has_wildcard(folder) && !base::is_directory(folder))
    return base::fail(Code::kNotFound, "cannot list '", pattern, "': there is no folder '", folder, "'");
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  const std::unique_ptr<glob_t, decltype(&::globfree)> guard(&found, ::globfree);
  if (status == GLOB_NOMATCH)
    return base::fail(Code::kNotFound, "no file matches '", pattern, "': check the folder and the pattern");
  if (status != 0) return base::fail_errno(errno, "list what matches", pattern);
  for (std::size_t i = 0; i < found.gl_pathc; ++i) urls.push_back(as_file(found.gl_pathv[i]));
  return {};
}

// Adds an object, or the objects that match a pattern. Plain names, maybe many, are not looked up.
base::Status add_objects(const std::string& url, Strings& urls) {
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  if (name.object.empty() || base::ends_with(name.object, "/"))
    return base::fail(Code::kInvalidArgument, "'", url, "' is a folder: to read all shards in it, write '",
                      name.url(), "*.tar'");
  if (!has_wildcard(name.object)) {
    urls.push_back(url);
    return {};
  }
  SLUICE_TRY(const cloud::Store* store, cloud::store_of(name));
  SLUICE_TRY(const Strings found, store->glob(url));
  urls.insert(urls.end(), found.begin(), found.end());
  return {};
}

base::Status add_list(const std::string& file, int depth, Strings& urls) {
  if (depth >= kMaxNestedLists)
    return base::fail(Code::kInvalidArgument, "the list '@", file,
                      "' leads back to itself through other lists");
  auto text = base::read_file(file);
  if (!text) return base::fail_at(text, "the list of shards '@", file, "'");
  const std::size_t before = urls.size();
  for (const std::string& line : base::split(*text, '\n')) {
    const std::string_view entry = base::trim(line);
    if (entry.empty() || entry.front() == '#') continue;
    SLUICE_OK(expand_part(std::string(entry), base::parent_path(file), depth + 1, urls));
  }
  if (urls.size() == before)
    return base::fail(Code::kInvalidArgument, "the list of shards '@", file,
                      "' names none: expected one a line");
  return {};
}

// Refuses commands in lists, which may have come from anywhere; the command line is the user's own word.
// `folder`: the list's folder; "": the command is not from a list.
base::Status check_command(const std::string& url, const std::string& folder) {
  if (folder.empty() || !base::starts_with(url, "pipe:") || pipe_in_lists() ||
      base::environment_flag("SLUICE_ALLOW_PIPE", false))
    return {};
  return base::fail(Code::kPermissionDenied, "a list of shards in ", folder, " asks to run the command '",
                    url, "': if you trust the list, give --allow-pipe or set SLUICE_ALLOW_PIPE=1");
}

base::Status add_files(const std::string& pattern, const std::string& folder, Strings& urls) {
  SLUICE_TRY(auto names, expand_braces(pattern));
  Strings missing;
  for (const std::string& name : names) {
    if (cloud::is_object_url(name)) {
      SLUICE_OK(add_objects(name, urls));
      continue;
    }
    if (name != "-" && base::path_exists(name)) {
      urls.push_back(as_file(name));
      continue;
    }
    if (is_remote(name)) {
      SLUICE_OK(check_command(name, folder));
      urls.push_back(name);
      continue;
    }
    const std::string home = base::expand_home(name);
    const std::string path =
        folder.empty() || home.empty() || home[0] == '/' ? home : base::join_path(folder, home);
    if (base::path_exists(path)) {
      urls.push_back(path);
    } else if (has_wildcard(path)) {
      SLUICE_OK(add_glob(path, urls));
    } else {
      missing.push_back(path);
    }
  }
  if (missing.empty()) return {};
  if (names.size() == 1) return base::fail(Code::kNotFound, "no such shard: '", missing.front(), "'");
  return base::fail(Code::kNotFound, missing.size(), " of the ", names.size(), " shards of '", pattern,
                    "' do not exist; the first is '", missing.front(), "'");
}

base::Status expand_part(const std::string& part, const std::string& folder, int depth, Strings& urls) {
  SLUICE_TRY(const std::string pattern, substitute(part));
  if (pattern.empty())
    return base::fail(Code::kInvalidArgument,
                      "an empty name in the list of shards: expected a path, found nothing");
  if (base::starts_with(pattern, "@")) {
    const std::string file = base::expand_home(pattern.substr(1));
    const bool relative = !folder.empty() && !file.empty() && file[0] != '/';
    return add_list(relative ? base::join_path(folder, file) : file, depth, urls);
  }
  return add_files(pattern, folder, urls);
}

Strings split_list(const std::string& list) {
  Strings parts;
  std::size_t start = 0;
  for (std::size_t end; (end = list.find("::", start)) != std::string::npos; start = end + 2)
    parts.push_back(list.substr(start, end - start));
  parts.push_back(list.substr(start));
  return parts;
}

}  // namespace

bool is_remote(std::string_view url) {
  if (url == "-") return true;
  std::size_t i = 0;
  while (i < url.size() && (is_name_character(url[i]) || url[i] == '+' || url[i] == '.')) ++i;
  return i > 0 && (url.substr(i, 3) == "://" || url.substr(0, 5) == "pipe:");
}

void allow_pipe_in_lists() { pipe_in_lists() = true; }

base::Result<Strings> expand_urls(const std::string& list) {
  Strings urls;
  for (const std::string& part : split_list(list)) SLUICE_OK(expand_part(part, "", 0, urls));
  return urls;
}

}  // namespace sluice::data
