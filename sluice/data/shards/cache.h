// Remote objects on a local disk.
//
// The cache is a folder of files, one for each (URL, version), that any number of processes may use at once.
// A file has the object's bytes, then the crc32c of each block of kCacheBlock bytes, then the crc32c of these
// checksums. A file gets its final name when it is whole, so a process that is killed leaves nothing that
// passes for an object. An object that is read in parts has a file of another kind, with holes: after the
// checksums it has a byte for each block, which is 1 once block and checksum are there. Readers and writers
// of a file hold a lock on it (flock). To make room, only files without a lock are removed, the least
// recently used first. The lock's file holds the sum of all sizes, so that the folder is listed only when the
// sum is near the limit; then a tenth of the cache is freed at once. The folder must belong to the user or
// root, and nobody else may write to it; links are not followed, and files of other users count as missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

inline constexpr std::uint64_t kCacheBlock = 256 << 10;
inline std::uint64_t cache_blocks(std::uint64_t size) { return (size + kCacheBlock - 1) / kCacheBlock; }
// The bytes of the checksums of an object.
inline std::uint64_t cache_sums(std::uint64_t size) { return 4 * (cache_blocks(size) + 1); }

// An open, locked file; the destructor closes and so unlocks it.
class CachedFile {
 public:
  CachedFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~CachedFile();
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;
  // Reads a block of an object of `size` bytes into room for kCacheBlock. False if the file is damaged.
  bool read_block(std::uint64_t block, std::uint64_t size, char* bytes) const;
  // Reads or writes at an offset. read_at() is false unless all of the bytes are there.
  bool read_at(std::uint64_t offset, std::size_t size, void* bytes) const;
  base::Status write_at(std::uint64_t offset, std::string_view bytes) const;
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const int descriptor_;
};

// A file that is being written. Without commit() nothing of it remains.
class CacheWriter {
 public:
  CacheWriter(std::unique_ptr<CachedFile> file, std::string final_path, std::uint64_t size)
      : file_(std::move(file)), final_path_(std::move(final_path)), size_(size) {}
  ~CacheWriter();
  base::Status append(std::string_view bytes);
  // Completes the file after exactly the announced number of bytes.
  base::Status commit();

 private:
  base::Status write(std::string_view bytes);

  const std::unique_ptr<CachedFile> file_;
  const std::string final_path_;
  const std::uint64_t size_;
  std::uint64_t written_ = 0;
  std::vector<std::uint32_t> sums_;  // of the blocks written so far; the last one may grow
  bool committed_ = false;
};

// The blocks of an object that were read so far. Any number of threads and processes may read and fill them.
class CachedParts {
 public:
  CachedParts(std::unique_ptr<CachedFile> file, std::uint64_t size) : file_(std::move(file)), size_(size) {}
  // Reads a block into memory with room for kCacheBlock; false if the block is missing or damaged.
  bool read_block(std::uint64_t block, char* bytes) const;
  bool has_block(std::uint64_t block) const;
  // Stores all bytes of a block.
  base::Status keep_block(std::uint64_t block, std::string_view bytes);

 private:
  std::uint64_t mark(std::uint64_t block) const { return size_ + cache_sums(size_) + block; }

  const std::unique_ptr<CachedFile> file_;
  const std::uint64_t size_;
};

// Threads: all members from any thread.
class Cache {
 public:
  // Makes the folder, with mode 0700, if it is missing. `bytes`: the most that is kept in it.
  Cache(std::string folder, std::uint64_t bytes) : folder_(std::move(folder)), bytes_(bytes) {}

  // Returns the whole object, if it is there, and marks it as used now.
  std::unique_ptr<CachedFile> find(const std::string& url, const std::string& version,
                                   std::uint64_t size) const;
  // Makes room for an object and reserves it on the disk. kResourceExhausted if there is not enough.
  base::Result<std::unique_ptr<CacheWriter>> begin(const std::string& url, const std::string& version,
                                                   std::uint64_t size) const;
  // Returns the parts of an object that are there. If the cache has no parts, returns null, or with `make`
  // makes room for the whole object; kResourceExhausted if there is not enough.
  base::Result<std::unique_ptr<CachedParts>> parts(const std::string& url, const std::string& version,
                                                   std::uint64_t size, bool make) const;
  void remove(const std::string& url, const std::string& version) const;
  // Returns the number of files that this process has looked at to make room, in all folders.
  static std::int64_t listed();

 private:
  std::string path_of(const std::string& url, const std::string& version, const char* kind) const;
  base::Result<std::unique_ptr<CachedFile>> lock_folder() const;
  base::Status make_room(std::uint64_t size, const CachedFile& lock) const;

  const std::string folder_;
  const std::uint64_t bytes_;
};

}  // namespace sluice::data
