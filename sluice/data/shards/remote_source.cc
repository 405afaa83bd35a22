#include "sluice/data/shards/remote_source.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/cache.h"
#include "sluice/data/shards/open_files.h"

namespace sluice::data {
namespace {

constexpr std::size_t kSkipBytes = 1 << 20;

void go_on_without_cache(const Error& error) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) base::warn("reading continues without the cache: ", error.what());
}

void say_that_not_all_is_cached(const Error& error) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) base::warn("not everything is cached: ", error.what());
}

class RemoteSource : public Source {
 public:
  RemoteSource(std::unique_ptr<cloud::ObjectReader> reader, std::unique_ptr<CacheWriter> keep)
      : reader_(std::move(reader)), keep_(std::move(keep)) {}

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    SLUICE_TRY(const std::string_view some, next(size));
    if (!some.empty()) std::memcpy(bytes, some.data(), some.size());
    return some.size();
  }

  // Passed-over bytes are read all the same: the checksum covers the whole object.
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
    if (!status) go_on_without_cache(status.error());
    if (!status || some.empty()) keep_.reset();
    return some;
  }

  const std::unique_ptr<cloud::ObjectReader> reader_;
  std::unique_ptr<CacheWriter> keep_;
};

// Returns the cached parts, or a new place for them; null if there is no room.
std::unique_ptr<CachedParts> find_parts(const Cache& cache, const std::string& url,
                                        const cloud::Remote& remote, bool make) {
  auto parts = cache.parts(url, remote.version, remote.size, make);
  if (parts) return std::move(*parts);
  say_that_not_all_is_cached(parts.error());
  return nullptr;
}

std::unique_ptr<CacheWriter> begin_keeping(const Cache& cache, const std::string& url,
                                           const cloud::Remote& remote) {
  auto writer = cache.begin(url, remote.version, remote.size);
  if (writer) return std::move(*writer);
  say_that_not_all_is_cached(writer.error());
  return nullptr;
}

// A file of the cache, or a part of it, block by block. If a block is damaged, the copy is removed, and the
// rest comes from the object.
class CachedSource : public Source {
 public:
  CachedSource(std::string url, cloud::Remote remote, const SourceOptions& options,
               std::unique_ptr<CachedFile> file)
      : url_(std::move(url)),
        remote_(std::move(remote)),
        cache_(options.cache_folder, options.cache_bytes),
        cancelled_(options.cancelled),
        file_(std::move(file)),
        position_(options.begin),
        end_(std::min(options.end.value_or(remote_.size), remote_.size)),
        held_(HeldKind::kBlock, [this] { close(); }) {
    const OpenFile::Use use(held_);
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - position_));
    if (step == 0) return std::size_t{0};
    const OpenFile::Use use(held_);
    if (object_ == nullptr && position_ / kCacheBlock != block_) SLUICE_OK(load(position_ / kCacheBlock));
    if (object_ != nullptr) return object_->read(bytes, step);
    const auto within = static_cast<std::size_t>(position_ % kCacheBlock);
    step = std::min(step, bytes_.size() - within);
    std::memcpy(bytes, bytes_.data() + within, step);
    position_ += step;
    return step;
  }

  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    if (object_ != nullptr) return Source::skip(size);
    const std::uint64_t step = std::min(size, end_ - position_);
    position_ += step;
    return step;
  }

  const std::string& name() const override { return remote_.name; }

 private:
  void close() {
    file_.reset();
    bytes_ = std::string();
    block_ = UINT64_MAX;
  }

  base::Status load(std::uint64_t block) {
    if (file_ == nullptr) file_ = cache_.find(url_, remote_.version, remote_.size);
    bytes_.resize(static_cast<std::size_t>(std::min(kCacheBlock, remote_.size)));
    if (file_ != nullptr && file_->read_block(block, remote_.size, bytes_.data())) {
      block_ = block;
      return {};
    }
    // A file that was closed may have been removed since to make room for another one.
    if (file_ != nullptr) {
      base::warn(remote_.name, ": the cached copy ", file_->path(), " is damaged at byte ",
                 block * kCacheBlock, "; it was removed, and the object itself is read");
      ::unlink(file_->path().c_str());
    }
    cloud::ReadOptions reading;
    reading.begin = position_;
    reading.end = end_;
    reading.cancelled = cancelled_;
    SLUICE_TRY(object_, cloud::open_reader(remote_, reading));
    close();
    return {};
  }

  const std::string url_;
  const cloud::Remote remote_;
  const Cache cache_;
  const std::atomic<bool>* cancelled_;
  std::unique_ptr<CachedFile> file_;
  std::unique_ptr<cloud::ObjectReader> object_;  // set once the copy was found to be damaged or missing
  std::uint64_t position_;
  const std::uint64_t end_;
  std::uint64_t block_ = UINT64_MAX;  // the block that is in bytes_
  std::string bytes_;
  OpenFile held_;
};

