// Folders that are written under a temporary name and take their place at once.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::sessions {

// Returns "a/.nameWHAT" for the folder "a/name".
std::string hidden_name(const std::string& folder, const std::string& what);

// Puts `fresh` in the place of `folder`: with one system call if the file system can exchange two names;
// otherwise it moves the old folder to hidden_name(folder, ".old") first.
base::Status put_in_place(const std::string& fresh, const std::string& folder);

// Gives files of the folder `from` a second name in `folder`, which is new: hard links, or copies where the
// file system refuses links.
base::Status link_files(const std::vector<std::string>& names, const std::string& from,
                        const std::string& folder);

// The folders under their temporary names. A folder that has not taken its place is removed at the end.
class FreshFolders {
 public:
  FreshFolders() = default;
  FreshFolders(const FreshFolders&) = delete;
  FreshFolders& operator=(const FreshFolders&) = delete;
  ~FreshFolders();
  // Returns the temporary name for `folder`, whose parents are created; nothing has this name. Removes what
  // processes left that were killed while they wrote this folder. A mark makes the name a new one for
  // machines that remember the earlier names of a shared disk.
  base::Result<std::string> add(const std::string& folder, const std::string& mark = "");
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace sluice::sessions
