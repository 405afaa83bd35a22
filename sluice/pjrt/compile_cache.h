// Compiled programs on disk, shared by all processes of a user.
//
// An entry is one file: magic, format version, key, length and SHA-256 of the payload, payload. Plugins load
// damaged programs without a word, so an entry whose header or checksum is not as it should be is ignored,
// and replaced when the program has been compiled again. Entries appear complete or not at all, whatever the
// number of processes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::pjrt {

inline constexpr uint64_t kDefaultCacheLimit = uint64_t{2} << 30;

// $SLUICE_CACHE_DIR, or $XDG_CACHE_HOME/sluice, or ~/.cache/sluice; "" (no cache) for SLUICE_CACHE_DIR=off or
// when there is no home.
std::string default_cache_directory();

// Threads: any; processes: any.
class CompileCache {
 public:
  // `limit` is in bytes. The folder is made when the first entry is stored, for this user alone.
  CompileCache(std::string directory, uint64_t limit) : directory_(std::move(directory)), limit_(limit) {}

  // The key of a program: SHA-256 of the parts and their lengths, in hexadecimal.
  static std::string key(std::initializer_list<std::string_view> parts);

  // The payload stored under the key, which then counts as just used; nothing when there is none or it is
  // damaged, and none when another user may have written it (base/trusted_file.h; SLUICE_CACHE_TRUST=1 reads
  // those, too).
  std::optional<std::string> find(const std::string& key) const;
  // Stores a payload, replacing what is there, then removes the entries not used for longest until the limit
  // holds. A payload beyond the limit is not stored.
  base::Status store(const std::string& key, std::string_view payload) const;
  // Removes an entry that turned out to be useless.
  void remove(const std::string& key) const;

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& key) const;

 private:
  void shrink(const std::string& keep) const;

  std::string directory_;
  uint64_t limit_;
};

}  // namespace sluice::pjrt
