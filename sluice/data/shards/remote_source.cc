#include "sluice/data/shards/remote_source.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "sluice/base/crc32c.h"
#include "sluice/base/file.h"
#include "sluice/base/log.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/data/shards/cache.h"

namespace sluice::data {
namespace {

constexpr std::size_t kSkipBytes = 1 << 20;

class RemoteSource : public Source {
 public:
  RemoteSource(std::unique_ptr<cloud::ObjectReader> reader, std::unique_ptr<CacheWriter> keep)
      : reader_(std::move(reader)), keep_(std::move(keep)) {}

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    SLUICE_TRY(const std::string_view some, next(size));
    if (!some.empty()) std::memcpy(bytes, some.data(), some.size());
    return some.size();
  }

  // What is passed over is read all the same: the checksum covers the whole object.
  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    std::uint64_t skipped = 0;
    while (skipped < size) {
      SLUICE_TRY(const std::string_view some,
                 next(static_cast<std::size_t>(std::min<std::uint64_t>(kSkipBytes, size - skipped))));
      if (some.empty()) break;
      skipped += some.size();
    }
    return skipped;
  }

  const std::string& name() const override { return reader_->remote().name; }

 private:
  base::Result<std::string_view> next(std::size_t size) {
    SLUICE_TRY(const std::string_view some, reader_->next(size));
    if (keep_ == nullptr) return some;
    const base::Status status = some.empty() ? keep_->commit() : keep_->append(some);
    if (!status) give_up(status.error());
    if (some.empty()) keep_.reset();
    return some;
  }

  // Reading goes on without the cache.
  void give_up(const Error& error) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) base::warn("reading goes on without the cache: ", error.what());
    keep_.reset();
  }

  const std::unique_ptr<cloud::ObjectReader> reader_;
  std::unique_ptr<CacheWriter> keep_;
};

// A part of a file of the cache, or the whole, which is then compared with its crc32c.
class CachedSource : public Source {
 public:
  CachedSource(const cloud::Remote& remote, std::unique_ptr<CachedFile> file, const SourceOptions& options)
      : name_(remote.name),
        file_(std::move(file)),
        position_(options.begin),
        end_(std::min(options.end.value_or(remote.size), remote.size)) {
    if (position_ == 0 && end_ == remote.size) expected_ = remote.crc32c;
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    const std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - position_));
    if (step == 0) return std::size_t{0};
    ssize_t got = -1;
    do {
      got = ::pread(file_->descriptor(), bytes, step, static_cast<off_t>(position_));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return base::fail_errno(errno, "cannot read", file_->path());
    if (got == 0) return damaged("it has become shorter");
    position_ += static_cast<std::uint64_t>(got);
    if (expected_) crc_ = base::crc32c(bytes, static_cast<std::size_t>(got), crc_);
    if (expected_ && position_ == end_ && crc_ != *expected_)
      return damaged("its bytes do not fit the object's crc32c");
    return static_cast<std::size_t>(got);
  }

  const std::string& name() const override { return name_; }

 private:
  tl::unexpected<Error> damaged(const char* why) {
    ::unlink(file_->path().c_str());
    return base::fail(Code::kDataLoss, name_, ": the cached copy ", file_->path(), " is damaged (", why,
                      "); it was removed: start again, and the object itself is read");
  }

  const std::string name_;
  const std::unique_ptr<CachedFile> file_;
  std::uint64_t position_;
  const std::uint64_t end_;
  std::optional<std::uint32_t> expected_;
  std::uint32_t crc_ = 0;
};

std::unique_ptr<CacheWriter> begin_keeping(const Cache& cache, const std::string& url,
                                           const cloud::Remote& remote) {
  auto writer = cache.begin(url, remote.version, remote.size);
  if (writer) return std::move(*writer);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) base::warn("not everything is cached: ", writer.error().what());
  return nullptr;
}

}  // namespace

bool is_on_network(const std::string& url) {
  return cloud::is_gs(url) || base::starts_with(url, "http://") || base::starts_with(url, "https://");
}

base::Result<std::unique_ptr<Source>> open_remote_source(const std::string& url,
                                                         const SourceOptions& options) {
  SLUICE_TRY(cloud::Remote remote, cloud::find_remote(url, options.cancelled));
  const bool cached = !options.cache_folder.empty() && options.cache_bytes > 0 && remote.size_known &&
                      !remote.version.empty();
  const Cache cache(options.cache_folder, options.cache_bytes);
  if (cached)
    if (auto file = cache.find(url, remote.version, remote.size))
      return std::make_unique<CachedSource>(remote, std::move(file), options);
  const bool whole = options.begin == 0 && options.end.value_or(remote.size) >= remote.size;
  std::unique_ptr<CacheWriter> keep = cached && whole ? begin_keeping(cache, url, remote) : nullptr;
  cloud::ReadOptions reading;
  reading.begin = options.begin;
  reading.end = options.end;
  reading.cancelled = options.cancelled;
  SLUICE_TRY(auto reader, cloud::open_reader(std::move(remote), reading));
  return std::make_unique<RemoteSource>(std::move(reader), std::move(keep));
}

}  // namespace sluice::data
