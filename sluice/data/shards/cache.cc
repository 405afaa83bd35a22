#include "sluice/data/shards/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::data {
namespace {

constexpr char kWhole[] = ".object", kParts[] = ".parts", kPart[] = ".part";

// Whether only this user or root can have written the opened file.
bool is_own(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 1 &&
         (facts.st_uid == ::geteuid() || facts.st_uid == 0) && (facts.st_mode & S_IWOTH) == 0;
}

// Opens and locks a file. Links are not followed, and a file that others may have put there is EPERM.
std::unique_ptr<CachedFile> open_locked(const std::string& path, int flags, int lock) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (descriptor < 0) return nullptr;
  auto file = std::make_unique<CachedFile>(path, descriptor);
  if (!is_own(descriptor)) {
    errno = EPERM;
    return nullptr;
  }
  int status = 0;
  while ((status = ::flock(descriptor, lock)) != 0 && errno == EINTR) {
  }
  return status == 0 ? std::move(file) : nullptr;
}

bool is_kept(std::string_view name) { return base::ends_with(name, kWhole) || base::ends_with(name, kParts); }

struct Entry {
  std::string path;
  std::uint64_t bytes;
  timespec used;
};

std::atomic<std::int64_t> entries_listed{0};

// Returns whether this process asks for the folder for the first time.
bool is_first_use(const std::string& folder) {
  static std::mutex mutex;
  static auto& used = *new std::set<std::string>();
  const std::lock_guard lock(mutex);
  return used.insert(folder).second;
}

// Lists the folder and removes parts that a killed process left. The caller holds the folder's lock.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> entries;
  for (const std::string& name : base::list_directory(folder).value_or(std::vector<std::string>())) {
    const bool part = base::ends_with(name, kPart);
    if (!part && !is_kept(name)) continue;
    const std::string path = base::join_path(folder, name);
    // The writer of a part holds a lock for as long as it lives.
    if (part && open_locked(path, O_RDONLY, LOCK_EX | LOCK_NB) != nullptr) {
      ::unlink(path.c_str());
      continue;
    }
    struct stat facts {};
    ++entries_listed;
    if (::lstat(path.c_str(), &facts) == 0)
      entries.push_back({path, static_cast<std::uint64_t>(facts.st_size), facts.st_mtim});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  return entries;
}

// Opens a file that has the expected size, and marks it as used now.
std::unique_ptr<CachedFile> open_kept(const std::string& path, int flags, std::uint64_t bytes) {
  auto file = open_locked(path, flags, LOCK_SH | LOCK_NB);
  struct stat facts {};
  if (file == nullptr || ::fstat(file->descriptor(), &facts) != 0 ||
      static_cast<std::uint64_t>(facts.st_size) != bytes)
    return nullptr;
  ::futimens(file->descriptor(), nullptr);
  return file;
}

// Reserves the blocks now: a full disk is found before anything is written.
int reserve(int descriptor, std::uint64_t size) {
  if (size == 0 || ::fallocate(descriptor, 0, 0, static_cast<off_t>(size)) == 0) return 0;
  if (errno != EOPNOTSUPP) return errno;
  return ::ftruncate(descriptor, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

// The sum of all files' sizes, which the locked file of the folder's lock holds with a checksum. It may be
// too large, as a file that goes away is not subtracted: a listing then corrects it.
class Ledger {
 public:
  explicit Ledger(const CachedFile& lock) : lock_(lock) {}

  // Returns the sum; nothing if none was written, or not all of it.
  std::optional<std::uint64_t> read() const {
    Record record{};
    if (!lock_.read_at(0, sizeof record, &record) || record.sum != sum_of(record)) return std::nullopt;
    return record.bytes;
  }
  base::Status write(std::uint64_t bytes) const {
    Record record{{'s', 'l', 'u', 'i', 'c', 'e', '-', '1'}, bytes, 0, 0};
    record.sum = sum_of(record);
    return lock_.write_at(0, {reinterpret_cast<const char*>(&record), sizeof record});
  }

 private:
  struct Record {
    char mark[8];
    std::uint64_t bytes;
    std::uint32_t sum, padding;
  };
  static std::uint32_t sum_of(const Record& record) {
    return base::crc32c(&record, offsetof(Record, sum), /*before=*/1);
  }

  const CachedFile& lock_;
};

// Removes unused files, the least recently used first, until at most `most` bytes are left. Returns how many
// are left.
std::uint64_t remove_down_to(std::uint64_t most, std::uint64_t total, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (total <= most) break;
    if (!is_kept(entry.path)) continue;
    const auto file = open_locked(entry.path, O_RDONLY, LOCK_EX | LOCK_NB);
    if (file == nullptr || ::unlink(entry.path.c_str()) != 0) continue;
    total -= entry.bytes;
  }
  return total;
}

// Returns how many bytes could be removed, at most about `wanted`.
std::uint64_t removable(std::uint64_t wanted, const std::vector<Entry>& entries) {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries) {
    if (bytes >= wanted) break;
    if (is_kept(entry.path) && open_locked(entry.path, O_RDONLY, LOCK_EX | LOCK_NB) != nullptr)
      bytes += entry.bytes;
  }
  return bytes;
}

}  // namespace

