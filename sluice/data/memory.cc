#include "sluice/data/memory.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace sluice::data {
namespace {

// At least kReservation bytes are reserved at once, but at most this fraction of the process's limit.
constexpr std::uint64_t kReservation = 1 << 20;
constexpr std::uint64_t kReservations = 4096;

// The memory that all samples in work have reserved.
struct Claims {
  std::mutex mutex;
  std::condition_variable less;
  std::uint64_t bytes = 0;
  const SampleMemory* beyond = nullptr;  // the sample that may take what is left for one
};

Claims& claims() {
  static auto& all = *new Claims;
  return all;
}

std::atomic<std::uint64_t> held_by_readers{0};

SampleMemory*& current_sample() {
  thread_local SampleMemory* sample = nullptr;
  return sample;
}

}  // namespace

MemoryLimits& memory_limits() {
  static MemoryLimits limits;
  return limits;
}

SampleMemory::SampleMemory() : outer_(current_sample()) { current_sample() = this; }

SampleMemory::~SampleMemory() {
  current_sample() = outer_;
  if (reserved_ == 0) return;
  Claims& all = claims();
  {
    const std::lock_guard lock(all.mutex);
    all.bytes -= reserved_;
    if (all.beyond == this) all.beyond = nullptr;
  }
  all.less.notify_all();
}

base::Status claim_memory(std::uint64_t bytes, const char* what) {
  const MemoryLimits& limits = memory_limits();
  SampleMemory* sample = current_sample();
  const std::uint64_t before = sample == nullptr ? 0 : sample->claimed_;
  if (bytes > limits.sample || before > limits.sample - bytes)
    return too_much_memory(
        base::str(what, " of ", bytes, " bytes", before > 0 ? base::str(" (after ", before, ")") : ""));
  if (sample == nullptr) return {};
  sample->claimed_ += bytes;
  if (sample->claimed_ <= sample->reserved_) return {};
  const std::uint64_t more =
      std::max(sample->claimed_ - sample->reserved_, std::min(limits.process / kReservations, kReservation));
  Claims& all = claims();
  std::unique_lock lock(all.mutex);
  // The rest is for the one sample that may continue when the others are waiting for each other.
  const std::uint64_t shared = limits.process - std::min(limits.sample, limits.process / 2);
  const auto fits = [&] { return all.bytes + more <= shared; };
  all.less.wait(lock, [&] { return fits() || all.beyond == nullptr || all.beyond == sample; });
  if (!fits()) all.beyond = sample;
  all.bytes += more;
  sample->reserved_ += more;
  return {};
}

base::Status ReaderMemory::grow(std::uint64_t bytes, const std::function<std::string()>& what) {
  const std::uint64_t before = held_by_readers.fetch_add(bytes), limit = memory_limits().readers;
  held_ += bytes;
  if (bytes <= limit && before <= limit - bytes) return {};
  shrink(bytes);
  return base::fail(Code::kResourceExhausted, what(), " of ", bytes,
                    " bytes: shuffle buffers, batches and unpackers hold ", before,
                    " already, expected at most ", limit,
                    ". Make --shuffle, --batch-size or --streams smaller, or allow more with --max-buffered");
}

void ReaderMemory::shrink(std::uint64_t bytes) {
  held_ -= bytes;
  held_by_readers -= bytes;
}

tl::unexpected<Error> too_much_memory(const std::string& what) {
  return base::fail(Code::kResourceExhausted, what, ": expected at most ", memory_limits().sample,
                    " bytes for a sample. If the sample is valid, allow more with --max-sample");
}

base::Status check_pixels(std::int64_t width, std::int64_t height) {
  if (height == 0 || width <= memory_limits().pixels / height) return {};
  return base::fail(Code::kResourceExhausted, width, " × ", height, " pixels are too many: expected at most ",
                    memory_limits().pixels, ". If the image is valid, allow more with --max-pixels");
}

}  // namespace sluice::data
