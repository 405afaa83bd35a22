#include "sluice/data/shards/source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/open_files.h"
#include "sluice/data/shards/remote_source.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

std::string version_of(const struct stat& facts) {
  return base::str(facts.st_size, " bytes, changed at ", facts.st_mtim.tv_sec, ".", facts.st_mtim.tv_nsec);
}

// Opens a file for reading; one that finds no free descriptor closes files of other readers first.
int open_descriptor(const std::string& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == EMFILE && OpenFile::make_room())
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return descriptor;
}

// A regular file by its path, which is closed while the process has too many open files.
class RegularFileSource : public Source {
 public:
  RegularFileSource(std::string name, int descriptor, const struct stat& facts)
      : name_(std::move(name)),
        descriptor_(descriptor),
        device_(facts.st_dev),
        inode_(facts.st_ino),
        size_(static_cast<std::uint64_t>(facts.st_size)),
        file_(HeldKind::kFile, [this] { descriptor_.close(); }) {
    const OpenFile::Use use(file_);
    ::posix_fadvise(descriptor_.value, 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  // Limits reading to the bytes begin … end − 1.
  base::Status limit(std::uint64_t begin, std::optional<std::uint64_t> end) {
    if (begin > size_ || end.value_or(size_) > size_ || end.value_or(size_) < begin)
      return base::fail(Code::kOutOfRange, "cannot read bytes ", begin, " to ", end.value_or(size_), " of ",
                        name_, ": it has ", size_);
    limited_ = end.has_value();
    size_ = end.value_or(size_);
    position_ = begin;
    return {};
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    const std::size_t step = limited_ ? std::min(size, static_cast<std::size_t>(size_ - position_)) : size;
    const OpenFile::Use use(file_);
    SLUICE_OK(open_again());
    while (true) {
      const ssize_t got = ::pread(descriptor_.value, bytes, step, static_cast<off_t>(position_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::fail_errno(errno, "read", name_);
      position_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }

  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    const std::uint64_t step = std::min(size, size_ > position_ ? size_ - position_ : 0);
    position_ += step;
    return step;
  }

  const std::string& name() const override { return name_; }

 private:
  struct Descriptor {
    explicit Descriptor(int number) : value(number) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    void close() {
      if (value >= 0) ::close(value);
      value = -1;
    }
    int value;
  };

  base::Status open_again() {
    if (descriptor_.value >= 0) return {};
    descriptor_.value = open_descriptor(name_);
    struct stat facts {};
    if (descriptor_.value < 0 || ::fstat(descriptor_.value, &facts) != 0)
      return base::fail_errno(errno, "open again", name_);
    if (facts.st_dev != device_ || facts.st_ino != inode_)
      return base::fail(Code::kDataLoss, name_,
                        " was replaced while it was read: bring the former file back, or start again");
    ::posix_fadvise(descriptor_.value, 0, 0, POSIX_FADV_SEQUENTIAL);
    return {};
  }

  const std::string name_;
  Descriptor descriptor_;
  const dev_t device_;
  const ino_t inode_;
  bool limited_ = false;
  std::uint64_t size_, position_ = 0;
  OpenFile file_;
};

// What is not a regular file, such as a pipe or a terminal, and stdin.
class FileSource : public Source {
 public:
  FileSource(std::string name, int descriptor, const std::atomic<bool>* cancelled)
      : name_(std::move(name)), descriptor_(descriptor), cancelled_(cancelled) {
    struct stat facts {};
    regular_ = ::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode);
  }
  ~FileSource() override {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    while (true) {
      SLUICE_OK(wait());
      const ssize_t got = ::read(descriptor_, bytes, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN) return base::fail_errno(errno, "read", name_);
    }
  }

  const std::string& name() const override { return name_; }

 private:
  // Waits for a pipe or terminal, which may be silent for long, and checks at times for cancellation.
  base::Status wait() {
    while (!regular_ && cancelled_ != nullptr) {
      if (*cancelled_) return base::fail(Code::kCancelled, name_, ": reading was cancelled");
      pollfd wanted{descriptor_, POLLIN, 0};
      if (::poll(&wanted, 1, 100) > 0) break;
    }
    return {};
  }

  const std::string name_;
  const int descriptor_;
  const std::atomic<bool>* cancelled_;
  bool regular_ = false;
};

// Adds up the bytes that it hands on.
class SummedSource : public Source {
 public:
  SummedSource(std::unique_ptr<Source> source, ShardSum* sum) : source_(std::move(source)), sum_(sum) {
    *sum_ = {};
  }
  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    SLUICE_TRY(const std::size_t got, source_->read(bytes, size));
    sum_->crc32c = base::crc32c(bytes, got, sum_->crc32c);
    sum_->bytes += got;
    return got;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  const std::unique_ptr<Source> source_;
  ShardSum* const sum_;
};

// Compares the bytes that it hands on with a sum, at the end.
class ComparedSource : public Source {
 public:
  ComparedSource(std::unique_ptr<Source> source, ShardSum expected)
      : source_(std::move(source)), expected_(expected) {}
  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    SLUICE_TRY(const std::size_t got, source_->read(bytes, size));
    if (!compares_) return got;
    found_.crc32c = base::crc32c(bytes, got, found_.crc32c);
    found_.bytes += got;
    if (got > 0 || found_ == expected_) return got;
    return base::fail(Code::kDataLoss, not_as_recorded(name(), found_.text(), expected_));
  }
  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    constexpr std::uint64_t kShort = 1 << 16;  // bytes up to which reading is cheaper than passing over
    if (compares_ && size <= kShort) return Source::skip(size);
    compares_ = false;
    return source_->skip(size);
  }
  const std::string& name() const override { return source_->name(); }

 private:
  const std::unique_ptr<Source> source_;
  const ShardSum expected_;
  ShardSum found_;
  bool compares_ = true;
};

class MemorySource : public Source {
 public:
  MemorySource(std::string name, std::string bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}
  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    const std::size_t step = std::min(size, bytes_.size() - position_);
    std::memcpy(bytes, bytes_.data() + position_, step);
    position_ += step;
    return step;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string name_, bytes_;
  std::size_t position_ = 0;
};

// Hands on the bytes that were read ahead to look at them, then the rest.
class RejoinedSource : public Source {
 public:
  RejoinedSource(std::string ahead, std::unique_ptr<Source> rest)
      : ahead_(std::move(ahead)), rest_(std::move(rest)) {}
  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    if (used_ == ahead_.size()) return rest_->read(bytes, size);
    const std::size_t step = std::min(size, ahead_.size() - used_);
    std::memcpy(bytes, ahead_.data() + used_, step);
    used_ += step;
    return step;
  }
  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    const std::uint64_t step = std::min<std::uint64_t>(size, ahead_.size() - used_);
    used_ += step;
    if (step == size) return step;
    SLUICE_TRY(const std::uint64_t more, rest_->skip(size - step));
    return step + more;
  }
  const std::string& name() const override { return rest_->name(); }

 private:
  std::string ahead_;
  std::size_t used_ = 0;
  std::unique_ptr<Source> rest_;
};

