#include "sluice/cloud/object_reader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "sluice/base/block.h"
#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/thread.h"

namespace sluice::cloud {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kReadAhead = 512 * kMiB;  // of all readers together
constexpr std::uint64_t kLargestRange = 16 * kMiB, kSmallestRange = kMiB / 32;
constexpr std::uint64_t kMaxRanges = 8, kMaxThreads = 32;
constexpr double kSlow = 4;               // times the median of the others
constexpr double kLongestTransfer = 300;  // seconds in which a range must arrive: slower ones have stalled
constexpr double kSlowest = 1000;         // bytes a second, for small ranges
std::atomic<std::uint64_t> open_readers{0};

// A part of the object that a thread of the pool reads.
struct Slot {
  std::uint64_t begin = 0;
  std::size_t size = 0;
  base::Block buffer;
  std::size_t room = 0;                // size of the buffer
  std::atomic<std::size_t> filled{0};  // bytes that have arrived; written by the thread
  std::atomic<bool> stop{false};       // nobody waits for it
  double began = 0;                    // on the reader's clock
  double took = 0;                     // seconds, when done; under the mutex
  std::size_t wanted = 0;  // bytes that the reader takes from it: fewer than `size` if `second` continues
  std::shared_ptr<Slot> second;  // a second request for its missing bytes; for the reader only
  bool hedged = false;           // it was requested a second time
  std::uint32_t crc = 0;         // of the bytes; read when done
  bool done = false;             // under the mutex, like error
  std::optional<Error> error;
};

// The state that the reader and the threads share.
struct Transfers {
  Remote remote;
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  bool waiting = false;  // the reader waits for bytes

  void wake() {
    const std::lock_guard lock(mutex);
    if (waiting) changed.notify_all();
  }
};

// The threads of all readers; they never end, because a reader's destructor waits for its own transfers.
base::ThreadPool& pool() {
  static auto& threads = *new base::ThreadPool("sluice-get", kMaxThreads);
  return threads;
}

Error replaced(const Remote& remote) {
  return Error(Code::kDataLoss,
               base::str(remote.name, " was replaced or removed while it was read (the content of version ",
                         remote.version, " is gone): read it again from the start"));
}

// `rclone serve s3` answers a range request with status 200, but sends only the range and a Content-Range.
bool has_range(const HttpResponse& head) {
  return head.status == 206 || (head.status == 200 && head.header("content-range").has_value());
}

// Checks the head of an answer to a request for bytes from `from` to `last`; returns the fault, or "".
std::string wrong_head(const HttpResponse& head, const Remote& remote, std::uint64_t from,
                       std::uint64_t last) {
  if (!has_range(head))
    return base::str("expected status 206 (a part), the server answered with ", head.status);
  const std::string range = head.header("content-range").value_or("");
  std::uint64_t first = 0, end = 0, total = 0;
  char more = 0;
  if (std::sscanf(range.c_str(), "bytes %lu-%lu/%lu%c", &first, &end, &total, &more) != 3)
    return base::str("expected Content-Range: bytes ", from, "-", last, "/", remote.size,
                     ", the server sent '", range, "'");
  if (first != from || end > last || end < first || total != remote.size)
    return base::str("asked for bytes ", from, "-", last, " of ", remote.size, ", the server sends '", range,
                     "'");
  return "";
}

// The transfer of one slot, which may take several requests.
class RangeTransfer {
 public:
  RangeTransfer(Transfers& all, Slot& slot)
      : all_(all), slot_(slot), again_(all.remote.access.http->backoff(&slot.stop)) {}

  base::Status run() {
    while (slot_.filled < slot_.size) {
      const std::size_t before = slot_.filled;
      auto response = request();
      if (wrong_) return base::fail(Code::kDataLoss, all_.remote.name, ": ", *wrong_);
      if (slot_.filled > before) again_.progress();
      if (slot_.filled == slot_.size) break;
      if (response && has_range(*response) && slot_.filled > before) continue;  // shorter than requested
      SLUICE_OK(after_failure(response));
    }
    return {};
  }

