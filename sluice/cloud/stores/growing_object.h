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

// Who else writes to an object.
enum class Writers {
  kNone,     // nobody, or strangers: what they have written is replaced
  kCopiers,  // other programs that copy the same file, which is only ever appended to: their bytes count
};

// Each new byte is sent once, so that the traffic is about the size of the file. The whole file is sent when
// it was truncated or replaced by another one, when another writer has changed the object, and where the
// store cannot append: to small objects (S3: up to 5 MiB), or at all. Then is_due() says that it may wait, so
// that the bytes grow with the file's size and the logarithm of the time, not with their product.
//
// With other copiers, an object that is not longer than the file has the file's beginning. The object is
// replaced only in the generation that is known; when another copier was faster, this one continues from
// there. Threads: one at a time.
class GrowingObject {
 public:
  // `store` must outlive this. `now`: seconds of a clock that only advances.
  GrowingObject(const Store& store, ObjectName name, std::function<double()> now = base::monotonic_seconds,
                Writers others = Writers::kNone)
      : store_(store), name_(std::move(name)), now_(std::move(now)), others_(others) {}

  // Says that the file was fetched from the object, whose `facts` are from before. Content that differs from
  // them is sent whole.
  base::Status adopt(const std::string& path, const ObjectFacts& facts);
  // Returns whether the file's first `size` bytes should be sent now. An object that can only be sent whole
  // waits until it has grown by an eighth, or for a minute and until the time since its beginning has grown
  // by an eighth. One that is merely too small to be appended to (S3: below 5 MiB) waits until it has
  // doubled, or for five minutes: all wholes together are at most three times the file. One of up to 64 KiB
  // does not wait.
  base::Result<bool> is_due(const std::string& path, std::uint64_t size) const;
  // Makes the object equal to the file's first `size` bytes, which must not change meanwhile; with other
  // copiers it may get longer. After an error, the next call continues from what the store has.
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
  bool has_all(std::uint64_t size) const;
  base::Result<bool> look_at_object(const std::string& path);
  base::Status send_new(const std::string& path, std::uint64_t size);
  base::Status note(const std::string& path, ObjectFacts facts);

  const Store& store_;
  const ObjectName name_;
  const std::function<double()> now_;
  const Writers others_;
  std::optional<ObjectFacts> sent_;  // what the object is; nothing: unknown
  File file_;                        // from which it was sent
  std::uint32_t end_ = 0;            // end_of() it
  // The object's generation as the store last reported it, if there are other copiers; "0": no object.
  std::string generation_ = "0";
  std::uint64_t seen_ = 0;
  int refused_ = 0;                  // appends, one after the other
  double begun_ = 0, replaced_ = 0;  // when it was first and last sent as a whole
};

}  // namespace sluice::cloud
