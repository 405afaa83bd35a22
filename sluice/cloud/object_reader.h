// Reads an object from front to back, with several ranges in flight at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/cloud/checksum.h"
#include "sluice/cloud/storage.h"

namespace sluice::cloud {

// The content of an object to read, fixed before the first byte.
struct Remote {
  std::string name;        // as errors name it: s3://bucket/x, https://host/x (without its query)
  std::string address;     // the URL of its bytes; for Cloud Storage, with the generation
  std::uint64_t size = 0;  // bytes (only when `ranges`, or when the server said it)
  bool size_known = true;  // false: a server without ranges that does not say the length
  bool ranges = true;      // the server supports ranges
  std::string version;     // generation, or ETag (or the date of the last change); "": unknown
  std::string condition;   // "If-Range: …" or "If-Match: …" pins this content if the address does not
  std::optional<std::uint32_t> crc32c;
  std::optional<Checksum> checksum;  // another checksum from the store if there is no crc32c
  Access access;
};

// Asks the server for the facts of an object in a store (store.h), http://… or https://…, without reading its
// content.
base::Result<Remote> find_remote(const std::string& url, const std::atomic<bool>* cancelled = nullptr);
base::Result<Remote> find_page(std::shared_ptr<Http> http, const std::string& url,
                               const std::atomic<bool>* cancelled = nullptr);

struct ReadOptions {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;  // nothing: to the end
  // 0: depends on the number of open readers: 16 MiB × 8 for one, and 512 MiB for all of a process together
  // (but at least 32 KiB × 2 each).
  std::uint64_t range_bytes = 0;
  int ranges = 0;          // in flight
  double hedge_after = 2;  // seconds to wait at least for the first range before it is requested again
  const std::atomic<bool>* cancelled = nullptr;  // checked while waiting, every 0.1 s
};

// Reading a whole object ends with a comparison of its checksum, before the last range is handed out:
// kDataLoss if it differs, or if the content was replaced meanwhile. A broken transfer is resumed at the next
// byte. If a range takes four times as long as others did, its missing bytes are requested a second time and
// taken from the answer that is ahead. Threads: one at a time; transfers run on threads of their own.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  // Returns the next bytes, at least 1 and at most `most`; empty at the end. Valid until the next call.
  virtual base::Result<std::string_view> next(std::size_t most) = 0;
  // Copies the next bytes; returns 0 only at the end.
  base::Result<std::size_t> read(void* bytes, std::size_t size);
  virtual const Remote& remote() const = 0;
};

base::Result<std::unique_ptr<ObjectReader>> open_reader(Remote remote, const ReadOptions& options = {});

// Writes a whole object or http(s)://… into a file, which appears when it is complete and was compared.
base::Status download(const std::string& url, const std::string& path);

// The reader for a server without ranges; open_reader chooses it.
std::unique_ptr<ObjectReader> open_stream_reader(Remote remote, const ReadOptions& options);

}  // namespace sluice::cloud