 private:
  base::Result<HttpResponse> request() {
    const std::uint64_t from = slot_.begin + slot_.filled, last = slot_.begin + slot_.size - 1;
    HttpRequest request;
    request.url = all_.remote.address;
    request.headers = {
        base::str("Range: bytes=", from, "-", last),
        // An object stored with gzip must be sent as it is stored, or the server ignores the range.
        "Accept-Encoding: gzip"};
    if (!all_.remote.condition.empty()) request.headers.push_back(all_.remote.condition);
    request.direct = all_.remote.access.direct;
    const Access& access = all_.remote.access;
    request.follow_redirects = access.credentials == nullptr && access.signer == nullptr;
    request.cancelled = &slot_.stop;
    request.slowest = std::max(kSlowest, static_cast<double>(slot_.size) / kLongestTransfer);
    bool checked = false;
    request.on_body = [&](const HttpResponse& head, const char* bytes, std::size_t size) {
      if (!checked) {
        // The server sent the whole object. With If-Range this means that the content changed, else that the
        // server has no ranges.
        changed_ =
            head.status == 200 && !has_range(head) && base::starts_with(all_.remote.condition, "If-Range");
        const std::string what = wrong_head(head, all_.remote, from, last);
        if (!changed_ && !what.empty()) wrong_ = what;
        checked = true;
      }
      if (changed_ || wrong_) return false;
      return take(bytes, size);
    };
    auto response = all_.remote.access.once(std::move(request));
    if (changed_) return tl::unexpected<Error>(replaced(all_.remote));
    return response;
  }

  bool take(const char* bytes, std::size_t size) {
    const std::size_t filled = slot_.filled.load(std::memory_order_relaxed);
    if (size > slot_.size - filled) {
      wrong_ = base::str("the server sent more than the ", slot_.size, " bytes from ", slot_.begin,
                         " that were asked for");
      return false;
    }
    std::memcpy(slot_.buffer.get() + filled, bytes, size);
    slot_.crc = base::crc32c(bytes, size, slot_.crc);
    slot_.filled.store(filled + size, std::memory_order_release);
    all_.wake();
    return true;
  }

  base::Status after_failure(const base::Result<HttpResponse>& response) {
    const std::string what = base::str(all_.remote.name, " at byte ", slot_.begin + slot_.filled);
    if (!response) {
      if (response.error().code() != Code::kUnavailable) return tl::unexpected<Error>(response.error());
      return again_.wait(Error(Code::kUnavailable, base::str(what, ": ", response.error().what())));
    }
    const int status = response->status;
    if (status == 404 || status == 412 || status == 416) return tl::unexpected<Error>(replaced(all_.remote));
    if (status == 206 || status == 200)
      return again_.wait(Error(Code::kUnavailable, what + ": the server sent an empty part"));
    if (!is_transient(status)) return tl::unexpected<Error>(explain(*response, what, all_.remote.access));
    return again_.wait(status_error(*response, what), retry_after(*response));
  }

  Transfers& all_;
  Slot& slot_;
  Backoff again_;
  std::optional<std::string> wrong_;
  bool changed_ = false;
};

class RangedObjectReader : public ObjectReader {
 public:
  RangedObjectReader(Remote remote, const ReadOptions& options, std::uint64_t begin, std::uint64_t end)
      : options_(options),
        end_(end),
        scheduled_(begin),
        whole_(begin == 0 && end == remote.size && (remote.crc32c || remote.checksum)),
        transfers_(std::make_shared<Transfers>()) {
    ++open_readers;
    if (whole_ && !remote.crc32c) digest_ = std::make_unique<Digest>(remote.checksum->kind);
    transfers_->remote = std::move(remote);
  }

  ~RangedObjectReader() override {
    for (const auto& slot : slots_) {
      slot->stop = true;
      if (slot->second) slot->second->stop = true;
    }
    std::unique_lock lock(transfers_->mutex);
    transfers_->changed.wait(lock, [&] { return transfers_->running == 0; });
    --open_readers;
  }

  const Remote& remote() const override { return transfers_->remote; }

  base::Result<std::string_view> next(std::size_t most) override {
    if (failed_) return tl::unexpected<Error>(*failed_);
    schedule();
    while (!slots_.empty()) {
      Slot& slot = *slots_.front();
      if (used_ >= slot.wanted) {
        pop();
        continue;
      }
      auto have = wait_for_bytes(slot);
      if (!have) {
        failed_ = have.error();
        return tl::unexpected<Error>(*failed_);
      }
      if (used_ >= slot.wanted) continue;  // the second request continues from here
      const std::size_t step = std::min(most, std::min(*have, slot.wanted) - used_);
      const std::string_view bytes(slot.buffer.get() + used_, step);
      used_ += step;
      return bytes;
    }
    return std::string_view();
  }

 private:
  // Chooses the size of ranges and the number in flight: this reader's share of the memory.
  void choose(std::uint64_t& bytes, std::uint64_t& count) const {
    const std::uint64_t share = kReadAhead / std::max<std::uint64_t>(open_readers, 1);
    // With more than 256 readers, ranges of 1 MiB would take more than all memory.
    const std::uint64_t least = std::clamp(share / 2, kSmallestRange, kMiB);
    bytes = options_.range_bytes > 0 ? options_.range_bytes : std::clamp(share / 4, least, kLargestRange);
    count = options_.ranges > 0 ? static_cast<std::uint64_t>(options_.ranges)
                                : std::clamp<std::uint64_t>(share / bytes, 2, kMaxRanges);
  }

