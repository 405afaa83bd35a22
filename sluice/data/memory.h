// Limits of the memory that files may claim. A small file can ask for any amount of memory: packed text, an
// image's header, an array's shape. Code that allocates memory by a number in a file claims it here first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::data {

struct MemoryLimits {
  std::uint64_t sample = std::uint64_t{1} << 30;   // that one sample's decoding or its members take
  std::uint64_t process = std::uint64_t{4} << 30;  // that all samples in work claim: more claims wait
  std::uint64_t readers = std::uint64_t{8} << 30;  // that shuffle buffers, batches and unpackers hold
  std::int64_t pixels = 100'000'000;               // of one image
};

// The limits of this process. Change them before threads read.
MemoryLimits& memory_limits();

// Counts what this thread claims while the object lives as memory of one sample. A claim beyond
// memory_limits().sample is refused, independently of other threads. A claim for which
// memory_limits().process has no room waits for theirs. One sample can always continue: the others leave room
// for it, at most half of the process's limit.
class SampleMemory {
 public:
  SampleMemory();
  ~SampleMemory();
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;

 private:
  friend base::Status claim_memory(std::uint64_t bytes, const char* what);
  std::uint64_t claimed_ = 0;
  std::uint64_t reserved_ = 0;  // of the process's limit, ahead of the claims: small samples ask once
  SampleMemory* outer_;
};

// Claims memory for the sample of this thread; without a sample it only compares this claim with the limit.
// kResourceExhausted, naming `what`.
base::Status claim_memory(std::uint64_t bytes, const char* what);

// The share of memory_limits().readers that one reader holds: samples in a shuffle buffer or on their way to
// a batch, the window of an unpacker. The destructor gives it back. Threads: any; one at a time
// for each object.
class ReaderMemory {
 public:
  ReaderMemory() = default;
  ~ReaderMemory() { shrink(held_); }
  ReaderMemory(const ReaderMemory&) = delete;
  ReaderMemory& operator=(const ReaderMemory&) = delete;
  // kResourceExhausted, without holding more, if all readers together would hold too much. Only then `what`
  // is called: it returns the beginning of the error's message.
  base::Status grow(std::uint64_t bytes, const std::function<std::string()>& what);
  void shrink(std::uint64_t bytes);
  void clear() { shrink(held_); }

 private:
  std::uint64_t held_ = 0;
};

// The error for a claim of more than memory_limits().sample: "WHAT: expected at most … for a sample", and
// what to do. kResourceExhausted.
tl::unexpected<Error> too_much_memory(const std::string& what);

// kResourceExhausted if an image of this size has more pixels than allowed.
base::Status check_pixels(std::int64_t width, std::int64_t height);

}  // namespace sluice::data
