// How much memory may be claimed by what is read. A file of some bytes can ask for any number of them: packed
// text, an image's header, an array's shape. So whoever makes room by a number that stands in a file claims
// it here first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::data {

struct MemoryLimits {
  std::uint64_t sample = std::uint64_t{1}
                         << 30;  // bytes that one sample's decoding claims, or its members hold
  std::uint64_t process = std::uint64_t{4} << 30;  // that all samples in work claim: more of them wait
  std::uint64_t readers = std::uint64_t{8} << 30;  // that shuffle buffers, batches and unpackers hold
  std::int64_t pixels = 100'000'000;               // of one image
};

// Of this process. Changed before threads read.
MemoryLimits& memory_limits();

// While it lives, what this thread claims counts for one sample. A claim beyond memory_limits().sample is
// refused, whatever other threads do. One for which memory_limits().process has no room waits for theirs. One
// sample may always go on: room for it, at most half of the process's, is left by the others.
class SampleMemory {
 public:
  SampleMemory();
  ~SampleMemory();
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;

 private:
  friend base::Status claim_memory(std::uint64_t bytes, const char* what);
  std::uint64_t claimed_ = 0;
  std::uint64_t reserved_ = 0;  // of the process's, ahead of the claims: small samples ask once
  SampleMemory* outer_;
};

// For the sample of this thread; without one, the claim alone is compared. kResourceExhausted; `what` is
// named.
base::Status claim_memory(std::uint64_t bytes, const char* what);

// What a reader holds of memory_limits().readers: samples in a shuffle buffer or on their way to a batch, the
// window of an unpacker. Given back at the end. Threads: one at a time for each, any number of them.
class ReaderMemory {
 public:
  ReaderMemory() = default;
  ~ReaderMemory() { shrink(held_); }
  ReaderMemory(const ReaderMemory&) = delete;
  ReaderMemory& operator=(const ReaderMemory&) = delete;
  // kResourceExhausted, and nothing more is held, where all readers together would hold too much: then alone
  // `what` is asked for the words that the error begins with.
  base::Status grow(std::uint64_t bytes, const std::function<std::string()>& what);
  void shrink(std::uint64_t bytes);
  void clear() { shrink(held_); }

 private:
  std::uint64_t held_ = 0;
};

// The refusal of what asks for more than memory_limits().sample: "WHAT: expected at most … for a sample", and
// what to do. kResourceExhausted.
tl::unexpected<Error> too_much_memory(const std::string& what);

// Whether an image may be so large. kResourceExhausted.
base::Status check_pixels(std::int64_t width, std::int64_t height);

}  // namespace sluice::data
