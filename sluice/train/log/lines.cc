#include "sluice/train/log/lines.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

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
  const auto flush = [&]() -> base::Status {
    SLUICE_OK(file.write(out));
    out.clear();
    return {};
  };
  SLUICE_TRY(LinePass pass, each_line(path, [&](const std::string& line) -> base::Status {
               SLUICE_OK(act(line, out));
               max_written = std::max(max_written, out.capacity());
               return out.size() < kWriteAtOnce ? base::Status() : flush();
             }));
  SLUICE_OK(flush());
  SLUICE_OK(file.commit());
  pass.max_held += max_written;
  return pass;
}

}  // namespace sluice::train
