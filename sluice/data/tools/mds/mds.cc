#include "sluice/data/tools/mds/mds.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "sluice/base/files/safe_join.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/data/decode/nested.h"

namespace sluice::data {
namespace {

using nlohmann::json;

constexpr int kVersion = 2;

// The error of a part of the index that is missing or has another type.
class IndexError {
 public:
  explicit IndexError(std::string what) : what_(std::move(what)) {}
  const std::string& what() const { return what_; }

 private:
  std::string what_;
};

const json& entry(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) throw IndexError(base::str("'", key, "' is missing"));
  return object[key];
}
std::string text(const json& object, const char* key) {
  const json& value = entry(object, key);
  if (!value.is_string()) throw IndexError(base::str("'", key, "' is not text"));
  return value.get<std::string>();
}
std::uint64_t number(const json& value, const char* key, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw IndexError(base::str("'", key, "' is not a number from 0 to ", most));
  return value.get<std::uint64_t>();
}
const json& list(const json& object, const char* key) {
  const json& value = entry(object, key);
  if (!value.is_array()) throw IndexError(base::str("'", key, "' is not a list"));
  return value;
}

std::optional<MdsFile> parse_file(const json& value) {
  if (value.is_null()) return std::nullopt;
  MdsFile file;
  file.name = text(value, "basename");
  // The name is joined to the folder, and must not leave it.
  if (!base::safe_join(".", file.name))
    throw IndexError(base::str("the file '", file.name, "' is outside of the set's folder"));
  file.bytes = number(entry(value, "bytes"), "bytes", std::numeric_limits<std::int64_t>::max());
  const json& hashes = entry(value, "hashes");
  if (!hashes.is_object()) throw IndexError("'hashes' is not an object");
  for (const auto& [kind, hash] : hashes.items()) file.hashes[kind] = text(hashes, kind.c_str());
  return file;
}

MdsShardFacts parse_shard(const json& value) {
  MdsShardFacts shard;
  const json &names = list(value, "column_names"), &encodings = list(value, "column_encodings"),
             &sizes = list(value, "column_sizes");
  if (names.empty() || names.size() != encodings.size() || names.size() != sizes.size())
    throw IndexError(base::str("it has ", names.size(), " columns, ", encodings.size(), " encodings and ",
                               sizes.size(), " sizes"));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string() || !encodings[i].is_string())
      throw IndexError("the name or the encoding of a column is not text");
    MdsColumn column{names[i].get<std::string>(), encodings[i].get<std::string>(), std::nullopt};
    // The package reads 0 as no size.
    const std::uint64_t size = sizes[i].is_null() ? 0 : number(sizes[i], "column_sizes", UINT32_MAX);
    if (size > 0) column.size = static_cast<std::uint32_t>(size);
    shard.columns.push_back(std::move(column));
  }
  if (const json& compression = entry(value, "compression"); !compression.is_null())
    shard.compression = text(value, "compression");
  auto raw = parse_file(entry(value, "raw_data"));
  if (!raw) throw IndexError("'raw_data' is missing");
  shard.raw = std::move(*raw);
  shard.packed = parse_file(entry(value, "zip_data"));
  shard.samples = static_cast<std::int64_t>(number(entry(value, "samples"), "samples", UINT32_MAX));
  return shard;
}

}  // namespace

base::Result<std::vector<MdsShardFacts>> parse_mds_index(std::string_view text_of_index) {
  if (const auto is_json = check_json(text_of_index); !is_json)
    return base::fail(Code::kDataLoss, "no index of MDS shards: ", is_json.error().what());
  const json index = base::parse_json(text_of_index);
  std::vector<MdsShardFacts> shards;
  try {
    if (index.is_discarded()) throw IndexError("it is not JSON");
    for (const json& shard : list(index, "shards")) {
      const std::string format = text(shard, "format");
      const json& version = entry(shard, "version");
      if (format != "mds" || version != kVersion)
        return base::fail(Code::kInvalidArgument, "shard ", shards.size(), " has the format '", format,
                          "' in version ", version.dump(), ": expected mds in version ", kVersion);
      shards.push_back(parse_shard(shard));
    }
    if (shards.empty()) throw IndexError("it lists no shards");
  } catch (const IndexError& error) {
    return base::fail(Code::kDataLoss, "no index of MDS shards: ",
                      shards.empty() ? std::string() : base::str("after shard ", shards.size() - 1, ", "),
                      error.what());
  }
  return shards;
}

std::uint32_t MdsShard::number(std::uint64_t at) const {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes_.data() + at, sizeof value);
  return value;
}

base::Result<MdsShard> MdsShard::parse(std::string bytes, std::vector<MdsColumn> columns,
                                       std::int64_t samples) {
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  MdsShard shard;
  shard.bytes_ = std::move(bytes);
  shard.columns_ = std::move(columns);
  const std::uint64_t size = shard.bytes_.size();
  if (size < kNumber) return base::fail(Code::kDataLoss, "it has ", size, " bytes, less than a header");
  shard.samples_ = shard.number(0);
  if (shard.samples_ != samples)
    return base::fail(Code::kDataLoss, "it has ", shard.samples_, " samples, and the index says ", samples);
  const std::uint64_t header = kNumber * (2 + static_cast<std::uint64_t>(samples));
  if (size < header)
    return base::fail(Code::kDataLoss, "it is cut off inside its header: ", size, " bytes of ", header);
  std::uint64_t before = header;
  for (std::uint64_t at = kNumber; at < header; at += kNumber) {
    const std::uint64_t begin = shard.number(at);
    if (begin < before || begin > size)
      return base::fail(Code::kDataLoss, "its header says that ",
                        at + kNumber < header ? base::str("sample ", at / kNumber - 1, " begins")
                                              : std::string("the last sample ends"),
                        " at byte ", begin, ": expected ", before, " to ", size,
                        ", where the file ends; it is cut off or damaged");
    before = begin;
  }
  return shard;
}

base::Result<std::vector<std::string_view>> MdsShard::sample(std::int64_t place) const {
  constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
  const std::uint64_t slot = kNumber * (1 + static_cast<std::uint64_t>(place));
  const std::uint64_t begin = number(slot), end = number(slot + kNumber);
  std::uint64_t sizes = begin, at = begin;
  for (const MdsColumn& column : columns_) at += column.size ? 0 : kNumber;
  std::vector<std::string_view> values;
  for (const MdsColumn& column : columns_) {
    if (at > end) break;
    std::uint64_t size = column.size.value_or(0);
    if (!column.size) {
      size = number(sizes);
      sizes += kNumber;
    }
    if (size > end - at)
      return base::fail(Code::kDataLoss, "sample ", place, ": its column '", column.name, "' has ", size,
                        " bytes, and ", end - at, " are left of the sample");
    values.emplace_back(bytes_.data() + at, size);
    at += size;
  }
  if (values.size() < columns_.size() || at != end)
    return base::fail(Code::kDataLoss, "sample ", place, " has ", end - begin,
                      " bytes, which its columns do not fill: does index.json describe this shard?");
  return values;
}

}  // namespace sluice::data