CachedFile::~CachedFile() { ::close(descriptor_); }

bool CachedFile::read_at(std::uint64_t offset, std::size_t size, void* bytes) const {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(bytes) + done, size - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

base::Status CachedFile::write_at(std::uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return base::fail_errno(done < 0 ? errno : ENOSPC, "write", path_);
    offset += static_cast<std::uint64_t>(done);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

bool CachedFile::read_block(std::uint64_t block, std::uint64_t size, char* bytes) const {
  const std::uint64_t begin = block * kCacheBlock;
  const auto length = static_cast<std::size_t>(std::min(kCacheBlock, size - begin));
  std::uint32_t sum = 0;
  return read_at(size + 4 * block, sizeof sum, &sum) && read_at(begin, length, bytes) &&
         base::crc32c(bytes, length, 0) == sum;
}

bool CachedParts::has_block(std::uint64_t block) const {
  char there = 0;
  return file_->read_at(mark(block), 1, &there) && there == 1;
}

bool CachedParts::read_block(std::uint64_t block, char* bytes) const {
  return has_block(block) && file_->read_block(block, size_, bytes);
}

base::Status CachedParts::keep_block(std::uint64_t block, std::string_view bytes) {
  const std::uint32_t sum = base::crc32c(bytes.data(), bytes.size(), 0);
  SLUICE_OK(file_->write_at(block * kCacheBlock, bytes));
  SLUICE_OK(file_->write_at(size_ + 4 * block, {reinterpret_cast<const char*>(&sum), sizeof sum}));
  return file_->write_at(mark(block), "\1");
}

CacheWriter::~CacheWriter() {
  if (!committed_) ::unlink(file_->path().c_str());
}

base::Status CacheWriter::append(std::string_view bytes) {
  if (bytes.size() > size_ - written_)
    return base::fail(Code::kDataLoss, file_->path(), ": more than the announced ", size_, " bytes");
  while (!bytes.empty()) {
    const std::uint64_t within = written_ % kCacheBlock;
    const std::string_view some = bytes.substr(0, static_cast<std::size_t>(kCacheBlock - within));
    SLUICE_OK(write(some));
    if (within == 0) sums_.push_back(0);
    sums_.back() = base::crc32c(some.data(), some.size(), sums_.back());
    written_ += some.size();
    bytes.remove_prefix(some.size());
  }
  return {};
}

base::Status CacheWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_->descriptor(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return base::fail_errno(done < 0 ? errno : ENOSPC, "write", file_->path());
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

base::Status CacheWriter::commit() {
  if (written_ != size_)
    return base::fail(Code::kDataLoss, file_->path(), ": ", written_, " bytes of the announced ", size_);
  sums_.push_back(base::crc32c(sums_.data(), sums_.size() * sizeof sums_[0], 0));
  SLUICE_OK(write({reinterpret_cast<const char*>(sums_.data()), sums_.size() * sizeof sums_[0]}));
  ::flock(file_->descriptor(), LOCK_SH);  // processes that find it under its name may read it at once
  if (::rename(file_->path().c_str(), final_path_.c_str()) != 0)
    return base::fail_errno(errno, "rename to", final_path_);
  committed_ = true;
  return {};
}

std::string Cache::path_of(const std::string& url, const std::string& version, const char* kind) const {
  const std::string hash = base::sha256(url + "\n" + version).substr(0, 20);
  return base::join_path(folder_, base::hexadecimal(hash) + kind);
}

std::unique_ptr<CachedFile> Cache::find(const std::string& url, const std::string& version,
                                        std::uint64_t size) const {
  if (!base::check_private_folder(folder_)) return nullptr;
  return open_kept(path_of(url, version, kWhole), O_RDONLY, size + cache_sums(size));
}

base::Result<std::unique_ptr<CachedParts>> Cache::parts(const std::string& url, const std::string& version,
                                                        std::uint64_t size, bool make) const {
  const std::string path = path_of(url, version, kParts);
  const std::uint64_t bytes = size + cache_sums(size) + cache_blocks(size);
  const bool is_private = base::check_private_folder(folder_).has_value();
  auto file = is_private ? open_kept(path, O_RDWR, bytes) : nullptr;
  if (file == nullptr && make) {
    SLUICE_TRY(const auto lock, lock_folder());
    file = open_kept(path, O_RDWR, bytes);  // another process may have been faster
    if (file == nullptr) {
      SLUICE_OK(make_room(bytes, *lock));
      ::unlink(path.c_str());  // a file of another length, or a link that somebody put there
      file = open_locked(path, O_RDWR | O_CREAT | O_EXCL, LOCK_SH | LOCK_NB);
      if (file == nullptr) return base::fail_errno(errno, "make", path);
      if (::ftruncate(file->descriptor(), static_cast<off_t>(bytes)) != 0)
        return base::fail_errno(errno, "make", path);
    }
  }
  if (file == nullptr) return std::unique_ptr<CachedParts>();
  return std::make_unique<CachedParts>(std::move(file), size);
}

void Cache::remove(const std::string& url, const std::string& version) const {
  for (const char* kind : {kWhole, kParts}) ::unlink(path_of(url, version, kind).c_str());
}

std::int64_t Cache::listed() { return entries_listed; }

// Makes room for an object. A process lists the folder at its first use, which removes what killed processes
// left. After that nothing is listed while the ledger says that there is room; a listing then removes unused
// files until a tenth of the cache is free, so that the next ones need none.
base::Status Cache::make_room(std::uint64_t size, const CachedFile& lock) const {
  const Ledger ledger(lock);
  const auto known = is_first_use(folder_) ? std::nullopt : ledger.read();
  if (known && *known <= bytes_ && size <= bytes_ - *known) return ledger.write(*known + size);
  const std::vector<Entry> entries = entries_of(folder_);
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  // Nothing is removed unless that makes enough room.
  const std::uint64_t too_much = total + size > bytes_ ? total + size - bytes_ : 0;
  if (too_much > 0 && size <= bytes_ && removable(too_much, entries) >= too_much) {
    const std::uint64_t target = std::min(bytes_ - size, bytes_ - bytes_ / 10);
    total = remove_down_to(target, total, entries);
  }
  if (total + size <= bytes_) return ledger.write(total + size);
  SLUICE_OK(ledger.write(total));
  return base::fail(Code::kResourceExhausted, "the cache ", folder_, " may hold ", bytes_, " bytes, and ",
                    total, " are in use: no room for ", size, " more");
}

base::Result<std::unique_ptr<CachedFile>> Cache::lock_folder() const {
  if (const auto made = base::make_private_folder(folder_); !made)
    return base::fail(made.error().code(), "the cache folder cannot be used: ", made.error().what(),
                      ". Who may write there could change what is trained on: give a folder of your own");
  auto lock = open_locked(base::join_path(folder_, ".lock"), O_RDWR | O_CREAT, LOCK_EX);
  if (lock == nullptr) return base::fail_errno(errno, "lock the cache", folder_);
  return lock;
}

base::Result<std::unique_ptr<CacheWriter>> Cache::begin(const std::string& url, const std::string& version,
                                                        std::uint64_t size) const {
  SLUICE_TRY(const auto lock, lock_folder());
  SLUICE_OK(make_room(size + cache_sums(size), *lock));
  static std::atomic<int> number{0};
  const std::string path = path_of(url, version, kWhole),
                    part = base::str(path, ".", ::getpid(), "-", number++, kPart);
  auto file = open_locked(part, O_WRONLY | O_CREAT | O_EXCL, LOCK_EX | LOCK_NB);
  if (file == nullptr) return base::fail_errno(errno, "make", part);
  const int descriptor = file->descriptor();
  auto writer = std::make_unique<CacheWriter>(std::move(file), path, size);
  if (const int status = reserve(descriptor, size + cache_sums(size)); status != 0)
    return base::fail_errno(status, "reserve the bytes of", part);
  return writer;
}

}  // namespace sluice::data
