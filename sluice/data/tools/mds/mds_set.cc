// Reading of MDS shards from their files.
#include <openssl/evp.h>

#include <algorithm>
#include <cctype>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/data/shards/remote_source.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/source.h"
#include "sluice/data/tools/mds/mds.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

// Returns the digest by hashlib's name; null if OpenSSL does not have it, such as xxh64.
const EVP_MD* digest_of(const std::string& kind) {
  if (kind == "blake2b") return EVP_get_digestbyname("blake2b512");
  if (kind == "blake2s") return EVP_get_digestbyname("blake2s256");
  std::string name = kind;
  std::replace(name.begin(), name.end(), '_', '-');  // sha3_256
  return EVP_get_digestbyname(name.c_str());
}

base::Status check_hashes(const std::string& bytes, const MdsFile& file) {
  for (const auto& [kind, expected] : file.hashes) {
    const EVP_MD* const digest = digest_of(kind);
    if (digest == nullptr) continue;
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), hash, &length, digest, nullptr) != 1)
      return base::fail(Code::kInternal, "this OpenSSL computes no ", kind, " sums (a FIPS mode?)");
    const std::string found = base::hexadecimal({reinterpret_cast<const char*>(hash), length});
    if (found != expected)
      return base::fail(Code::kDataLoss, "its ", kind, " sum is ", found, ", and index.json says ", expected,
                        ": it is damaged, or of another set");
  }
  return {};
}

// Reads all of a source that should have `bytes` bytes.
base::Result<std::string> read_all(Source& source, std::uint64_t bytes) {
  std::string all;
  while (true) {
    const std::size_t before = all.size();
    all.resize(before + kPiece);
    SLUICE_TRY(const std::size_t got, source.read(all.data() + before, kPiece));
    all.resize(before + got);
    if (got > 0 && all.size() <= bytes) continue;
    if (all.size() == bytes) return all;
    return base::fail(Code::kDataLoss, "it has ", got > 0 ? "more than " : "", got > 0 ? bytes : all.size(),
                      " bytes, and index.json says ", bytes, ": it is cut off, or of another set");
  }
}

base::Result<std::string> read_file_of(const std::string& path, const MdsFile& file) {
  SLUICE_TRY(auto source, open_stored_source(path));
  SLUICE_TRY(std::string bytes, read_all(*source, file.bytes));
  SLUICE_OK(check_hashes(bytes, file));
  return bytes;
}

}  // namespace

base::Result<MdsSet> MdsSet::open(const std::string& folder) {
  MdsSet set;
  set.folder_ = folder;
  constexpr std::string_view kIndex = "index.json";
  if (base::ends_with(folder, kIndex)) set.folder_ = base::parent_path(folder);
  const std::string path = base::join_path(set.folder_, kIndex);
  SLUICE_TRY(auto text, read_text(path));
  if (!text)
    return base::fail(Code::kNotFound, path,
                      " is missing: expected the folder of a set of MosaicML's Streaming, which may be a "
                      "part such as train within another one");
  auto shards = parse_mds_index(*text);
  if (!shards) return base::fail_at(shards, path);
  set.index_ = std::move(*text);
  set.shards_ = std::move(*shards);
  for (const MdsShardFacts& shard : set.shards_) {
    if (shard.columns != set.columns())
      return base::fail(Code::kInvalidArgument, path, ": the columns of ", shard.raw.name,
                        " differ from the columns of ", set.shards_.front().raw.name);
    set.samples_ += shard.samples;
  }
  return set;
}

std::string MdsSet::name(std::size_t shard) const {
  return base::join_path(folder_, shards_[shard].raw.name);
}

base::Result<std::string> MdsSet::read_bytes(const MdsShardFacts& facts) const {
  const std::string raw = base::join_path(folder_, facts.raw.name);
  // The MDS package leaves an unpacked shard next to a packed one that it has read; such a file is used.
  if (!facts.packed || (!is_on_network(raw) && base::path_exists(raw))) return read_file_of(raw, facts.raw);
  const std::string kind = facts.compression.substr(0, facts.compression.find(':'));
  if (kind != "zstd" && kind != "gz")
    return base::fail(Code::kInvalidArgument, "it is packed with ", facts.compression,
                      ": expected zstd or gz; unpack it to ", facts.raw.name);
  const std::string path = base::join_path(folder_, facts.packed->name);
  SLUICE_TRY(std::string bytes, read_file_of(path, *facts.packed));
  const Packing packing = packing_of(std::string_view(bytes).substr(0, 10));
  if (packing != (kind == "zstd" ? Packing::kZstd : Packing::kGzip))
    return base::fail(Code::kDataLoss, facts.packed->name, " does not begin as ", kind, " does");
  auto packed = memory_source(path, std::move(bytes));
  const auto source = kind == "zstd" ? zstd_source(std::move(packed)) : gzip_source(std::move(packed));
  SLUICE_TRY(std::string unpacked, read_all(*source, facts.raw.bytes));
  SLUICE_OK(check_hashes(unpacked, facts.raw));
  return unpacked;
}

base::Result<std::shared_ptr<const MdsShard>> MdsSet::read(std::size_t shard) const {
  const MdsShardFacts& facts = shards_[shard];
  auto bytes = read_bytes(facts);
  if (!bytes) return base::fail_at(bytes, name(shard));
  auto parsed = MdsShard::parse(std::move(*bytes), facts.columns, facts.samples);
  if (!parsed) return base::fail_at(parsed, name(shard));
  return std::make_shared<const MdsShard>(std::move(*parsed));
}

std::set<std::string> MdsSet::unknown_hashes() const {
  std::set<std::string> unknown;
  for (const MdsShardFacts& shard : shards_)
    for (const auto& [kind, hash] : shard.raw.hashes)
      if (digest_of(kind) == nullptr) unknown.insert(kind);
  return unknown;
}

}  // namespace sluice::data
