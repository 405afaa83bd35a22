#include "sluice/base/files/trusted_file.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/files/open_file.h"

namespace sluice::base {
namespace {

// Returns whether a group has only this user as a member; many systems make such a group for each user.
bool is_private_group(gid_t group) {
  passwd user_entry{}, *user = nullptr;
  ::group group_entry{}, *found = nullptr;
  std::vector<char> user_text(1 << 14), group_text(1 << 16);
  if (::getpwuid_r(::geteuid(), &user_entry, user_text.data(), user_text.size(), &user) != 0 ||
      user == nullptr ||
      ::getgrgid_r(group, &group_entry, group_text.data(), group_text.size(), &found) != 0 ||
      found == nullptr)
    return false;
  const std::string_view name = user->pw_name;
  if (user->pw_gid != group || name != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member)
    if (name != *member) return false;
  return true;
}

Status check_owner(const struct stat& facts, const std::string& path) {
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return fail(Code::kPermissionDenied, path, " belongs to the user ", facts.st_uid, ", expected ",
                ::geteuid(), " (this one) or root");
  if ((facts.st_mode & S_IWOTH) != 0 || ((facts.st_mode & S_IWGRP) != 0 && !is_private_group(facts.st_gid)))
    return fail(Code::kPermissionDenied, path, " may be written by others: chmod go-w ", path);
  return {};
}

Status check_folder(const std::string& path) {
  const std::string folder = parent_path(path);
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return fail_errno(errno, "look at", folder);
  return check_owner(facts, folder);
}

}  // namespace

Result<std::string> read_trusted_file(const std::string& path) {
  const OpenFile file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file.descriptor() < 0 && errno == ELOOP)
    return fail(Code::kPermissionDenied, path, " is a link, expected a file");
  if (file.descriptor() < 0) return fail_errno(errno, "open", path);
  struct stat facts {};
  if (::fstat(file.descriptor(), &facts) != 0) return fail_errno(errno, "look at", path);
  if (!S_ISREG(facts.st_mode)) return fail(Code::kPermissionDenied, path, " is not a regular file");
  SLUICE_OK(check_owner(facts, path));
  SLUICE_OK(check_folder(path));
  return read_to_end(file, static_cast<size_t>(facts.st_size), path);
}

Status check_trusted(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), &::free);
  if (real == nullptr) return fail_errno(errno, "look at", path);
  struct stat facts {};
  if (::stat(real.get(), &facts) != 0) return fail_errno(errno, "look at", path);
  SLUICE_OK(check_owner(facts, real.get()));
  return check_folder(real.get());
}

Status check_private_folder(const std::string& path) {
  const OpenFile folder(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (folder.descriptor() < 0) return fail_errno(errno, "open the folder", path);
  struct stat facts {};
  if (::fstat(folder.descriptor(), &facts) != 0) return fail_errno(errno, "look at", path);
  return check_owner(facts, path);
}

}  // namespace sluice::base
