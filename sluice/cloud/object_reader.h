// Reading an object from front to back, with several ranges of it on their way at once.
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

// What is read: one content of one object, fixed before the first byte.
struct Remote {
  std::string name;        // as errors name it: s3://bucket/x, https://host/x (without its query)
  std::string address;     // where its bytes are; of Cloud Storage, with the generation
  std::uint64_t size = 0;  // bytes (only when `ranges`, or when the server said it)
  bool size_known = true;  // false: a server without ranges that does not say the length
  bool ranges = true;      // the server gives parts
  std::string version;     // generation, or ETag (or the date of the last change); "" where there is none
  std::string condition;   // "If-Range: …" or "If-Match: …" pins this content, where the address does not
  std::optional<std::uint32_t> crc32c;
  std::optional<Checksum> checksum;  // what else the store says, when there is no crc32c
  Access access;
};

// An object of a store (store.h), http://… or https://…: asks the server for the facts. Nothing of the
// content is read.
base::Result<Remote> find_remote(const std::string& url, const std::atomic<bool>* cancelled = nullptr);
base::Result<Remote> find_page(std::shared_ptr<Http> http, const std::string& url,
                               const std::atomic<bool>* cancelled = nullptr);

struct ReadOptions {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;  // none: to the end
  // 0: chosen by how many readers are open: 16 MiB × 8 for one, and 512 MiB for all of a process together
  // (but at least 1 MiB × 2 each).
  std::uint64_t range_bytes = 0;
  int ranges = 0;          // in flight
  double hedge_after = 2;  // seconds that the first range is waited for at least before it is asked for again
  const std::atomic<bool>* cancelled = nullptr;  // looked at while waiting, every 0.1 s
};

// Reading the whole of an object ends with a comparison of its checksum, before its last range is handed out:
// bytes that do not fit are kDataLoss. A content that was replaced meanwhile is kDataLoss too. Broken
// transfers go on where they broke off; what is left of a range that takes four times as long as others did
// is asked for a second time, and comes from whichever answer is ahead. Threads: one at a time; the transfers
// run on threads of their own.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  // The next bytes, at least 1 and at most `most`; none at the end. Good until the next call.
  virtual base::Result<std::string_view> next(std::size_t most) = 0;
  // The same, copied: 0 at the end only.
  base::Result<std::size_t> read(void* bytes, std::size_t size);
  virtual const Remote& remote() const = 0;
};

base::Result<std::unique_ptr<ObjectReader>> open_reader(Remote remote, const ReadOptions& options = {});

// The whole of an object or of http(s)://… into a file, which appears when it is whole and was compared.
base::Status download(const std::string& url, const std::string& path);

// Of a server without ranges; open_reader chooses it.
std::unique_ptr<ObjectReader> open_stream_reader(Remote remote, const ReadOptions& options);

}  // namespace sluice::cloud
