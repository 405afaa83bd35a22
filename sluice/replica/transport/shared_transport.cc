#include "sluice/replica/transport/shared_transport.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <random>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/replica/loss.h"

namespace sluice::replica {
namespace {

using collectives::HostSpan;
using stablehlo::DType;

// Bytes of each process at a time: its share of a piece, times the processes, stays in a core's cache.
constexpr size_t kPiece = 512 << 10;
constexpr size_t kHeaderBytes = 4096;
constexpr uint32_t kReady = 0x5375696C;
constexpr const char* kName = "/sluice-";
// The time between a waiting process's checks whether the others live.
constexpr long kLookNanoseconds = 50'000'000;
// The number of checks before it sleeps.
constexpr int kSpins = 400;

// The beginning of the segment. All atomics are lock-free, so that they work between processes.
struct Header {
  std::atomic<uint32_t> ready;       // kReady after the creator has finished
  std::atomic<uint32_t> arrived;     // at the barrier
  std::atomic<uint32_t> generation;  // barriers so far; a futex
  std::atomic<uint32_t> stopped;     // 0: not stopped; 1: the reason is being written; 2: written
  char reason[1024];
};
static_assert(sizeof(Header) <= kHeaderBytes && std::atomic<uint32_t>::is_always_lock_free);

size_t segment_bytes(int processes) {
  return kHeaderBytes + static_cast<size_t>(processes) * 2 * kPiece + 2 * kPiece;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec pause{0, kLookNanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &pause, nullptr, 0);
}
void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Each process locks the byte of its number: the kernel releases the lock when the process ends.
struct flock byte_lock(int process, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = process;
  lock.l_len = 1;
  return lock;
}

}  // namespace

base::Result<std::unique_ptr<SharedSegment>> SharedSegment::create(int processes) {
  std::random_device random;
  const std::string name = base::str(kName, ::getpid(), "-", random(), random());
  const int descriptor = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return base::fail_errno(errno, "make shared memory", name);
  const size_t bytes = segment_bytes(processes);
  // Reserved now: memory that is missing later would kill the process that touches it.
  int wrong = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  void* memory = MAP_FAILED;
  if (wrong == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) wrong = errno;
  }
  if (wrong != 0) {
    ::close(descriptor);
    ::shm_unlink(name.c_str());
    return base::fail(Code::kResourceExhausted, "cannot have ", base::memory_text(bytes),
                      " of shared memory: ", std::strerror(wrong));
  }
  auto* header = new (memory) Header{};
  header->ready.store(kReady, std::memory_order_release);
  return std::unique_ptr<SharedSegment>(new SharedSegment(name, descriptor, memory, bytes, true));
}

base::Result<std::unique_ptr<SharedSegment>> SharedSegment::open(const std::string& name, int processes) {
  // The name comes from process 0 and is checked.
  if (!name.starts_with(kName) || name.find('/', 1) != std::string::npos || name.size() > NAME_MAX)
    return base::fail(Code::kInvalidArgument, "process 0 says that the shared memory has a name of ",
                      name.size(), " bytes that is not valid");
  const int descriptor = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (descriptor < 0) return base::fail_errno(errno, "open shared memory", name);
  const size_t bytes = segment_bytes(processes);
  struct stat facts {};
  void* memory = MAP_FAILED;
  if (::fstat(descriptor, &facts) == 0 && facts.st_uid == ::geteuid() &&
      static_cast<size_t>(facts.st_size) == bytes)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED || static_cast<Header*>(memory)->ready.load(std::memory_order_acquire) != kReady) {
    if (memory != MAP_FAILED) ::munmap(memory, bytes);
    ::close(descriptor);
    return base::fail(Code::kFailedPrecondition, "the shared memory ", name, " is not one of ", processes,
                      " processes of this version");
  }
  return std::unique_ptr<SharedSegment>(new SharedSegment(name, descriptor, memory, bytes, false));
}

SharedSegment::~SharedSegment() {
  if (created_) remove(name_);
  ::munmap(memory_, bytes_);
  ::close(descriptor_);
}

void SharedSegment::remove(const std::string& name) { ::shm_unlink(name.c_str()); }

class SharedTransport : public collectives::Transport {
 public:
  SharedTransport(std::unique_ptr<SharedSegment> segment, int index, int processes,
                  std::chrono::milliseconds timeout, RunState run)
      : segment_(std::move(segment)),
        index_(index),
        processes_(processes),
        timeout_(timeout),
        run_(std::move(run)) {
    struct flock mine = byte_lock(index_, F_WRLCK);
    locked_ = ::fcntl(segment_->descriptor_, F_OFD_SETLK, &mine) == 0;
  }

  base::Result<std::vector<std::string>> exchange(std::string_view bytes) override {
    return exchange_by_gather(bytes, me(), count());
  }

  base::Status all_gather(void* all, size_t bytes) override {
    auto* start = static_cast<char*>(all);
    for (size_t begin = 0; begin < bytes; begin += kPiece) {
      const size_t size = std::min(kPiece, bytes - begin);
      std::memcpy(said_by(me()), start + me() * bytes + begin, size);
      SLUICE_OK(meet());
      for (size_t p = 0; p < count(); ++p) {
        if (p != me()) std::memcpy(start + p * bytes + begin, said_by(p), size);
      }
      ++piece_;
    }
    return {};
  }