base::Result<int> open_file(const std::string& url) {
  if (url == "-") return STDIN_FILENO;
  if (is_remote(url))
    return base::fail(
        Code::kUnimplemented, "cannot read '", url,
        "': expected a local file, '-' (stdin), pipe:, gs://, s3://, az://, hf://, http:// or https://");
  if (base::is_directory(url))
    return base::fail(Code::kInvalidArgument, "'", url,
                      "' is a folder: expected a tar file; to read all shards in ", "it, write '", url,
                      "/*.tar'");
  const int descriptor = open_descriptor(url);
  if (descriptor < 0) return base::fail_errno(errno, "open", url);
  return descriptor;
}

constexpr std::string_view kGitLfsPointer = "version https://git-lfs.github.com/spec/";

// Recognises files that are not archives by their first bytes.
base::Status check_readable(const std::string& name, std::string_view first) {
  if (base::starts_with(first, kGitLfsPointer))
    return base::fail(Code::kInvalidArgument, name,
                      " is a pointer of Git LFS, not the file itself: fetch the file with 'git lfs pull'");
  const Packing packing = packing_of(first);
  if (packing != Packing::kBzip2 && packing != Packing::kXz) return {};
  const char* format = packing == Packing::kXz ? "xz" : "bzip2";
  return base::fail(Code::kUnimplemented, name, " is packed with ", format,
                    ": expected a plain archive, gzip or zstd. Pack it again, or read it by 'pipe:", format,
                    " -dc FILE'");
}

}  // namespace

base::Result<std::uint64_t> Source::skip(std::uint64_t size) {
  std::vector<char> scratch(std::min<std::uint64_t>(size, 1 << 16));
  std::uint64_t skipped = 0;
  while (skipped < size) {
    SLUICE_TRY(const std::size_t got,
               read(scratch.data(), std::min<std::uint64_t>(scratch.size(), size - skipped)));
    if (got == 0) break;
    skipped += got;
  }
  return skipped;
}

base::Result<std::unique_ptr<Source>> open_file_source(const std::string& url, const SourceOptions& options) {
  SLUICE_TRY(const int descriptor, open_file(url));
  struct stat facts {};
  if (url == "-" || ::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    auto source = std::make_unique<FileSource>(url == "-" ? "stdin" : url, descriptor, options.cancelled);
    if (options.begin == 0 && !options.end) return source;
    return base::fail(Code::kInvalidArgument, "cannot read a part of ", source->name(),
                      ": expected a regular file");
  }
  auto source = std::make_unique<RegularFileSource>(url, descriptor, facts);
  SLUICE_OK(check_version(url, version_of(facts), options.version));
  SLUICE_OK(source->limit(options.begin, options.end));
  return source;
}

