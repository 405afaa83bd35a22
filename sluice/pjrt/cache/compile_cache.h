// Compiled programs on disk, shared by all processes of a user.
//
// An entry is one file: magic, format version, key, length and SHA-256 of the payload, payload. Plugins load
// damaged programs without an error, so an entry with a wrong header or checksum is ignored, and replaced
// after the program is recompiled. Entries appear complete or not at all, with any number of processes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/pjrt/cache/compile_claim.h"

namespace sluice::pjrt {

inline constexpr uint64_t kDefaultCacheLimit = uint64_t{2} << 30;

// Returns $SLUICE_CACHE_DIR, or $XDG_CACHE_HOME/sluice, or ~/.cache/sluice; "" (no cache) for
// SLUICE_CACHE_DIR=off or without a home folder.
std::string default_cache_directory();

// Threads: any; processes: any.
class CompileCache {
 public:
  // `limit` is in bytes. The folder is created with the first entry; only this user may read it.
  CompileCache(std::string directory, uint64_t limit) : directory_(std::move(directory)), limit_(limit) {}

  // Returns the key of a program: the SHA-256 of the parts and their lengths, in hexadecimal.
  static std::string key(std::initializer_list<std::string_view> parts);

  // Returns the payload stored under the key, which then counts as just used; nullopt if there is none, if it
  // is damaged, or if another user may have written it (base/files/trusted_file.h), unless
  // SLUICE_CACHE_TRUST=1.
  std::optional<std::string> find(const std::string& key) const;
  // Stores a payload, replacing an existing one, then removes the least recently used entries until the limit
  // holds. A payload larger than the limit is not stored.
  base::Status store(const std::string& key, std::string_view payload) const;
  // Waits until this process may compile the program of this key, or until another one that compiled it is
  // done (compile_claim.h). No claim in a folder that cannot be written, or whose entries are not run.
  // `program` is for messages.
  CompileClaim claim(const std::string& key, const std::string& program, const WaitTimes& times) const;
  // find() again, once the claim is there. Does not look where nothing can have changed since find().
  std::optional<std::string> find_after(const CompileClaim& claim, const std::string& key) const;
  // Removes an entry that turned out to be unusable.
  void remove(const std::string& key) const;

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& key) const;

 private:
  void shrink(const std::string& keep) const;

  std::string directory_;
  uint64_t limit_;
};

}  // namespace sluice::pjrt
