// IDX files.
#include <string_view>

#include "sluice/data/tools/idx.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  if (const auto array = data::parse_idx({reinterpret_cast<const char*>(data), size}))
    fuzz::demand(array->bytes() <= size, "an array is a part of its file");
  return 0;
}
