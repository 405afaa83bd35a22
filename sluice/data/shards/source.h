// Sources: the bytes of a shard, read once from front to back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/shards/unpack_places.h"

namespace sluice::data {

// The size and checksum of a shard's bytes as they are stored.
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
  // Reads up to `size` bytes (at least 1) into `bytes`; 0 only at the end. Errors name the shard.
  virtual base::Result<std::size_t> read(void* bytes, std::size_t size) = 0;
  // Passes over up to `size` bytes and returns how many there were: fewer only at the end.
  virtual base::Result<std::uint64_t> skip(std::uint64_t size);
  // Returns the shard's name for errors.
  virtual const std::string& name() const = 0;
};

// The packing of a file, by its first 10 bytes. bzip2 and xz are recognised, but not unpacked.
enum class Packing { kNone, kGzip, kZstd, kBzip2, kXz };
Packing packing_of(std::string_view first);

struct SourceOptions {
  // While this is true, a read that would wait for a terminal or a pipe ends with kCancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // The range of bytes to read, in the stored object. Anything but the whole needs a source that can seek and
  // is not packed.
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;  // one past the last byte; nothing: to the end
  // The version that stat_source() returned before; content of another version is kDataLoss. Empty: any.
  std::string version;
  // Receives the sum of the stored bytes that were read; at the end this is the sum of the whole. No bytes
  // are then passed over unread. It must live as long as the source.
  ShardSum* sum = nullptr;
  // The sum that the stored bytes should have: another one is kDataLoss at their end. It is compared if all
  // bytes are read from front to back, but not after a long passage was passed over.
  std::optional<ShardSum> expected;
  // Receives how the shard is packed, unless a part after its start is opened.
  Packing* packing = nullptr;
  // For a packed shard that is read as a whole: the offset in the unpacked bytes where reading begins, and
  // the places in it from which gzip can be unpacked, which are used and added.
  std::uint64_t unpacked_begin = 0;
  std::shared_ptr<UnpackPlaces> places = nullptr;
  // The folder in which remote objects are kept, and the most bytes in it. Empty: no cache.
  std::string cache_folder;
  std::uint64_t cache_bytes = 0;
};

// Returns "URL has FOUND: sizes.json next to it says …", and what to do.
std::string not_as_recorded(const std::string& url, const std::string& found, const ShardSum& recorded);

// Opens a local file, `-` (stdin), pipe:COMMAND, an object (cloud/store.h), http://… or https://…, and
// unpacks gzip and zstd, which are known by their first bytes. A part of a packed shard is an error if
// `begin` is 0; otherwise the packing cannot be seen. See remote_source.h for sources that are not local.
base::Result<std::unique_ptr<Source>> open_source(const std::string& url, const SourceOptions& options = {});

// Opens the same bytes as they are stored, packed or not.
base::Result<std::unique_ptr<Source>> open_stored_source(const std::string& url,
                                                         const SourceOptions& options = {});
// Opens a local file or `-` only.
base::Result<std::unique_ptr<Source>> open_file_source(const std::string& url,
                                                       const SourceOptions& options = {});

// The facts about a shard that are known without reading it.
struct SourceFacts {
  std::uint64_t size = 0;  // bytes, as stored
  // A text that changes with the contents: size and checksum of an object (or its generation, if it has no
  // checksum), size and ETag of a page, size and time of change of a local file. Empty: not known.
  std::string version;
  std::optional<std::uint32_t> crc32c = {};  // of an object, if its server reports it
};
base::Result<SourceFacts> stat_source(const std::string& url);
// Reads all stored bytes of a source and returns their sum.
base::Result<ShardSum> sum_source(const std::string& url);

// Returns a source of bytes in memory: for tests and for members that are archives themselves.
std::unique_ptr<Source> memory_source(std::string name, std::string bytes);

// Unpackers over another source. Damaged and cut-off streams are errors; several gzip or zstd frames in a row
// are read as one.
std::unique_ptr<Source> gzip_source(std::unique_ptr<Source> packed,
                                    std::shared_ptr<UnpackPlaces> places = nullptr);
// Unpacks from a place on; `packed` begins there.
std::unique_ptr<Source> gzip_source_at(std::unique_ptr<Source> packed, const UnpackPlaces::Place& place,
                                       std::shared_ptr<UnpackPlaces> places);
std::unique_ptr<Source> zstd_source(std::unique_ptr<Source> packed);

// Unpacks the whole of a gzip stream.
base::Result<std::string> gunzip(const std::string& name, std::string bytes);

}  // namespace sluice::data
