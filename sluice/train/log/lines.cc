#include "sluice/train/log/lines.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "sluice/base/files/file.h"

namespace sluice::train {

base::Result<LinePass> each_line(const std::string& path,
                                 const std::function<base::Status(const std::string& line)>& act) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::fail_errno(errno, "open", path);
  LinePass pass;
  for (std::string line; std::getline(in, line) && !in.eof(); ++pass.lines) {
    pass.max_held = std::max(pass.max_held, line.capacity());
    SLUICE_OK(act(line));
  }
  if (in.bad()) return base::fail_errno(errno, "read", path);
  return pass;
}

base::Result<LinePass> rewrite_lines(
    const std::string& path,
    const std::function<base::Status(const std::string& line, std::string& out)>& act) {
  constexpr std::size_t kWriteAtOnce = 64 << 10;
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  std::string out;
  std::size_t max_written = 0;
  std::uintmax_t kept = 0;  // bytes of lines that stay as they are
  const auto flush = [&]() -> base::Status {
    SLUICE_OK(file.write(out));
    out.clear();
    return {};
  };
  SLUICE_TRY(LinePass pass, each_line(path, [&](const std::string& line) -> base::Status {
               const std::size_t before = out.size();
               SLUICE_OK(act(line, out));
               if (std::string_view(out).substr(before) == line + '\n') kept += line.size() + 1;
               max_written = std::max(max_written, out.capacity());
               return out.size() < kWriteAtOnce ? base::Status() : flush();
             }));
  SLUICE_OK(flush());
  // A file that stays as it is keeps its inode, so that its copy in a bucket can be continued.
  std::error_code unknown;
  if (kept != std::filesystem::file_size(path, unknown)) SLUICE_OK(file.commit());
  pass.max_held += max_written;
  return pass;
}

}  // namespace sluice::train
