// Packed shards: gzip and zstd, by their first bytes, are unpacked for at most 64 MiB and read as archives.
#include <vector>

#include "sluice/data/memory.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/source.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::data;
  memory_limits().sample = 32 << 20;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto unpacked = [&] {
    auto source = memory_source("input", bytes);
    return packing_of(bytes) == Packing::kZstd ? zstd_source(std::move(source))
                                               : gzip_source(std::move(source));
  };
  const auto source = unpacked();
  std::vector<char> piece(1 << 16);
  for (std::size_t seen = 0; seen < std::size_t{64} << 20;) {
    const auto got = source->read(piece.data(), piece.size());
    if (!got || *got == 0) break;
    sluice::fuzz::demand(*got <= piece.size(), "a read fits its memory");
    seen += *got;
  }
  ShardReader reader(unpacked(), {});
  RawSample sample;
  for (int samples = 0; samples < 1000; ++samples) {
    const auto found = reader.next(sample);
    if (!found || !*found) break;
  }
  return 0;
}
