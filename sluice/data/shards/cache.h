// Remote objects on a local disk.
//
// A folder of files, one for each (URL, version), that any number of processes may use at once. A file has
// the object's bytes, and after them the crc32c of each block of kCacheBlock bytes, then that of these
// checksums. A file gets its final name when it is whole, so a process that is killed leaves nothing that
// passes for an object. An object of which parts are read has a file of another kind, with holes: a byte for
// each block follows the checksums, which is 1 once block and checksum are there. Who reads or writes a file
// holds a lock on it (flock); only files that nobody holds are removed to make room, the one that was used
// longest ago first. The folder must belong to the user or root, and nobody else may write to it; links are
// not followed, and files of others count as missing.
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
// Bytes of the checksums of an object.
inline std::uint64_t cache_sums(std::uint64_t size) { return 4 * (cache_blocks(size) + 1); }

// An open, locked file; closed (and so unlocked) at the end.
class CachedFile {
 public:
  CachedFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~CachedFile();
  CachedFile(const CachedFile&) = delete;
  CachedFile& operator=(const CachedFile&) = delete;
  // The block's bytes, of an object of `size`, into memory with room for kCacheBlock. False when the file is
  // damaged.
  bool read_block(std::uint64_t block, std::uint64_t size, char* bytes) const;
  // Whether all of the bytes are there, or could be written.
  bool read_at(std::uint64_t offset, std::size_t size, void* bytes) const;
  base::Status write_at(std::uint64_t offset, std::string_view bytes) const;
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const int descriptor_;
};

// A file that is being written. Unless commit() is called nothing remains.
class CacheWriter {
 public:
  CacheWriter(std::unique_ptr<CachedFile> file, std::string final_path, std::uint64_t size)
      : file_(std::move(file)), final_path_(std::move(final_path)), size_(size) {}
  ~CacheWriter();
  base::Status append(std::string_view bytes);
  // After exactly the announced number of bytes.
  base::Status commit();

 private:
  base::Status write(std::string_view bytes);

  const std::unique_ptr<CachedFile> file_;
  const std::string final_path_;
  const std::uint64_t size_;
  std::uint64_t written_ = 0;
  std::vector<std::uint32_t> sums_;  // of the blocks that are there, the last one's so far
  bool committed_ = false;
};

// The blocks of an object that were read so far. Any number of threads and processes may read and fill them.
class CachedParts {
 public:
  CachedParts(std::unique_ptr<CachedFile> file, std::uint64_t size) : file_(std::move(file)), size_(size) {}
  // The block's bytes, into memory with room for kCacheBlock; false when it is not there, or damaged.
  bool read_block(std::uint64_t block, char* bytes) const;
  bool has_block(std::uint64_t block) const;
  // All bytes of the block.
  base::Status keep_block(std::uint64_t block, std::string_view bytes);

 private:
  std::uint64_t mark(std::uint64_t block) const { return size_ + cache_sums(size_) + block; }

  const std::unique_ptr<CachedFile> file_;
  const std::uint64_t size_;
};

// Threads: all members from any thread.
class Cache {
 public:
  // The folder is made, with mode 0700, when it is missing. `bytes`: the most that is kept in it.
  Cache(std::string folder, std::uint64_t bytes) : folder_(std::move(folder)), bytes_(bytes) {}

  // The whole object, if it is there; it then counts as used now.
  std::unique_ptr<CachedFile> find(const std::string& url, const std::string& version,
                                   std::uint64_t size) const;
  // Makes room for an object and reserves it on the disk. kResourceExhausted when there is none.
  base::Result<std::unique_ptr<CacheWriter>> begin(const std::string& url, const std::string& version,
                                                   std::uint64_t size) const;
  // The parts of an object that are there. With `make`, makes room for the whole of it when there are none;
  // kResourceExhausted when there is no room. Null: there are none.
  base::Result<std::unique_ptr<CachedParts>> parts(const std::string& url, const std::string& version,
                                                   std::uint64_t size, bool make) const;
  void remove(const std::string& url, const std::string& version) const;

 private:
  std::string path_of(const std::string& url, const std::string& version, const char* kind) const;
  base::Result<std::unique_ptr<CachedFile>> lock_folder() const;
  base::Status make_room(std::uint64_t size) const;

  const std::string folder_;
  const std::uint64_t bytes_;
};

}  // namespace sluice::data
