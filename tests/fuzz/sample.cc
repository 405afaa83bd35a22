// Samples: the first byte chooses the extension, the rest is its member. A decoder may refuse it, under a
// small budget, but must not fail otherwise.
#include <string_view>

#include "sluice/data/decode/decode.h"
#include "sluice/data/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::data;
  static constexpr const char* kExtensions[] = {"mp",      "cbor",   "json",   "npz",   "npy",  "txt.gz",
                                                "json.gz", "npy.gz", "png.gz", "pnm",   "webp", "jpg",
                                                "png",     "cls",    "txt",    "mp.gz", "wav",  "gif"};
  if (size == 0) return 0;
  memory_limits().sample = 32 << 20;
  memory_limits().pixels = 1 << 20;
  const char* const extension = kExtensions[data[0] % std::size(kExtensions)];
  RawSample raw;
  raw.key = "k";
  raw.shard = std::make_shared<const std::string>("input");
  raw.fields.push_back(
      {extension, std::string(reinterpret_cast<const char*>(data) + 1, size - 1), "k", 0, 0, size - 1});
  DecodePlan plan;
  plan.spec = ImageSpec{};
  plan.fields = {{{extension}, FieldKind::kAny}};
  static_cast<void>(decode_sample(raw, plan));
  return 0;
}
