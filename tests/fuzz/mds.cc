// MDS: an index (which begins with a brace), a shard (behind a zero) with columns of both kinds, or a value
// (behind the number of its encoding).
#include <array>
#include <string>
#include <string_view>

#include "sluice/data/tools/mds/mds.h"
#include "sluice/data/tools/mds/mds_values.h"
#include "tests/fuzz/demand.h"

namespace {

using namespace sluice;

constexpr std::array kEncodings = {"bytes",   "str_int",   "json",           "int",
                                   "float16", "ndarray",   "ndarray:uint16", "ndarray:uint64:2,3",
                                   "pil",     "list[pil]", "jpegarray",      "list[png]"};

// PNG files of few pixels and npy headers are larger than what they are made of.
constexpr std::size_t kOverhead = 512;

void read_value(const std::string& encoding_text, std::string_view value) {
  const auto encoding = data::parse_mds_encoding(encoding_text);
  fuzz::demand(encoding.has_value(), "the encoding is known");
  std::size_t total = 0, members = 0;
  if (const auto read = data::mds_members(*encoding, value))
    for (const data::MdsMember& member : *read) {
      total += member.payload.size();
      ++members;
    }
  fuzz::demand(total <= 16 * value.size() + kOverhead * (members + 1), "members are made of their value");
  if (const auto ids = data::mds_ids(*encoding, "int16", value))
    fuzz::demand(ids->size() <= value.size(), "an id is some bytes");
}

void read_shard(std::string_view bytes) {
  const std::vector<data::MdsColumn> columns = {
      {"ids", "ndarray:uint16", std::nullopt}, {"number", "int", 8}, {"text", "str", std::nullopt}};
  for (std::int64_t samples = 0; samples < 4; ++samples) {
    const auto shard = data::MdsShard::parse(std::string(bytes), columns, samples);
    if (!shard) continue;
    std::size_t total = 0;
    for (std::int64_t i = 0; i < samples; ++i)
      if (const auto values = shard->sample(i)) {
        fuzz::demand(values->size() == columns.size(), "a sample has all columns");
        for (const std::string_view value : *values) total += value.size();
      }
    fuzz::demand(total <= bytes.size(), "values are parts of their shard");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  if (bytes.front() == '{') {
    if (const auto shards = data::parse_mds_index(bytes))
      for (const data::MdsShardFacts& shard : *shards)
        for (const data::MdsColumn& column : shard.columns)
          if (const auto encoding = data::parse_mds_encoding(column.encoding)) (void)encoding->size();
  } else if (bytes.front() == 0) {
    read_shard(bytes.substr(1));
  } else {
    read_value(kEncodings[static_cast<unsigned char>(bytes.front()) % kEncodings.size()], bytes.substr(1));
  }
  return 0;
}
