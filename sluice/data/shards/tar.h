// tar archives, read once from front to back: ustar, GNU and PAX.
//
// This reader is stricter than most, because a shard that ends early must not pass for a short one:
// - the checksum of every header is verified;
// - the archive must end with two blocks of zeros, and only zeros may follow; their number does not matter,
//   so a file cut off inside this last padding is accepted: nothing of it is lost;
// - sparse members and parts of multi-volume archives are refused.
// Errors are kDataLoss (kUnimplemented for the refused kinds) and name shard, member and offset. Offsets
// count from the archive's start, after unpacking.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/data/shards/open_files.h"
#include "sluice/data/shards/source.h"

namespace sluice::data {

constexpr std::size_t kTarBlock = 512;  // the size of an archive's blocks in bytes
// Returns a payload's size with the padding after it.
constexpr std::uint64_t tar_padded(std::uint64_t size) {
  return (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

enum class MemberKind { kFile, kFolder, kLink, kOther };

struct Member {
  std::string name;  // as stored: "./a" stays "./a"
  MemberKind kind = MemberKind::kFile;
  std::uint64_t offset = 0;  // position of its first header, long-name headers included
  std::uint64_t size = 0;    // bytes of payload
  std::string link;          // target of a link
};

// The bytes of an archive that a source has.
struct ArchivePart {
  std::uint64_t begin = 0;  // the archive's offset of the source's first byte; a header begins there
  bool ends_early = false;  // the source may end where a header would begin, without the two blocks of zeros
};

// Threads: one at a time.
class TarReader {
 public:
  explicit TarReader(std::unique_ptr<Source> source, ArchivePart part = {});

  // Continues to the next member (its payload need not have been read); false at the end of the archive.
  // After an error the reader cannot be used any more.
  base::Result<bool> next(Member& member);
  // Reads the payload of the member that next() gave, once. kResourceExhausted if it is larger than a sample
  // may be, or memory is short: the rest of the archive can still be read.
  base::Status read_payload(std::string& payload);
  // Whether the payload of the member that next() gave last is complete; also valid after an error of next().
  bool payload_was_there() const { return payload_left_ == 0; }

  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return source_->name(); }

 private:
  struct Header;
  // The fields of a member's PAX records that a reader of shards needs.
  struct Records {
    std::optional<std::string> path, link, size;
    bool is_sparse = false;
    void clear() {
      for (auto* record : {&path, &link, &size}) record->reset();
      is_sparse = false;
    }
  };

  base::Result<std::string_view> view(std::size_t size);
  base::Result<std::size_t> fill(void* bytes, std::size_t size);
  base::Result<std::uint64_t> pass_over(std::uint64_t size);
  base::Status finish_member();
  base::Result<bool> read_header(Header& header);
  std::string after() const;
  base::Status check_end();
  base::Result<std::string_view> read_extension(std::uint64_t size, std::uint64_t offset);
  base::Status parse_records(std::string_view text, Records& records) const;
  base::Status apply_records(const Header& header, Member& member) const;
  base::Status classify(const Header& header, Member& member) const;
  template <typename... Pieces>
  tl::unexpected<Error> broken(const Pieces&... cause) const;

  std::unique_ptr<Source> source_;
  ReadBuffer buffer_;
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t offset_ = 0;        // of the next byte that view() and fill() give
  std::uint64_t payload_left_ = 0;  // bytes of the current member
  std::uint64_t padding_ = 0;       // bytes after this payload
  Member current_;                  // for errors only: name, offset, size
  std::string extension_;           // the payload of an extended header that is larger than the buffer
  Records local_, global_;          // for the next member, and for all that follow
  ArchivePart part_;
};

}  // namespace sluice::data
