#include "sluice/provision/environment/script_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/files/open_file.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::provision {
namespace {

// Google's limit for a value in an instance's metadata.
constexpr off_t kLongest = 256 * 1024;

// Resolves the links of a path; empty if there is no such file.
std::filesystem::path real_path(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(base::expand_home(path), error);
  return error ? std::filesystem::path() : found;
}

// Returns whether the file is below the folder and not in a hidden part of it.
bool is_plainly_below(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto below = file.lexically_relative(folder);
  return !below.empty() && std::none_of(below.begin(), below.end(), [](const std::filesystem::path& part) {
    return part.native().starts_with(".");  // also "..", which leaves the folder
  });
}

}  // namespace

base::Result<std::string> read_script_file(const std::string& path, const std::string& folder,
                                           const std::vector<std::string>& allowed) {
  const std::string whole = base::join_path(folder, base::expand_home(path));
  const auto file = real_path(whole);
  if (file.empty()) return base::fail(Code::kNotFound, "the script cannot be read: there is no ", whole);
  const bool is_named = std::any_of(allowed.begin(), allowed.end(),
                                    [&](const std::string& name) { return real_path(name) == file; });
  if (!is_named && !is_plainly_below(file, real_path(folder.empty() ? "." : folder)))
    return base::fail(Code::kPermissionDenied, "the script ", path, " is ", file.native(),
                      ", outside of this file's folder or in a hidden part of it. Its contents would be "
                      "sent to machines. If that is what you want: --allow-script ",
                      pod::quote(file.native()));
  const base::OpenFile open(file.native(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat facts {};
  if (open.descriptor() < 0 || ::fstat(open.descriptor(), &facts) != 0)
    return base::fail_errno(errno, "the script cannot be read: cannot open", file.native());
  if (!S_ISREG(facts.st_mode))
    return base::fail(Code::kInvalidArgument, "the script ", file.native(), " is not a regular file");
  if (facts.st_size > kLongest)
    return base::fail(Code::kInvalidArgument, "the script ", file.native(), " has ", facts.st_size,
                      " bytes: a machine's metadata takes at most ", kLongest);
  return base::read_to_end(open, static_cast<size_t>(facts.st_size), file.native());
}

}  // namespace sluice::provision
