// Files of this machine, of buckets and of web servers, read at any place. Internal to this room.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/cloud/object_reader.h"

namespace sluice::sessions {

// Returns whether `file` is an object's URL or http(s)://….
bool is_elsewhere(const std::string& file);

// A file as it was when it was first asked for; its content is fixed from then on.
struct SourceFile {
  std::string name;  // as errors name it
  uint64_t size = 0;
  std::string path = {};  // on this machine; "": elsewhere
  struct ::stat facts = {};
  std::optional<cloud::Remote> remote = std::nullopt;
  bool is_remote() const { return remote.has_value(); }
};

// Remembers each file by its name. A file of a server without ranges is downloaded. Threads: any.
class SourceFiles {
 public:
  // The file lives as long as this object.
  base::Result<const SourceFile*> find(const std::string& file);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SourceFile>> files_;
  std::vector<base::TemporaryDirectory> downloads_;
};

// The bytes of one request to a server. A process has up to 32 of them in memory at once, which for a model
// of 7 billion parameters is as much as its largest tensor has.
constexpr uint64_t kSourceRequestBytes = uint64_t{8} << 20;

// Passes the bytes from `begin` up to `end` on, in order and in parts of any size. Returns the number of
// requests. kDataLoss if the file was replaced or is too short. Threads: any.
base::Result<int64_t> read_range(const SourceFile& file, uint64_t begin, uint64_t end,
                                 const std::function<void(std::string_view)>& take);
// Returns these bytes.
base::Result<std::string> read_bytes(const SourceFile& file, uint64_t begin, uint64_t end);

}  // namespace sluice::sessions
