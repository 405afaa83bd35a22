#include "sluice/session/files/fresh_folders.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::sessions {
namespace fresh_folders_detail {

// Removes the temporary folders that runs left when they were killed while writing.
void remove_leftovers(const std::string& folder, const std::string& own) {
  const std::string start = std::filesystem::path(hidden_name(folder, ".writing-")).filename().string();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base::parent_path(folder), ignored)) {
    const std::string name = entry.path().filename().string();
    if (base::starts_with(name, start) && entry.path() != own)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

// Links need one file system that has them; a copy needs nothing.
base::Status link_or_copy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (error) return base::fail_errno(error.value(), "copy a file of the checkpoint to", to);
  return base::sync_file(to);
}

}  // namespace fresh_folders_detail

std::string hidden_name(const std::string& folder, const std::string& what) {
  const std::filesystem::path path(folder);
  return (path.parent_path() / ("." + path.filename().string() + what)).string();
}

base::Status put_in_place(const std::string& fresh, const std::string& folder) {
  std::error_code ignored;
  if (!base::path_exists(folder)) {
    if (rename(fresh.c_str(), folder.c_str()) != 0) return base::fail_errno(errno, "rename to", folder);
    return base::sync_directory(base::parent_path(folder));
  }
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    SLUICE_OK(base::sync_directory(base::parent_path(folder)));
    std::filesystem::remove_all(fresh, ignored);  // the old folder, since the exchange
    return {};
  }
  const std::string old = hidden_name(folder, ".old");
  std::filesystem::remove_all(old, ignored);
  if (rename(folder.c_str(), old.c_str()) != 0) return base::fail_errno(errno, "rename", folder);
  if (rename(fresh.c_str(), folder.c_str()) != 0) return base::fail_errno(errno, "rename to", folder);
  SLUICE_OK(base::sync_directory(base::parent_path(folder)));
  std::filesystem::remove_all(old, ignored);
  return {};
}

base::Status link_files(const std::vector<std::string>& names, const std::string& from,
                        const std::string& folder) {
  SLUICE_OK(base::make_directories(folder));
  for (const std::string& name : names)
    SLUICE_OK(fresh_folders_detail::link_or_copy(base::join_path(from, name), base::join_path(folder, name)));
  return base::sync_directory(folder);
}

FreshFolders::~FreshFolders() {
  std::error_code ignored;
  for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
}

base::Result<std::string> FreshFolders::add(const std::string& folder, const std::string& mark) {
  SLUICE_OK(base::make_directories(base::parent_path(folder)));
  paths_.push_back(hidden_name(folder, base::str(".writing-", getpid(), mark)));
  fresh_folders_detail::remove_leftovers(folder, paths_.back());
  std::error_code ignored;
  std::filesystem::remove_all(paths_.back(), ignored);
  return paths_.back();
}

}  // namespace sluice::sessions
