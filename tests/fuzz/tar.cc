// Archives: every member is read; what is read lies inside the input. Checksums of headers are put right
// first, in every second pass, so that mutations get behind them.
#include <cstring>

#include "sluice/data/shards/group.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/shards/tar.h"
#include "tests/fuzz/demand.h"

namespace {

void put_checksums_right(std::string& archive) {
  for (std::size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive.compare(at + 257, 5, "ustar") != 0) continue;
    std::memset(archive.data() + at + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(archive[at + i]);
    std::snprintf(archive.data() + at + 148, 7, "%06o", sum);
  }
}

void read_all(const std::string& archive) {
  using namespace sluice;
  data::TarReader tar(data::memory_source("input", archive));
  data::Member member;
  std::string payload;
  std::uint64_t bytes = 0;
  while (true) {
    const auto found = tar.next(member);
    if (!found || !*found) break;
    if (member.size > archive.size()) continue;  // passing over it must fail by itself
    if (!tar.read_payload(payload)) break;
    fuzz::demand(payload.size() == member.size, "a payload has its member's size");
    bytes += payload.size();
  }
  fuzz::demand(bytes <= archive.size(), "payloads are parts of the archive");
  data::ShardReader reader(data::memory_source("input", archive), {});
  data::RawSample sample;
  while (true) {
    const auto found = reader.next(sample);
    if (!found || !*found) break;
    fuzz::demand(!sample.key.empty() && !sample.fields.empty(), "a sample has a key and members");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string archive(reinterpret_cast<const char*>(data), size);
  read_all(archive);
  put_checksums_right(archive);
  read_all(archive);
  return 0;
}
