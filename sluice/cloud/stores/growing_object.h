// An object that follows a file of this machine, such as a log: what was appended to the file is appended to
// the object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sluice/base/clock.h"
#include "sluice/cloud/store.h"

namespace sluice::cloud {

// The store holds the first `held` bytes of a file as an object that it does not append to. Returns whether
// the file has grown enough to be sent whole again: to twice its size where the store appends to larger
// objects (S3: from 5 MiB on), so that the wholes together are at most twice the last one; by an eighth where
// it never appends.
bool has_grown_enough(const Store& store, std::uint64_t held, std::uint64_t size);

// Each new byte is sent once, so that the traffic is about the size of the file. The whole file is sent when
// it was truncated or replaced by another one, when another writer has changed the object, and where the
// store cannot append: to small objects (S3: up to 5 MiB), or at all. Then is_due() says that it may wait, so
// that the bytes grow with the file's size and the logarithm of the time, not with their product. Threads:
// one at a time.
class GrowingObject {
 public:
  // `store` must outlive this. `now`: seconds of a clock that only advances.
  GrowingObject(const Store& store, ObjectName name, std::function<double()> now = base::monotonic_seconds)
      : store_(store), name_(std::move(name)), now_(std::move(now)) {}

  // Says that the file was fetched from the object, whose `facts` are from before. Content that differs from
  // them is sent whole.
  base::Status adopt(const std::string& path, const ObjectFacts& facts);
  // Returns whether the file's first `size` bytes should be sent now. An object that can only be sent whole
  // waits until it has grown enough, or the time since its beginning has grown by an eighth; one that is
  // merely too small to be appended to waits five minutes at most; one of up to 64 KiB does not wait.
  base::Result<bool> is_due(const std::string& path, std::uint64_t size) const;
  // Makes the object equal to the file's first `size` bytes, which must not change meanwhile.
  base::Status send(const std::string& path, std::uint64_t size);

 private:
  struct File {  // which file this is
    dev_t device = 0;
    ino_t number = 0;
    bool operator==(const File&) const = default;
  };
  static base::Result<File> file_at(const std::string& path);
  // Returns the checksum of the last bytes among the first `size`: a cheap sign of another content.
  static base::Result<std::uint32_t> end_of(const std::string& path, std::uint64_t size);
  base::Result<bool> continues(const std::string& path, std::uint64_t size) const;
  bool can_append() const;
  base::Status note(const std::string& path, ObjectFacts facts);

  const Store& store_;
  const ObjectName name_;
  const std::function<double()> now_;
  std::optional<ObjectFacts> sent_;  // what the object is; nothing: unknown
  File file_;                        // from which it was sent
  std::uint32_t end_ = 0;            // end_of() it
  int refused_ = 0;                  // appends, one after the other
  double begun_ = 0, replaced_ = 0;  // when it was first and last sent as a whole
};

}  // namespace sluice::cloud
