// What is in a folder that is copied to hosts, and which of it a host lacks.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pod {

// A file, folder or link, with a key that changes when its content, mode or owner may have changed (sync.sh).
struct SyncEntry {
  std::string path;  // as tar names it, "./a/b"; "." for the folder itself
  std::string key;
  bool is_folder = false;
};

class SyncList {
 public:
  // Reads the names that tar has listed with --quoting-style=escape, one a line, of what is in `folder`.
  // `now`: seconds since 1970. What has changed within the last two seconds gets a key that is never used
  // again: it may change again within a tick of the file system's clock.
  static SyncList of(const std::string& folder, std::string_view listed, double now);

  // In the order of their paths' bytes. Entries with control characters in their paths come in no lines.
  const std::vector<SyncEntry>& entries() const { return entries_; }
  // Returns the lines for sync.sh: PATH, a tab, KEY.
  std::string lines() const;

  // The numbers of entries that a host lacks, in ascending order.
  using Numbers = std::vector<size_t>;
  Numbers all() const;
  // Returns these entries of a host's answer, with everything in the folders among them, and the entries that
  // come in no lines. Ignores words that are no paths of the list.
  Numbers lacking(const std::set<std::string>& answered) const;
  // Returns the paths of the files that still exist, each followed by a NUL, as `tar --null -T` reads them.
  std::string names(const Numbers& numbers) const;

 private:
  std::string folder_;
  std::vector<SyncEntry> entries_;
};

}  // namespace sluice::pod
