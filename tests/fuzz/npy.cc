// npy and npz.
#include <string_view>

#include "sluice/data/decode/npy.h"
#include "sluice/data/decode/npz.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  if (const auto array = data::parse_npy(file))
    fuzz::demand(array->bytes() <= size, "an array is a part of its file");
  static_cast<void>(data::parse_npz(file));
  return 0;
}
