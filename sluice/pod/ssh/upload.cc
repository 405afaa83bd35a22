#include "sluice/pod/ssh/upload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/pod/ssh/ssh.h"

namespace sluice::pod {
namespace {

constexpr size_t kUploadBlock = 256 << 10;
constexpr int kBlocksAtOnce = 16;  // then others have their turn, and signals are checked
constexpr size_t kMaxText = 1 << 20;
constexpr int kReadsAtOnce = 256;  // from a host that writes without end, so that others have their turn

// Appends what can be read; returns false at the end of the stream.
bool read_text(int descriptor, std::string& text) {
  char block[4096];
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    const ssize_t count = ::read(descriptor, block, sizeof block);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    if (text.size() < kMaxText) text.append(block, static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

base::Result<Upload> Upload::start(const std::vector<std::string>& command, const std::string& script) {
  SLUICE_TRY(base::Process child, start_child(command));
  Upload upload(std::move(child));
  upload.script_ = framed(script);
  return upload;
}

Upload::Upload(Upload&& other) noexcept
    : child_(std::move(other.child_)),
      script_(std::move(other.script_)),
      block_(std::move(other.block_)),
      file_(std::exchange(other.file_, -1)),
      position_(other.position_),
      output_(std::move(other.output_)),
      taken_(std::exchange(other.taken_, 0)),
      messages_(std::move(other.messages_)) {}

Upload::~Upload() {
  if (file_ >= 0) ::close(file_);
}

base::Status Upload::send_file(const std::string& path, uint64_t offset) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0 || ::lseek(file_, static_cast<off_t>(offset), SEEK_SET) < 0)
    return base::fail_errno(errno, "read", path);
  position_ = offset;
  return {};
}

void Upload::add_to(std::vector<pollfd>& polled) const {
  if (child_.in() >= 0 && (!script_.empty() || file_ >= 0)) polled.push_back({child_.in(), POLLOUT, 0});
  if (child_.out() >= 0) polled.push_back({child_.out(), POLLIN, 0});
  if (child_.error() >= 0) polled.push_back({child_.error(), POLLIN, 0});
}

// Returns false if the pipe takes no more, for now or for ever.
bool Upload::write_from(std::string& bytes) {
  while (!bytes.empty()) {
    const ssize_t count = child_.write_in(bytes.data(), bytes.size());
    if (count > 0) bytes.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno == EAGAIN) return false;
    if (count < 0 && errno != EINTR) {
      child_.close_in();
      return false;
    }
  }
  return true;
}

void Upload::write_some() {
  if (child_.in() < 0 || !write_from(script_) || !write_from(block_)) return;
  if (file_ < 0) return;  // the script may still ask for the file
  for (int blocks = 0; blocks < kBlocksAtOnce; ++blocks) {
    block_.resize(kUploadBlock);
    const ssize_t count = ::read(file_, block_.data(), block_.size());
    block_.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
    if (block_.empty()) return child_.close_in();
    position_ += block_.size();
    if (!write_from(block_)) return;
  }
}

void Upload::move() {
  write_some();
  if (child_.out() >= 0 && !read_text(child_.out(), output_)) child_.close_out();
  if (child_.error() >= 0 && !read_text(child_.error(), messages_)) child_.close_error();
}

bool Upload::has_ended() { return child_.out() < 0 && child_.error() < 0 && child_.poll().has_value(); }

std::optional<std::string> Upload::take_line() {
  const size_t end = output_.find('\n', taken_);
  if (end == std::string::npos) {
    output_.erase(0, std::exchange(taken_, 0));  // once for all lines: a host may send a million empty ones
    return std::nullopt;
  }
  const size_t from = std::exchange(taken_, end + 1);
  return output_.substr(from, end - from);
}

std::string advice_for_full_disk(const std::string& said, const std::string& place) {
  const bool quota = said.find("Disk quota exceeded") != std::string::npos;
  if (!quota && said.find("No space left on device") == std::string::npos) return "";
  return base::str(". ", quota ? "The disk quota is used up" : "The disk is full", " in ", place,
                   ": free some space there, or choose a folder on another disk");
}

}  // namespace sluice::pod
