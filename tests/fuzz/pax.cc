// The records of a PAX header, in an archive that is sound around them.
#include <cstdio>
#include <cstring>

#include "sluice/data/shards/tar.h"
#include "sluice/data/shards/tar_writer.h"
#include "tests/fuzz/demand.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string records(reinterpret_cast<const char*>(data), size);
  std::string header = data::tar_member("pax", records);
  header[156] = 'x';  // the type
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(header[i]);
  std::snprintf(header.data() + 148, 7, "%06o", sum);
  std::string archive = header + data::tar_member("a.txt", "payload") + data::tar_member("b.txt", "x");
  archive += data::tar_end(archive.size());
  data::TarReader tar(data::memory_source("input", archive));
  data::Member member;
  std::string payload;
  for (int members = 0;; ++members) {
    fuzz::demand(members < 100, "the reader ends");
    const auto found = tar.next(member);
    if (!found || !*found) return 0;
    if (member.size <= archive.size() && !tar.read_payload(payload)) return 0;
  }
}
