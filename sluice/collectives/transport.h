// The communication between the processes of a run for collectives on the host.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/collectives/reduction.h"
#include "sluice/stablehlo/type.h"

namespace sluice::collectives {

// A range of host memory.
struct HostSpan {
  void* data;
  size_t elements;
};

// Every process makes the same calls in the same order. After an error the object is unusable: every later
// call fails too. Threads: one call at a time, from any thread; abort() also during a call.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns the bytes of every process, in the order of the processes; all give the same number of bytes.
  virtual base::Result<std::vector<std::string>> exchange(std::string_view bytes) = 0;
  // Combines the processes' spans: each span gets the same result in all processes.
  virtual base::Status all_reduce(std::span<const HostSpan> spans, stablehlo::DType dtype,
                                  Reduction reduction) = 0;
  // `all` has `bytes` bytes for each process, in their order. This process's part already holds its own
  // bytes; the call fills in the others.
  virtual base::Status all_gather(void* all, size_t bytes) = 0;
  // Ends this process's part: the other processes' calls fail with this reason as soon as they hear of it.
  virtual void abort(const std::string& reason) = 0;

 protected:
  // Does exchange() by all_gather(), for process `index` of `count`.
  base::Result<std::vector<std::string>> exchange_by_gather(std::string_view bytes, size_t index,
                                                            size_t count) {
    std::string all(bytes.size() * count, '\0');
    std::memcpy(&all[bytes.size() * index], bytes.data(), bytes.size());
    SLUICE_OK(all_gather(all.data(), bytes.size()));
    std::vector<std::string> parts;
    for (size_t p = 0; p < count; ++p) parts.push_back(all.substr(p * bytes.size(), bytes.size()));
    return parts;
  }
};

}  // namespace sluice::collectives
