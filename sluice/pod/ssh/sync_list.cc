#include "sluice/pod/ssh/sync_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::pod {
namespace {

constexpr double kRecent = 2;  // seconds

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// Undoes --quoting-style=escape: \n and the like, \\ and \123.
std::string unescaped(std::string_view text) {
  static constexpr std::string_view kLetters = "abfnrtv", kMeant = "\a\b\f\n\r\t\v";
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      bytes += text[i];
    } else if (i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
               is_octal(text[i + 3])) {
      bytes += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      const size_t letter = kLetters.find(text[++i]);
      bytes += letter == std::string_view::npos ? text[i] : kMeant[letter];
    }
  }
  return bytes;
}

bool fits_a_line(const std::string& path) {
  return std::none_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

// A folder's own times and size change with what is in it.
std::string key_of(const struct stat& facts, double now) {
  char key[128];
  const double changed =
      static_cast<double>(facts.st_ctim.tv_sec) + 1e-9 * static_cast<double>(facts.st_ctim.tv_nsec);
  if (S_ISDIR(facts.st_mode))
    std::snprintf(key, sizeof key, "d%x", facts.st_mode);
  else if (changed > now - kRecent)
    std::snprintf(key, sizeof key, "new.%.6f", now);
  else
    std::snprintf(key, sizeof key, "%x.%lld.%lld.%09ld.%llu.%llu", facts.st_mode,
                  static_cast<long long>(facts.st_size), static_cast<long long>(facts.st_ctim.tv_sec),
                  facts.st_ctim.tv_nsec, static_cast<unsigned long long>(facts.st_dev),
                  static_cast<unsigned long long>(facts.st_ino));
  return key;
}

}  // namespace

SyncList SyncList::of(const std::string& folder, std::string_view listed, double now) {
  SyncList list;
  list.folder_ = folder;
  for (const std::string& line : base::split(listed, '\n')) {
    std::string path = unescaped(line);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    struct stat facts {};
    if (path.empty() || ::lstat(base::join_path(folder, path).c_str(), &facts) != 0) continue;
    list.entries_.push_back({path, key_of(facts, now), S_ISDIR(facts.st_mode)});
  }
  auto& entries = list.entries_;
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.path == b.path; }),
                entries.end());
  return list;
}

std::string SyncList::lines() const {
  std::string text;
  for (const SyncEntry& entry : entries_)
    if (fits_a_line(entry.path)) text += base::str(entry.path, '\t', entry.key, '\n');
  return text;
}

SyncList::Numbers SyncList::all() const {
  Numbers numbers(entries_.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  return numbers;
}

// A folder that is not what it was may have been replaced by a link to one with the same files.
SyncList::Numbers SyncList::lacking(const std::set<std::string>& answered) const {
  std::vector<bool> lacks(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const SyncEntry& entry = entries_[i];
    const bool answers = answered.contains(entry.path);
    lacks[i] = lacks[i] || answers || !fits_a_line(entry.path);
    if (!answers || !entry.is_folder) continue;
    const std::string inside = entry.path + "/";
    auto at = std::lower_bound(entries_.begin(), entries_.end(), inside,
                               [](const SyncEntry& a, const std::string& path) { return a.path < path; });
    for (; at != entries_.end() && at->path.starts_with(inside); ++at)
      lacks[static_cast<size_t>(at - entries_.begin())] = true;
  }
  Numbers numbers;
  for (size_t i = 0; i < lacks.size(); ++i)
    if (lacks[i]) numbers.push_back(i);
  return numbers;
}

std::string SyncList::names(const Numbers& numbers) const {
  std::string names;
  struct stat facts {};
  for (const size_t number : numbers) {
    const std::string& path = entries_[number].path;
    if (::lstat(base::join_path(folder_, path).c_str(), &facts) == 0) names += path + '\0';
  }
  return names;
}

}  // namespace sluice::pod