  base::Status all_reduce(std::span<const HostSpan> spans, DType dtype,
                          collectives::Reduction reduction) override {
    const size_t size = stablehlo::dtype_size(dtype), at_once = kPiece / size;
    Cursor in{spans}, out{spans};
    while (true) {
      const size_t elements = in.walk(at_once, size, [&](void* here, size_t at, size_t bytes) {
        std::memcpy(said_by(me()) + at, here, bytes);
      });
      if (elements == 0) return {};
      SLUICE_OK(meet());
      combine(elements, size, dtype, reduction);
      SLUICE_OK(meet());
      out.walk(at_once, size,
               [&](void* here, size_t at, size_t bytes) { std::memcpy(here, results() + at, bytes); });
      ++piece_;
    }
  }

  void abort(const std::string& reason) override {
    Header& h = header();
    uint32_t nobody = 0;
    if (h.stopped.compare_exchange_strong(nobody, 1)) {
      const std::string text = failed_text(index_, reason).substr(0, sizeof h.reason - 1);
      std::memcpy(h.reason, text.c_str(), text.size() + 1);
      h.stopped.store(2, std::memory_order_release);
    }
    ended_ = true;
    futex_wake_all(h.generation);
  }

 private:
  // Walks over the elements of several spans, at most `most` at a time.
  struct Cursor {
    std::span<const HostSpan> spans;
    size_t span = 0, element = 0;

    // Calls `body(address, offset in the piece, bytes)` for each run; returns the number of elements, 0 at
    // the end.
    template <typename Body>
    size_t walk(size_t most, size_t size, const Body& body) {
      size_t done = 0;
      while (done < most && span < spans.size()) {
        const size_t step = std::min(most - done, spans[span].elements - element);
        if (step > 0) body(static_cast<char*>(spans[span].data) + element * size, done * size, step * size);
        done += step;
        element += step;
        if (element < spans[span].elements) break;
        ++span;
        element = 0;
      }
      return done;
    }
  };

  Header& header() const { return *static_cast<Header*>(segment_->memory_); }
  size_t me() const { return static_cast<size_t>(index_); }
  size_t count() const { return static_cast<size_t>(processes_); }
  // Pieces alternate between two places: a fast process may write the next one while others still read this
  // one.
  char* place(size_t number) const {
    return static_cast<char*>(segment_->memory_) + kHeaderBytes + (2 * number + piece_ % 2) * kPiece;
  }
  char* said_by(size_t process) const { return place(process); }
  char* results() const { return place(count()); }

  // Combines this process's part of the piece: a run of elements.
  void combine(size_t elements, size_t size, DType dtype, collectives::Reduction reduction) const {
    const size_t begin = elements * me() / count(), end = elements * (me() + 1) / count();
    if (begin == end) return;
    std::vector<const void*> inputs;
    for (size_t p = 0; p < count(); ++p) inputs.push_back(said_by(p) + begin * size);
    void* output = results() + begin * size;
    collectives::reduce(dtype, reduction, inputs, {&output, 1}, end - begin);
  }

  // The barrier: no process continues before all have come.
  base::Status meet() {
    if (ended_)
      return base::fail(Code::kFailedPrecondition, "the connection to the other processes has ended");
    Header& h = header();
    const uint32_t generation = h.generation.load(std::memory_order_acquire);
    if (h.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count()) {
      h.arrived.store(0, std::memory_order_relaxed);
      h.generation.fetch_add(1, std::memory_order_release);
      futex_wake_all(h.generation);
      return {};
    }
    for (int spin = 0; spin < kSpins; ++spin) {
      if (h.generation.load(std::memory_order_acquire) != generation) return {};
    }
    const base::Stopwatch waited;
    while (h.generation.load(std::memory_order_acquire) == generation) {
      futex_wait(h.generation, generation);
      if (h.generation.load(std::memory_order_acquire) != generation) break;
      if (auto status = look(waited.seconds()); !status) {
        ended_ = true;
        return status;
      }
    }
    return {};
  }

  // Returns an error if waiting is of no use any more.
  base::Status look(double waited) const {
    Header& h = header();
    // Checked before the reason is read: a process that left may have written why.
    int lost = 0;
    while (lost < processes_ && (lost == index_ || lives(lost))) ++lost;
    if (h.stopped.load(std::memory_order_acquire) == 2)
      return tl::unexpected<Error>(ending(std::string(h.reason, ::strnlen(h.reason, sizeof h.reason))));
    if (lost < processes_)
      return tl::unexpected<Error>(run_.end(lost_text({lost}, processes_, "in a collective: it has ended")));
    SLUICE_OK(run_.status());
    if (waited * 1000 > static_cast<double>(timeout_.count()))
      return base::fail(Code::kDeadlineExceeded, "the other processes did not come to a collective within ",
                        timeout_.count() / 1000,
                        " s though they live; raise SLUICE_COLLECTIVE_TIMEOUT if that can be");
    return {};
  }

  bool lives(int process) const {
    struct flock theirs = byte_lock(process, F_WRLCK);
    return !locked_ || ::fcntl(segment_->descriptor_, F_OFD_GETLK, &theirs) != 0 || theirs.l_type != F_UNLCK;
  }

  const std::unique_ptr<SharedSegment> segment_;
  const int index_, processes_;
  const std::chrono::milliseconds timeout_;
  const RunState run_;
  bool locked_ = false;
  size_t piece_ = 0;  // number of pieces so far
  std::atomic<bool> ended_{false};
};

std::shared_ptr<collectives::Transport> make_shared_transport(std::unique_ptr<SharedSegment> segment,
                                                              int index, int processes,
                                                              std::chrono::milliseconds timeout,
                                                              RunState run) {
  return std::make_shared<SharedTransport>(std::move(segment), index, processes, timeout, std::move(run));
}

}  // namespace sluice::replica
