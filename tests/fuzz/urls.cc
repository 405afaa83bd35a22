// Lists of shards: braces are expanded or refused. Files are not looked for.
#include <algorithm>

#include "sluice/data/shards/urls.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  std::string text(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 200));
  // Long ranges are refused above 10 million, which takes its time below: keep the numbers short.
  int digits = 0;
  std::erase_if(text, [&](char c) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    return digits > 2;
  });
  if (std::count(text.begin(), text.end(), '{') > 2) return 0;
  const auto strings = data::expand_braces(text);
  if (strings) fuzz::demand(!strings->empty(), "a pattern stands for one string at least");
  return 0;
}
