// Appending to a block blob: its blocks are kept, and a new list of blocks is committed.
#include <algorithm>
#include <random>

#include "sluice/base/formats/base64.h"
#include "sluice/base/text/number.h"
#include "sluice/cloud/checksum.h"
#include "sluice/cloud/stores/azure.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

constexpr std::uint64_t kLargeBlock = 8 << 20;  // a block of this size stays as it is
constexpr std::uint64_t kBlockBytes = 16 << 20;
constexpr std::size_t kSmallBlocks = 128;  // more of them are joined; a blob may have 50,000 blocks
constexpr std::size_t kIdBytes = 9;        // all ids of a blob have one length; BlockUpload's have this one

struct Block {
  std::string id;  // in base64
  std::uint64_t size = 0;
};

struct Blocks {
  std::vector<Block> all;
  std::string tag;  // the blob's ETag
};

base::Result<Blocks> committed_blocks(const Azure& store, const ObjectName& name) {
  const std::string what = "the blocks of " + name.url();
  SLUICE_TRY(const auto response, store.expect_ok(name, "comp=blocklist&blocklisttype=committed", {}, what));
  SLUICE_TRY(const auto xml, parse_xml(response.body, "BlockList", what));
  Blocks blocks{{}, response.header("etag").value_or("")};
  for (const auto node : xml.child("BlockList").child("CommittedBlocks").children("Block")) {
    const auto size = base::number_of<std::uint64_t>(node.child_value("Size"));
    std::string id = node.child_value("Name");
    if (!size || !base::bytes_of_base64(id))
      return base::fail(Code::kUnknown, what, ": the server lists '", id, "' with the size '",
                        node.child_value("Size"), "': expected base64 and a number");
    blocks.all.push_back({std::move(id), *size});
  }
  return blocks;
}

// Returns the number of the first blocks that stay as they are. When there are too many small ones, the last
// ones are joined as long as the block before is no larger than those after it: a byte is then sent again
// only into a block at least twice as large as its last.
std::size_t kept_blocks(const std::vector<Block>& blocks, std::uint64_t appended) {
  const auto small = std::count_if(blocks.begin(), blocks.end(),
                                   [](const Block& block) { return block.size < kLargeBlock; });
  std::size_t kept = blocks.size();
  if (static_cast<std::size_t>(small) < kSmallBlocks) return kept;
  std::uint64_t joined = appended;
  while (kept > 0 && blocks[kept - 1].size < kLargeBlock && blocks[kept - 1].size <= joined)
    joined += blocks[--kept].size;
  return kept;
}

std::string random_id() {
  std::random_device random;
  std::string bytes(kIdBytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return base::base64(bytes);
}

base::Result<std::string> put_block(const Azure& store, const ObjectName& name, const std::string& bytes) {
  const std::string id = random_id();
  Digest digest(ChecksumKind::kMd5);
  digest.add(bytes.data(), bytes.size());
  HttpRequest request;
  request.method = "PUT";
  request.body = bytes;
  request.headers = {"Content-MD5: " + base::base64(digest.bytes()),
                     "Content-Type: application/octet-stream"};
  request.stall_timeout = kUploadPatience;
  SLUICE_TRY([[maybe_unused]] const auto response,
             store.expect_ok(name, "comp=block&blockid=" + percent_encode(id), std::move(request),
                             "appending to " + name.url()));
  return id;
}

std::string block_list(const std::vector<Block>& blocks, std::size_t kept,
                       const std::vector<std::string>& added) {
  std::string body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  for (std::size_t i = 0; i < kept; ++i) body += "<Committed>" + blocks[i].id + "</Committed>";
  for (const std::string& id : added) body += "<Uncommitted>" + id + "</Uncommitted>";
  return body + "</BlockList>";
}

}  // namespace

base::Result<ObjectFacts> Azure::append(const std::string& path, std::uint64_t size, const ObjectName& name,
                                        const ObjectFacts& old) const {
  SLUICE_TRY(const Blocks blocks, committed_blocks(*this, name));
  std::uint64_t held = 0;
  for (const Block& block : blocks.all) held += block.size;
  const std::string what = "appending to " + name.url();
  if (blocks.tag != old.generation)
    return base::fail(Code::kFailedPrecondition, what, ": the blob has the ETag ", blocks.tag, ", expected ",
                      old.generation);
  if (held != old.size)
    return base::fail(Code::kUnimplemented, what, ": ", held, " of its ", old.size,
                      " bytes are in blocks: replace it by a blob of blocks");
  const std::size_t kept = kept_blocks(blocks.all, size - old.size);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < kept; ++i) at += blocks.all[i].size;
  std::vector<std::string> added;
  while (at < size) {
    SLUICE_TRY(const std::string piece, read_part(path, at, std::min(size, at + kBlockBytes)));
    SLUICE_TRY(std::string id, put_block(*this, name, piece));
    added.push_back(std::move(id));
    at += piece.size();
  }
  const std::string body = block_list(blocks.all, kept, added);
  HttpRequest request;
  request.method = "PUT";
  request.body = body;
  request.headers = {"If-Match: " + old.generation, "Content-Type: application/octet-stream"};
  request.stall_timeout = kUploadPatience;
  const auto response = expect_ok(name, "comp=blocklist", std::move(request), what);
  if (response) return ObjectFacts{name.object, size, response->header("etag").value_or(""), std::nullopt};
  // The list may have been committed although the request failed: the answer was lost, the repetition
  // refused.
  if (response.error().code() == Code::kFailedPrecondition) {
    const auto now = committed_blocks(*this, name);
    if (now && !now->all.empty() && !added.empty() && now->all.back().id == added.back())
      return ObjectFacts{name.object, size, now->tag, std::nullopt};
  }
  return tl::unexpected<Error>(response.error());
}

}  // namespace sluice::cloud
