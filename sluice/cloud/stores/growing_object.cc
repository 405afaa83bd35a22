#include "sluice/cloud/stores/growing_object.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/log.h"

namespace sluice::cloud {
namespace {

constexpr std::uint64_t kFewBytes = 64 << 10;     // a whole object of this size may be sent each time
constexpr std::uint64_t kComparedEnd = 64 << 10;  // bytes
constexpr double kSmallWaits = 300;               // seconds
constexpr double kWholeWaits = 60;                // seconds, at least
constexpr int kShare = 8;     // whole objects are sent when they, or their age, have grown by 1/kShare
constexpr int kTries = 8;     // while other copiers change the object and do not make it longer
constexpr int kRefusals = 3;  // after this number, the store is taken for one that cannot append

// Returns whether the object is not the one that was known: another writer was faster, or the request was
// carried out but its answer lost, so that it was sent again.
bool is_overtaken(Code code) { return code == Code::kFailedPrecondition || code == Code::kNotFound; }

// The store holds the first `held` bytes of a file as an object that it does not append to. Returns whether
// the file has grown enough to be sent whole again.
bool has_grown_enough(const Store& store, std::uint64_t held, std::uint64_t size) {
  const auto least = store.least_appended();
  const bool soon_appended = least && held < *least;
  return size - held >= (soon_appended ? held : held / kShare);
}

}  // namespace

base::Result<GrowingObject::File> GrowingObject::file_at(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return base::fail_errno(errno, "look at", path);
  return File{facts.st_dev, facts.st_ino};
}

base::Result<std::uint32_t> GrowingObject::end_of(const std::string& path, std::uint64_t size) {
  SLUICE_TRY(const std::string end, read_part(path, size - std::min(size, kComparedEnd), size));
  return base::crc32c(end.data(), end.size());
}

base::Result<bool> GrowingObject::continues(const std::string& path, std::uint64_t size) const {
  if (!sent_ || size < sent_->size) return false;
  SLUICE_TRY(const File file, file_at(path));
  if (file != file_) return false;
  SLUICE_TRY(const std::uint32_t end, end_of(path, sent_->size));
  return end == end_;
}

bool GrowingObject::has_all(std::uint64_t size) const {
  return others_ == Writers::kCopiers && sent_ && size <= sent_->size;
}

bool GrowingObject::can_append() const {
  const auto least = store_.least_appended();
  return least && sent_->size >= *least && refused_ < kRefusals;
}

base::Status GrowingObject::note(const std::string& path, ObjectFacts facts) {
  sent_.reset();
  SLUICE_TRY(file_, file_at(path));
  SLUICE_TRY(end_, end_of(path, facts.size));
  sent_ = std::move(facts);
  return {};
}

base::Status GrowingObject::adopt(const std::string& path, const ObjectFacts& facts) {
  SLUICE_TRY(const std::uint64_t size, base::file_size(path));
  if (size != facts.size) return {};  // changed since: sent whole
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; facts.crc32c && at < size;) {
    SLUICE_TRY(const std::string piece, read_part(path, at, std::min<std::uint64_t>(size, at + (1 << 20))));
    crc = base::crc32c(piece.data(), piece.size(), crc);
    at += piece.size();
  }
  if (facts.crc32c && facts.crc32c != crc) return {};
  begun_ = replaced_ = now_();
  return note(path, facts);
}

base::Result<bool> GrowingObject::is_due(const std::string& path, std::uint64_t size) const {
  if (has_all(size)) return false;
  SLUICE_TRY(const bool grows, continues(path, size));
  if (!grows || can_append() || size <= kFewBytes) return true;
  if (has_grown_enough(store_, sent_->size, size)) return true;
  const double waited = now_() - replaced_;
  const auto least = store_.least_appended();
  if (least && sent_->size < *least) return waited >= kSmallWaits;
  return waited >= std::max(kWholeWaits, (replaced_ - begun_) / kShare);
}

// Asks the store, and returns whether the object is longer than it was. The file's size is taken after the
// object's, which another copier may have increased meanwhile.
base::Result<bool> GrowingObject::look_at_object(const std::string& path) {
  auto facts = store_.stat(name_);
  if (!facts && facts.error().code() != Code::kNotFound) return tl::unexpected<Error>(facts.error());
  SLUICE_TRY(const std::uint64_t file_size, base::file_size(path));
  generation_ = facts ? facts->generation : "0";
  const bool is_beginning = facts && facts->size <= file_size;
  const std::uint64_t held = is_beginning ? facts->size : 0;
  const bool has_grown = held > seen_;
  seen_ = held;
  if (is_beginning) SLUICE_OK(note(path, std::move(*facts)));
  return has_grown;
}

base::Status GrowingObject::send(const std::string& path, std::uint64_t size) {
  if (others_ == Writers::kNone) return send_new(path, size);
  for (int failed = 0;;) {
    if (!sent_) {
      SLUICE_TRY(const bool has_grown, look_at_object(path));
      if (has_grown) failed = 0;
    }
    if (has_all(size)) return {};
    const auto sent = send_new(path, size);
    if (sent) return {};
    sent_.reset();
    if (!is_overtaken(sent.error().code()) || ++failed == kTries) return sent;
  }
}

base::Status GrowingObject::send_new(const std::string& path, std::uint64_t size) {
  SLUICE_TRY(const bool grows, continues(path, size));
  if (grows && size == sent_->size) return {};
  if (grows && can_append()) {
    auto facts = store_.append(path, size, name_, *sent_);
    if (facts) {
      refused_ = 0;
      return note(path, std::move(*facts));
    }
    const Code code = facts.error().code();
    if (code == Code::kUnavailable) return tl::unexpected<Error>(facts.error());
    if (others_ == Writers::kCopiers && is_overtaken(code)) return tl::unexpected<Error>(facts.error());
    // Another writer is no reason to stop appending.
    if (!is_overtaken(code) && ++refused_ == kRefusals)
      base::warn(name_.url(),
                 " is sent whole from now on, at growing intervals, because its end could not be "
                 "sent by itself: ",
                 facts.error().what());
  }
  UploadOptions options;
  options.grows = true;
  if (others_ == Writers::kCopiers) options.if_generation = sent_ ? sent_->generation : generation_;
  sent_.reset();  // if it fails, nothing is known
  SLUICE_TRY(auto facts, store_.upload_part(path, 0, size, name_, options));
  replaced_ = now_();
  if (begun_ == 0) begun_ = replaced_;
  return note(path, std::move(facts));
}

}  // namespace sluice::cloud
