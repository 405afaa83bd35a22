#include "sluice/base/files/private_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "sluice/base/files/file.h"
#include "sluice/base/files/trusted_file.h"

namespace sluice::base {

Status make_private_folder(const std::string& path) {
  if (const std::string above = parent_path(path); !above.empty() && above != path)
    SLUICE_OK(make_directories(above));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, "make the folder", path);
  return check_private_folder(path);
}

Status write_private_file(const std::string& path, std::string_view bytes) {
  SLUICE_TRY(AtomicFile file, AtomicFile::create(path, 0600));
  SLUICE_OK(file.write(bytes));
  return file.commit();
}

}  // namespace sluice::base
