#include "sluice/pod/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/pod/console.h"

namespace sluice::pod {
namespace {

constexpr std::string_view kSuffix = ".log", kFrom = ".from-";
constexpr size_t kLatestParts = 3;      // which remain, besides the first one
constexpr size_t kShownEnd = 64 << 10;  // bytes

// The path without its suffix.
std::string stem_of(const std::string& path) {
  return path.ends_with(kSuffix) ? path.substr(0, path.size() - kSuffix.size()) : path;
}

// Enough digits to keep the names in order up to a petabyte.
std::string part_path(const std::string& path, uint64_t from) {
  if (from == 0) return path;
  char digits[32];
  std::snprintf(digits, sizeof digits, "%015llu", static_cast<unsigned long long>(from));
  return base::str(stem_of(path), kFrom, digits, kSuffix);
}

// Returns at most the last `most` bytes of a file; "" if it cannot be read.
std::string end_of_file(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - static_cast<std::streamoff>(most));
  std::string text(static_cast<size_t>(size - start), '\0');
  file.seekg(start);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

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

std::vector<LogPart> log_parts(const std::string& path) {
  std::vector<LogPart> parts;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string prefix = base::str(stem_of(name), kFrom);
  const auto files = base::list_directory(folder);
  if (!files) return parts;
  for (const std::string& file : *files) {
    uint64_t from = 0;
    if (file != name) {
      if (!file.starts_with(prefix) || !file.ends_with(kSuffix)) continue;
      const char* end = file.data() + file.size() - kSuffix.size();
      const auto [stop, error] = std::from_chars(file.data() + prefix.size(), end, from);
      if (error != std::errc() || stop != end) continue;
    }
    parts.push_back({from, base::join_path(folder, file)});
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  return parts;
}

base::Result<LogFile> LogFile::open(const std::string& path, uint64_t most) {
  LogFile log(path, most);
  log.parts_ = log_parts(path);
  LogPart last{0, path};
  if (!log.parts_.empty()) {
    last = log.parts_.back();
    log.parts_.pop_back();
  }
  if (!log.begin_part(last)) return base::fail_errno(errno, "write", last.path);
  return log;
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_size_(other.part_size_),
      parts_(std::move(other.parts_)),
      file_(std::exchange(other.file_, -1)),
      is_at_line_end_(other.is_at_line_end_) {}

LogFile::~LogFile() {
  if (file_ >= 0) ::close(file_);
}

// Removes files only when the new one exists: a crash in between leaves one more.
bool LogFile::begin_part(LogPart part) {
  const int file = ::open(part.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return false;
  if (file_ >= 0) ::close(file_);
  file_ = file;
  parts_.push_back(std::move(part));
  while (part_size_ > 0 && parts_.size() > kLatestParts + 1) {
    ::unlink(parts_[1].path.c_str());
    parts_.erase(parts_.begin() + 1);
  }
  return true;
}

uint64_t LogFile::position() const {
  struct stat facts {};
  const bool known = ::fstat(file_, &facts) == 0;
  return parts_.back().from + (known ? static_cast<uint64_t>(facts.st_size) : 0);
}

// A file ends at the end of a line, unless the line is longer than the file.
size_t LogFile::count_for_this_part(std::string_view bytes) const {
  if (part_size_ == 0) return bytes.size();
  const uint64_t here = position() - parts_.back().from;
  const uint64_t room = part_size_ - std::min(part_size_, here);
  if (bytes.size() <= room) return bytes.size();
  const size_t end = room == 0 ? std::string_view::npos : bytes.rfind('\n', room - 1);
  if (end != std::string_view::npos) return end + 1;
  return is_at_line_end_ && here > 0 ? 0 : static_cast<size_t>(room);
}

bool LogFile::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t count = count_for_this_part(bytes);
    if (count == 0 && !skip_to(position())) return false;
    if (count > 0 && !write_all(file_, bytes.substr(0, count))) return false;
    if (count > 0) is_at_line_end_ = bytes[count - 1] == '\n';
    bytes.remove_prefix(count);
  }
  return true;
}

bool LogFile::skip_to(uint64_t position) {
  if (position < this->position() || position == parts_.back().from) return true;
  return begin_part({position, part_path(path_, position)});
}

std::string last_lines(const std::string& path, int lines) {
  const auto parts = log_parts(path);
  std::string text;
  for (size_t i = parts.size(); i > 0 && i + 2 > parts.size() && text.size() < kShownEnd; --i)
    text.insert(0, end_of_file(parts[i - 1].path, kShownEnd - text.size()));
  size_t at = text.size() - (text.ends_with('\n') ? 1 : 0);
  for (; lines > 0 && at != std::string::npos && at > 0; --lines) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace sluice::pod
