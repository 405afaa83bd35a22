// Sources: the bytes of a shard, read once from front to back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::data {

// Of the bytes of a shard as they are stored.
struct ShardSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
  bool operator==(const ShardSum&) const = default;
  std::string text() const;  // "10240 bytes with crc32c AAAAAA=="
};

// Threads: one at a time.
class Source {
 public:
  virtual ~Source() = default;
  // Up to `size` bytes (at least 1) into `bytes`; 0 only at the end. Errors name the shard.
  virtual base::Result<std::size_t> read(void* bytes, std::size_t size) = 0;
  // Passes over up to `size` bytes and says how many there were: fewer only at the end.
  virtual base::Result<std::uint64_t> skip(std::uint64_t size);
  // The shard as errors name it.
  virtual const std::string& name() const = 0;
};

struct SourceOptions {
  // While this is true, a read that would wait for a terminal or a pipe ends with kCancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // The bytes to read, of the object as stored. Anything but the whole is for what can be sought in and is
  // not packed.
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;  // one past the last byte; nothing: to the end
  // What stat_source() said before; a content of another version is kDataLoss. Empty: any.
  std::string version;
  // Becomes the sum of the stored bytes that were read, of the whole at the end. Nothing is passed over
  // unread then. It must live as long as the source.
  ShardSum* sum = nullptr;
  // The sum that the stored bytes should have: another is kDataLoss at their end. It is compared where all of
  // them are read from front to back; after a long passage that was passed over it is not.
  std::optional<ShardSum> expected;
  // Where remote objects are kept on a disk, and how many bytes of them. Empty: nowhere.
  std::string cache_folder;
  std::uint64_t cache_bytes = 0;
};

// "URL has FOUND: sizes.json beside it says …", and what to do.
std::string not_as_recorded(const std::string& url, const std::string& found, const ShardSum& recorded);

// Opens a local file, `-` (stdin), pipe:COMMAND, an object (cloud/store.h), http://… or https://…, and
// unpacks gzip and zstd, which are known by their first bytes. A part of a packed shard is an error when it
// can be seen: when `begin` is 0. remote_source.h says more of what is not local.
base::Result<std::unique_ptr<Source>> open_source(const std::string& url, const SourceOptions& options = {});

// The same bytes as they are stored, packed or not.
base::Result<std::unique_ptr<Source>> open_stored_source(const std::string& url,
                                                         const SourceOptions& options = {});
// Of a local file or `-` only.
base::Result<std::unique_ptr<Source>> open_file_source(const std::string& url,
                                                       const SourceOptions& options = {});

// What can be known of a shard without reading it.
struct SourceFacts {
  std::uint64_t size = 0;  // bytes, as stored
  // Changes with the contents: size and checksum of an object (its generation, where it has no checksum),
  // size and ETag of a page, size and time of change of a local file. Empty: not known.
  std::string version;
  std::optional<std::uint32_t> crc32c = {};  // of an object, where its server says it
};
base::Result<SourceFacts> stat_source(const std::string& url);
// Reads all of its stored bytes.
base::Result<ShardSum> sum_source(const std::string& url);

// The same bytes from memory: for tests and for members that are archives themselves.
std::unique_ptr<Source> memory_source(std::string name, std::string bytes);

// How a file is packed, by its first 10 bytes. bzip2 and xz are known, but not unpacked.
enum class Packing { kNone, kGzip, kZstd, kBzip2, kXz };
Packing packing_of(std::string_view first);

// Unpackers over another source. Damaged and cut-off streams are errors; several gzip or zstd frames one
// after the other are read as one.
std::unique_ptr<Source> gzip_source(std::unique_ptr<Source> packed);
std::unique_ptr<Source> zstd_source(std::unique_ptr<Source> packed);

// The whole of a gzip stream.
base::Result<std::string> gunzip(const std::string& name, std::string bytes);

}  // namespace sluice::data