  void schedule() {
    std::uint64_t bytes = 0, count = 0;
    choose(bytes, count);
    while (scheduled_ < end_ && slots_.size() < count) {
      slots_.push_back(start(scheduled_, static_cast<std::size_t>(std::min(bytes, end_ - scheduled_))));
      scheduled_ += slots_.back()->size;
    }
  }

  void take_buffer(Slot& slot) {
    slot.room = spare_room_;
    slot.buffer = std::move(spare_);
    if (slot.buffer == nullptr || slot.room < slot.size) {
      slot.room = slot.size;
      slot.buffer = base::make_block(slot.room);
    }
    spare_room_ = 0;
  }

  double now() const { return remote().access.http->options().clock.now(); }

  std::shared_ptr<Slot> start(std::uint64_t begin, std::size_t size) {
    auto slot = std::make_shared<Slot>();
    slot->begin = begin;
    slot->size = slot->wanted = size;
    slot->began = now();
    take_buffer(*slot);
    {
      const std::lock_guard lock(transfers_->mutex);
      ++transfers_->running;
    }
    pool().submit([all = transfers_, slot] {
      auto status = RangeTransfer(*all, *slot).run();
      const double end = all->remote.access.http->options().clock.now();
      const std::lock_guard lock(all->mutex);
      slot->took = end - slot->began;
      if (!status) slot->error = status.error();
      slot->done = true;
      --all->running;
      all->changed.notify_all();
    });
    return slot;
  }

  // The reader waits for the first slot. Under the mutex: returns whether it takes much longer than others
  // did.
  bool is_slow(const Slot& slot) const {
    if (slot.done || slot.hedged) return false;
    std::vector<double> paces(paces_);
    for (const auto& other : slots_)  // slots after it that are already complete
      if (other->done && !other->error) paces.push_back(other->took / static_cast<double>(other->size));
    if (paces.empty()) return false;
    const auto middle = paces.begin() + static_cast<std::ptrdiff_t>(paces.size() / 2);
    std::nth_element(paces.begin(), middle, paces.end());
    return now() - slot.began >=
           std::max(options_.hedge_after, kSlow * *middle * static_cast<double>(slot.size));
  }

  // Requests the missing bytes of a slot again. Not under the mutex.
  void ask_again(Slot& slot) {
    slot.hedged = true;
    const std::size_t from = slot.filled.load(std::memory_order_acquire);
    if (from == slot.size) return;
    base::debug(remote().name, ": the range at byte ", slot.begin,
                " is slow: what is left of it is asked for again");
    slot.second = start(slot.begin + from, slot.size - from);
    slot.second->hedged = true;
  }

  // Under the mutex: returns whether the second answer is ahead of the first, or the first has failed.
  static bool is_overtaken(const Slot& slot) {
    if (slot.second == nullptr || slot.second->error) return false;
    if (slot.error) return true;
    const std::size_t from = slot.size - slot.second->size;
    return !slot.done && from + slot.second->filled > slot.filled;
  }

  // Continues with the second answer, which begins where the first one was when the second was requested.
  void go_on_with_second(Slot& slot) {
    slot.stop = true;
    slot.wanted = slot.size - slot.second->size;
    slot.second->hedged = false;  // it may become slow itself
    slots_.insert(slots_.begin() + 1, std::move(slot.second));
  }

  // Returns how many of the slot's bytes can be handed out, more than used_.
  base::Result<std::size_t> wait_for_bytes(Slot& slot) {
    const bool held =
        whole_ && scheduled_ == end_ && slots_.size() == 1;  // the last one, until its checksum was compared
    if (!held) {
      const std::size_t filled = slot.filled.load(std::memory_order_acquire);
      if (filled > used_) return filled;
    }
    std::unique_lock lock(transfers_->mutex);
    transfers_->waiting = true;
    const auto ready = [&] {
      const bool second_may_do = slot.second != nullptr && !slot.second->error;
      return (slot.done && (!slot.error || !second_may_do)) || (!held && slot.filled > used_) ||
             is_overtaken(slot);
    };
    // A slow range delivers some bytes now and then: it is checked whenever they are used up.
    const auto hedge = [&] {
      if (!is_slow(slot)) return;
      lock.unlock();
      ask_again(slot);
      lock.lock();
    };
    hedge();
    while (!transfers_->changed.wait_for(lock, std::chrono::milliseconds(100), ready)) {
      if (options_.cancelled != nullptr && *options_.cancelled) break;
      hedge();
    }
    transfers_->waiting = false;
    if (is_overtaken(slot)) {
      go_on_with_second(slot);
      return slot.wanted;
    }
    if (slot.error) return tl::unexpected<Error>(*slot.error);
    if (!ready()) return cancelled_error(remote().name);
    const std::size_t filled = slot.filled.load(std::memory_order_acquire);
    if (held && !compared_) SLUICE_OK(compare(slot));
    compared_ = held;
    return filled;
  }

