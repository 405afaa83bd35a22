#include "sluice/data/shards/remote_source.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

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

// A file of the cache, or a part of it, block by block. Where a block is damaged, the copy is removed, and
// the rest comes from the object.
class CachedSource : public Source {
 public:
  CachedSource(cloud::Remote remote, std::unique_ptr<CachedFile> file, const SourceOptions& options)
      : remote_(std::move(remote)),
        cancelled_(options.cancelled),
        file_(std::move(file)),
        position_(options.begin),
        end_(std::min(options.end.value_or(remote_.size), remote_.size)),
        bytes_(static_cast<std::size_t>(std::min(kCacheBlock, remote_.size))) {}

  base::Result<std::size_t> read(void* bytes, std::size_t size) override {
    std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - position_));
    if (step == 0) return std::size_t{0};
    if (file_ != nullptr && position_ / kCacheBlock != block_) SLUICE_OK(load(position_ / kCacheBlock));
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
  base::Status load(std::uint64_t block) {
    if (file_->read_block(block, remote_.size, bytes_.data())) {
      block_ = block;
      return {};
    }
    base::warn(remote_.name, ": the cached copy ", file_->path(), " is damaged at byte ", block * kCacheBlock,
               "; it was removed, and the object itself is read");
    ::unlink(file_->path().c_str());
    cloud::ReadOptions reading;
    reading.begin = position_;
    reading.end = end_;
    reading.cancelled = cancelled_;
    SLUICE_TRY(object_, cloud::open_reader(remote_, reading));
    file_.reset();
    return {};
  }

  const cloud::Remote remote_;
  const std::atomic<bool>* cancelled_;
  std::unique_ptr<CachedFile> file_;
  std::unique_ptr<cloud::ObjectReader> object_;  // once the copy was found to be damaged
  std::uint64_t position_;
  const std::uint64_t end_;
  std::uint64_t block_ = UINT64_MAX;  // that is in bytes_
  std::vector<char> bytes_;
};

// A stream that reads parts of shards finds nothing in the cache of what was never read as a whole.
void say_that_parts_are_not_kept(const SourceOptions& options) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    base::warn(
        "the cache ", options.cache_folder,
        " keeps whole objects, but parts of shards are read, because an index tells where their samples lie: "
        "these parts are not kept. Fewer --streams split fewer shards; 'sluice data cp' copies a set");
}

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
  if (cached && !whole) say_that_parts_are_not_kept(options);
  std::unique_ptr<CacheWriter> keep = cached && whole ? begin_keeping(cache, url, remote) : nullptr;
  cloud::ReadOptions reading;
  reading.begin = options.begin;
  reading.end = options.end;
  reading.cancelled = options.cancelled;
  SLUICE_TRY(auto reader, cloud::open_reader(std::move(remote), reading));
  return std::make_unique<RemoteSource>(std::move(reader), std::move(keep));
}

}  // namespace sluice::data
