// How much memory may be claimed by what is read. A file of some bytes can ask for any number of them: packed
// text, an image's header, an array's shape. So whoever makes room by a number that stands in a file claims
// it here first.
#pragma once

#include <cstdint>

#include "sluice/base/result.h"

namespace sluice::data {

struct MemoryLimits {
  std::uint64_t sample = std::uint64_t{1}
                         << 30;  // bytes that one sample's decoding claims, or its members hold
  std::uint64_t process = std::uint64_t{4} << 30;  // that all samples in work claim: more of them wait
  std::int64_t pixels = 100'000'000;               // of one image
};

// Of this process. Changed before threads read.
MemoryLimits& memory_limits();

// While it lives, what this thread claims counts for one sample. A claim beyond memory_limits().sample is
// refused, whatever other threads do; one beyond memory_limits().process waits for theirs (but one sample may
// always go on).
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

// Whether an image may be so large. kResourceExhausted.
base::Status check_pixels(std::int64_t width, std::int64_t height);

}  // namespace sluice::data