// A part of an object, block by block: from the cache if it has the block, else from the object, then cached.
class PartSource : public Source {
 public:
  PartSource(std::string url, cloud::Remote remote, const SourceOptions& options,
             std::unique_ptr<CachedParts> kept)
      : url_(std::move(url)),
        remote_(std::move(remote)),
        cache_(options.cache_folder, options.cache_bytes),
        cancelled_(options.cancelled),
        kept_(std::move(kept)),
        position_(options.begin),
        end_(std::min(options.end.value_or(remote_.size), remote_.size)),
        held_(HeldKind::kBlock, [this] { close(); }) {
    const OpenFile::Use use(held_);
  }

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    if (position_ >= end_) return std::size_t{0};
    const OpenFile::Use use(held_);
    if (position_ / kCacheBlock != block_) SLUICE_OK(load(position_ / kCacheBlock));
    const auto within = static_cast<std::size_t>(position_ % kCacheBlock);
    const auto step = static_cast<std::size_t>(
        std::min<std::uint64_t>({size, end_ - position_, length_of(block_) - within}));
    std::memcpy(bytes, bytes_.data() + within, step);
    position_ += step;
    return step;
  }

  // Bytes that are already on their way are read, not requested again.
  base::Result<std::uint64_t> skip(std::uint64_t size) override {
    if (object_ != nullptr && next_block_ < last_block_) return Source::skip(size);
    const std::uint64_t step = std::min(size, end_ - std::min(position_, end_));
    position_ += step;
    return step;
  }

  const std::string& name() const override { return remote_.name; }

 private:
  std::uint64_t length_of(std::uint64_t block) const {
    return std::min(kCacheBlock, remote_.size - block * kCacheBlock);
  }

  // Gives up the cache's file, and the block if it can be read from there again.
  void close() {
    if (kept_ == nullptr || (block_ != UINT64_MAX && !kept_->has_block(block_))) return;
    kept_.reset();
    closed_ = true;
    bytes_ = std::string();
    block_ = UINT64_MAX;
  }

  base::Status load(std::uint64_t block) {
    block_ = UINT64_MAX;
    bytes_.resize(static_cast<std::size_t>(std::min(kCacheBlock, remote_.size)));
    if (closed_) kept_ = find_parts(cache_, url_, remote_, /*make=*/true);
    closed_ = false;
    const bool coming = object_ != nullptr && next_block_ == block && block < last_block_;
    if (!coming && kept_ != nullptr && kept_->read_block(block, bytes_.data())) {
      block_ = block;
      return {};
    }
    if (!coming) SLUICE_OK(open_object(block));
    const auto length = static_cast<std::size_t>(length_of(block));
    for (std::size_t have = 0; have < length;) {
      SLUICE_TRY(const std::size_t got, object_->read(bytes_.data() + have, length - have));
      if (got == 0)
        return base::fail(Code::kDataLoss, remote_.name, ": it ends within its ", remote_.size, " bytes");
      have += got;
    }
    block_ = block;
    next_block_ = block + 1;
    if (kept_ == nullptr) return {};
    const base::Status status = kept_->keep_block(block, {bytes_.data(), length});
    if (status) return {};
    go_on_without_cache(status.error());
    kept_.reset();
    return {};
  }

  // Opens the object for whole blocks, up to the part's end or to the next block in the cache.
  base::Status open_object(std::uint64_t block) {
    last_block_ = block + 1;
    while (last_block_ * kCacheBlock < end_ && (kept_ == nullptr || !kept_->has_block(last_block_)))
      ++last_block_;
    cloud::ReadOptions reading;
    reading.begin = block * kCacheBlock;
    reading.end = std::min(last_block_ * kCacheBlock, remote_.size);
    reading.cancelled = cancelled_;
    object_.reset();  // the old reader ends before the new one requests more
    SLUICE_TRY(object_, cloud::open_reader(remote_, reading));
    return {};
  }

  const std::string url_;
  const cloud::Remote remote_;
  const Cache cache_;
  const std::atomic<bool>* cancelled_;
  std::unique_ptr<CachedParts> kept_;
  bool closed_ = false;                            // kept_ was closed, and is found again when it is needed
  std::unique_ptr<cloud::ObjectReader> object_;    // gives whole blocks
  std::uint64_t next_block_ = 0, last_block_ = 0;  // its next block, and one past its last
  std::uint64_t position_;
  const std::uint64_t end_;
  std::uint64_t block_ = UINT64_MAX;  // the block that is in bytes_
  std::string bytes_;
  OpenFile held_;
};

