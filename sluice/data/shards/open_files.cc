#include "sluice/data/shards/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "sluice/base/log.h"

namespace sluice::data {
namespace {

// Half of the descriptors are for everything else: sockets, logs, other programs' files.
constexpr std::size_t kShareOfFiles = 2, kShareOfBlocks = 4;
constexpr std::size_t kMinFiles = 16, kMaxBlocks = 1024;

constexpr std::uint64_t kAllBuffers = 32 << 20;
constexpr std::size_t kLargestBuffer = 1 << 17, kSmallestBuffer = 1 << 12;
std::atomic<std::uint64_t> buffers{0}, buffer_bytes{0};

std::size_t descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur) : 256;
}

// Raises the soft limit to the hard one, once.
void raise_limit() {
  static std::once_flag once;
  std::call_once(once, [] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
    const auto before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0)
      base::debug("the limit of open files was raised from ", before, " to ", limit.rlim_cur);
  });
}

}  // namespace

// All files of one kind, the most recently used first.
struct OpenFileList {
  static OpenFileList& of(HeldKind kind) {
    static auto& files = *new OpenFileList{HeldKind::kFile};
    static auto& blocks = *new OpenFileList{HeldKind::kBlock};
    return kind == HeldKind::kFile ? files : blocks;
  }

  explicit OpenFileList(HeldKind kind) : kind_(kind) {}

  std::size_t limit() const {
    const bool file = kind_ == HeldKind::kFile;
    const std::size_t share = descriptors() / (file ? kShareOfFiles : kShareOfBlocks);
    return std::max(kMinFiles, std::min({share, found_, file ? SIZE_MAX : kMaxBlocks}));
  }

  void close_down_to(std::size_t most);
  void use(OpenFile& file);

  const HeldKind kind_;
  std::mutex mutex_;
  std::list<OpenFile*> open_;
  std::size_t found_ = SIZE_MAX;  // the most that were open before no descriptor was free
};

// Under the mutex: closes files until at most `most` are open, except those in use.
void OpenFileList::close_down_to(std::size_t most) {
  for (auto at = open_.end(); at != open_.begin() && open_.size() > most;) {
    --at;
    OpenFile& file = **at;
    if (file.used_) continue;
    file.close_();
    file.open_ = false;
    at = open_.erase(at);
  }
}

void OpenFileList::use(OpenFile& file) {
  const std::lock_guard lock(mutex_);
  file.used_ = true;
  if (file.open_) {
    open_.splice(open_.begin(), open_, file.place_);
    return;
  }
  file.open_ = true;
  file.place_ = open_.insert(open_.begin(), &file);
  if (open_.size() <= limit()) return;
  raise_limit();
  close_down_to(limit());
}

OpenFile::OpenFile(HeldKind kind, std::function<void()> close) : kind_(kind), close_(std::move(close)) {}

OpenFile::~OpenFile() {
  auto& list = OpenFileList::of(kind_);
  const std::lock_guard lock(list.mutex_);
  if (open_) list.open_.erase(place_);
}

OpenFile::Use::Use(OpenFile& file) : file_(file) { OpenFileList::of(file.kind_).use(file); }

OpenFile::Use::~Use() {
  const std::lock_guard lock(OpenFileList::of(file_.kind_).mutex_);
  file_.used_ = false;
}

bool OpenFile::make_room() {
  raise_limit();
  bool any = false;
  for (const HeldKind kind : {HeldKind::kFile, HeldKind::kBlock}) {
    auto& list = OpenFileList::of(kind);
    const std::lock_guard lock(list.mutex_);
    const std::size_t before = list.open_.size();
    list.found_ = std::max(kMinFiles, before / 2);
    list.close_down_to(before / 2);
    any = any || list.open_.size() < before;
  }
  return any;
}

std::size_t OpenFile::open_now(HeldKind kind) {
  auto& list = OpenFileList::of(kind);
  const std::lock_guard lock(list.mutex_);
  return list.open_.size();
}

std::size_t OpenFile::limit(HeldKind kind) {
  auto& list = OpenFileList::of(kind);
  const std::lock_guard lock(list.mutex_);
  return list.limit();
}

ReadBuffer::ReadBuffer() { ++buffers; }

ReadBuffer::~ReadBuffer() {
  --buffers;
  buffer_bytes -= bytes_.size();
}

void ReadBuffer::fit(std::size_t least) {
  const auto share = static_cast<std::size_t>(kAllBuffers / std::max<std::uint64_t>(buffers, 1));
  const std::size_t wanted =
      std::max(least, std::clamp(share & ~(kSmallestBuffer - 1), kSmallestBuffer, kLargestBuffer));
  // A small difference is not worth another allocation.
  if (size() >= least && wanted < 2 * size() && size() < 2 * wanted) return;
  buffer_bytes -= size();
  std::vector<char>().swap(bytes_);
  bytes_.resize(wanted);
  buffer_bytes += size();
}

std::uint64_t ReadBuffer::held() { return buffer_bytes; }

}  // namespace sluice::data