base::Status check_version(const std::string& name, const std::string& found, const std::string& expected) {
  if (expected.empty() || found == expected) return {};
  return base::fail(Code::kDataLoss, name, " was replaced while its set is in use: it has ", found,
                    " now, and had ", expected,
                    ". Its samples may be others: bring the former shard back, or start again with these");
}

base::Result<std::unique_ptr<Source>> open_stored_source(const std::string& url,
                                                         const SourceOptions& options) {
  if (is_pipe(url)) return open_pipe_source(url, options);
  if (is_on_network(url)) return open_remote_source(url, options);
  return open_file_source(url, options);
}

// Passes over what is before an offset in the unpacked bytes.
base::Result<std::unique_ptr<Source>> skipped_to(std::unique_ptr<Source> source, std::uint64_t offset) {
  SLUICE_TRY(const std::uint64_t passed, source->skip(offset));
  if (passed == offset) return source;
  return base::fail(Code::kDataLoss, source->name(), ": it unpacks to ", passed,
                    " bytes: expected more than ", offset);
}

base::Result<std::unique_ptr<Source>> open_source(const std::string& url, const SourceOptions& options) {
  const auto place = options.places && options.unpacked_begin > 0
                         ? options.places->last_before(options.unpacked_begin)
                         : std::nullopt;
  if (place) {
    SourceOptions rest = options;
    rest.begin = place->packed;
    SLUICE_TRY(auto packed, open_stored_source(url, rest));
    return skipped_to(gzip_source_at(std::move(packed), *place, options.places),
                      options.unpacked_begin - place->unpacked);
  }
  SLUICE_TRY(std::unique_ptr<Source> source, open_stored_source(url, options));
  if (options.sum != nullptr) source = std::make_unique<SummedSource>(std::move(source), options.sum);
  if (options.begin > 0) return source;
  if (options.expected && !options.end)
    source = std::make_unique<ComparedSource>(std::move(source), *options.expected);
  std::string ahead(kGitLfsPointer.size(), '\0');
  std::size_t have = 0;
  while (have < ahead.size()) {
    SLUICE_TRY(const std::size_t got, source->read(ahead.data() + have, ahead.size() - have));
    if (got == 0) break;
    have += got;
  }
  ahead.resize(have);
  SLUICE_OK(check_readable(source->name(), ahead));
  const Packing packing = packing_of(ahead);
  if (options.packing != nullptr) *options.packing = packing;
  if (packing != Packing::kNone && options.end)
    return base::fail(Code::kInvalidArgument, "cannot read a part of ", source->name(), ": it is packed (",
                      packing == Packing::kGzip ? "gzip" : "zstd", ")");
  source = std::make_unique<RejoinedSource>(std::move(ahead), std::move(source));
  if (packing == Packing::kGzip) source = gzip_source(std::move(source), options.places);
  if (packing == Packing::kZstd) source = zstd_source(std::move(source));
  if (options.unpacked_begin > 0) return skipped_to(std::move(source), options.unpacked_begin);
  return source;
}

base::Result<SourceFacts> stat_source(const std::string& url) {
  if (is_on_network(url)) {
    SLUICE_TRY(const cloud::Remote remote, cloud::find_remote(url));
    if (remote.size_known) return SourceFacts{remote.size, version_of(remote), remote.crc32c};
  }
  if (is_remote(url))
    return base::fail(Code::kUnimplemented, "the size of '", url,
                      "' cannot be known: expected a local file, or a server that says it");
  struct stat facts {};
  if (::stat(url.c_str(), &facts) != 0) return base::fail_errno(errno, "look at", url);
  return SourceFacts{static_cast<std::uint64_t>(facts.st_size), version_of(facts)};
}

base::Result<ShardSum> sum_source(const std::string& url) {
  ShardSum sum;
  SLUICE_TRY(auto stored, open_stored_source(url));
  SummedSource source(std::move(stored), &sum);
  SLUICE_TRY([[maybe_unused]] const std::uint64_t passed, source.skip(UINT64_MAX));
  return sum;
}

std::string ShardSum::text() const {
  return base::str(bytes, " bytes with crc32c ", cloud::base64_of_crc32c(crc32c));
}

std::string not_as_recorded(const std::string& url, const std::string& found, const ShardSum& recorded) {
  return base::str(url, " has ", found, ": sizes.json next to it says ", recorded.text(),
                   ". The shard was damaged or replaced since: restore the former shard, or run 'sluice "
                   "data index' if this one is right");
}

std::unique_ptr<Source> memory_source(std::string name, std::string bytes) {
  return std::make_unique<MemorySource>(std::move(name), std::move(bytes));
}

}  // namespace sluice::data