  base::Status compare(const Slot& last) {
    if (digest_ == nullptr) {
      const std::uint32_t found = base::crc32c_combine(crc_, last.crc, last.size);
      return compare("crc32c", base64_of_crc32c(found), base64_of_crc32c(*remote().crc32c));
    }
    digest_->add(last.buffer.get(), last.size);
    return compare(name_of(remote().checksum->kind), base::hexadecimal(digest_->bytes()),
                   remote().checksum->value);
  }

  base::Status compare(const char* kind, const std::string& found, const std::string& expected) const {
    if (found == expected) return {};
    return base::fail(Code::kDataLoss, remote().name, ": its bytes do not fit its ", kind, ": found ", found,
                      ", expected ", expected,
                      ". Read it again; if that gives the same, the object is damaged");
  }

  // Moves to the next slot; the buffer is reused.
  void pop() {
    Slot& slot = *slots_.front();
    if (digest_ != nullptr && !compared_) digest_->add(slot.buffer.get(), slot.wanted);
    if (slot.wanted < slot.size) {
      // The thread may still write bytes after the wanted ones: the buffer stays with the slot.
      crc_ = base::crc32c(slot.buffer.get(), slot.wanted, crc_);
    } else {
      // The thread may have filled it without having set `done` yet.
      std::unique_lock lock(transfers_->mutex);
      transfers_->changed.wait(lock, [&] { return slot.done; });
      if (slot.second) slot.second->stop = true;
      paces_.push_back(slot.took / static_cast<double>(slot.size));
      if (paces_.size() > kPaces) paces_.erase(paces_.begin());
      crc_ = base::crc32c_combine(crc_, slot.crc, slot.size);
      spare_ = std::move(slot.buffer);
      spare_room_ = slot.room;
    }
    used_ -= slot.wanted;
    slots_.pop_front();
    schedule();
  }

  const ReadOptions options_;
  const std::uint64_t end_;
  std::uint64_t scheduled_;  // where the next range begins
  const bool whole_;         // the checksum can be compared, as the whole object is read
  const std::shared_ptr<Transfers> transfers_;
  std::deque<std::shared_ptr<Slot>> slots_;
  static constexpr std::size_t kPaces = 15;
  std::vector<double> paces_;       // seconds per byte of the latest ranges
  std::size_t used_ = 0;            // bytes of the first slot
  std::uint32_t crc_ = 0;           // of the slots before the first
  std::unique_ptr<Digest> digest_;  // the same with the other checksum, if there is no crc32c
  bool compared_ = false;
  base::Block spare_;
  std::size_t spare_room_ = 0;
  std::optional<Error> failed_;
};

}  // namespace

base::Result<std::size_t> ObjectReader::read(void* bytes, std::size_t size) {
  SLUICE_TRY(const std::string_view some, next(size));
  if (!some.empty()) std::memcpy(bytes, some.data(), some.size());
  return some.size();
}

base::Result<std::unique_ptr<ObjectReader>> open_reader(Remote remote, const ReadOptions& options) {
  if (!remote.ranges) return open_stream_reader(std::move(remote), options);
  const std::uint64_t end = std::min(options.end.value_or(remote.size), remote.size);
  if (options.begin > end)
    return base::fail(Code::kOutOfRange, remote.name, ": asked for bytes from ", options.begin, " to ", end,
                      " of ", remote.size);
  return std::make_unique<RangedObjectReader>(std::move(remote), options, options.begin, end);
}

base::Status download(const std::string& url, const std::string& path) {
  constexpr std::size_t kPiece = 1 << 20;
  SLUICE_TRY(Remote remote, find_remote(url));
  SLUICE_TRY(const auto reader, open_reader(std::move(remote)));
  SLUICE_TRY(auto file, base::AtomicFile::create(path));
  while (true) {
    SLUICE_TRY(const std::string_view some, reader->next(kPiece));
    if (some.empty()) return file.commit();
    SLUICE_OK(file.write(some));
  }
}

}  // namespace sluice::cloud
