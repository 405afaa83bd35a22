// LibTorch's Gloo between processes of one machine, as a yardstick.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sluice/collectives/transport.h"

namespace sluice::bench {

class GlooAlone {
 public:
  GlooAlone(int index, int count, uint16_t port);
  ~GlooAlone();
  // Of 32-bit floats: the small ones in buckets of 25 MB, as LibTorch's own data-parallel training has them.
  void sum(std::span<const collectives::HostSpan> spans);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bench
