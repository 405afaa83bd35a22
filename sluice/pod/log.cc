#include "sluice/pod/log.h"

#include <algorithm>
#include <fstream>

namespace sluice::pod {

std::string LineMerger::take(std::string_view line) const {
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (const size_t back = line.rfind('\r'); back != std::string_view::npos) line.remove_prefix(back + 1);
  return prefix_ + std::string(line) + "\n";
}

std::string LineMerger::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = longest_ - pending_.size();
    if (end == std::string_view::npos ? bytes.size() < room : end <= room) {
      pending_ += bytes.substr(0, end);
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
    } else {
      pending_ += bytes.substr(0, room);
      bytes.remove_prefix(std::min(room, bytes.size()));
    }
    lines += take(pending_);
    pending_.clear();
  }
  return lines;
}

std::string LineMerger::finish() {
  if (pending_.empty()) return "";
  const std::string line = take(pending_);
  pending_.clear();
  return line;
}

std::string last_lines(const std::string& path, int lines) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - (64 << 10));
  std::string text(static_cast<size_t>(size - start), '\0');
  file.seekg(start);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  size_t at = text.size() - (text.ends_with('\n') ? 1 : 0);
  for (; lines > 0 && at != std::string::npos && at > 0; --lines) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace sluice::pod
