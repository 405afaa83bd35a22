// Index files and sizes.json.
#include <string_view>

#include "sluice/data/shards/shard_index.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::data;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto index = parse_index(text, "input"))
    sluice::fuzz::demand(index->starts().size() == index->samples.size(), "each sample has a place");
  static_cast<void>(parse_sizes(text, "input"));
  return 0;
}