constexpr std::string_view kOfVersion = " bytes of version ";

std::string version_by_tag(const cloud::Remote& remote) {
  return remote.version.empty() ? "" : base::str(remote.size, kOfVersion, remote.version);
}

// Returns the version in the form of the expected one: a list of S3 has an ETag and no checksum.
std::string version_as(const cloud::Remote& remote, const std::string& expected) {
  return expected.find(kOfVersion) != std::string::npos ? version_by_tag(remote) : version_of(remote);
}

}  // namespace

bool is_on_network(const std::string& url) {
  return cloud::is_object_url(url) || base::starts_with(url, "http://") || base::starts_with(url, "https://");
}

std::string version_of(const cloud::Remote& remote) {
  if (remote.crc32c) return ShardSum{remote.size, *remote.crc32c}.text();
  return version_by_tag(remote);
}

std::string version_of(const cloud::ObjectFacts& object) {
  cloud::Remote remote;
  remote.size = object.size;
  remote.version = object.generation;
  remote.crc32c = object.crc32c;
  return version_of(remote);
}

base::Result<std::unique_ptr<Source>> open_remote_source(const std::string& url,
                                                         const SourceOptions& options) {
  SLUICE_TRY(cloud::Remote remote, cloud::find_remote(url, options.cancelled));
  SLUICE_OK(check_version(remote.name, version_as(remote, options.version), options.version));
  const bool cached = !options.cache_folder.empty() && options.cache_bytes > 0 && remote.size_known &&
                      !remote.version.empty();
  const Cache cache(options.cache_folder, options.cache_bytes);
  if (cached)
    if (auto file = cache.find(url, remote.version, remote.size))
      return std::make_unique<CachedSource>(url, std::move(remote), options, std::move(file));
  const bool whole = options.begin == 0 && options.end.value_or(remote.size) >= remote.size;
  // An object may be read in parts in one epoch and as a whole in another: one file serves both.
  if (cached && remote.ranges)
    if (auto parts = find_parts(cache, url, remote, /*make=*/!whole))
      return std::make_unique<PartSource>(url, std::move(remote), options, std::move(parts));
  std::unique_ptr<CacheWriter> keep = cached && whole ? begin_keeping(cache, url, remote) : nullptr;
  cloud::ReadOptions reading;
  reading.begin = options.begin;
  reading.end = options.end;
  reading.cancelled = options.cancelled;
  SLUICE_TRY(auto reader, cloud::open_reader(std::move(remote), reading));
  return std::make_unique<RemoteSource>(std::move(reader), std::move(keep));
}

}  // namespace sluice::data
