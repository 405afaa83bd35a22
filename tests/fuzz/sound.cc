// FLAC and WAV: a file may be refused, under a small budget, but must not fail otherwise.
#include <string_view>

#include "sluice/data/decode/audio.h"
#include "sluice/data/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::data;
  memory_limits().sample = 4 << 20;
  const SampleMemory memory;
  static_cast<void>(decode_sound({reinterpret_cast<const char*>(data), size}));
  return 0;
}
