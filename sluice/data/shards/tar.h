// tar archives, read once from front to back: ustar, GNU and PAX.
//
// Stricter than most readers, because a shard that ends early must not pass for a short one:
// - the checksum of every header is verified;
// - the archive must end with two blocks of zeros, and only zeros may follow; their number does not matter,
// so
//   a file cut off inside this last padding is accepted: nothing of it is lost;
// - sparse members and parts of multi-volume archives are refused.
// Errors are kDataLoss (kUnimplemented for the refused kinds) and name shard, member and offset. Offsets
// count from the archive's start, after unpacking.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/data/shards/source.h"

namespace sluice::data {

constexpr std::size_t kTarBlock = 512;  // bytes; of these an archive is made
// With the padding behind a payload.
constexpr std::uint64_t tar_padded(std::uint64_t size) {
  return (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

enum class MemberKind { kFile, kFolder, kLink, kOther };

struct Member {
  std::string name;  // as stored: "./a" stays "./a"
  MemberKind kind = MemberKind::kFile;
  std::uint64_t offset = 0;  // of its first header, long-name headers included
  std::uint64_t size = 0;    // bytes of payload
  std::string link;          // target of a link
};

// Which bytes of an archive a source has.
struct ArchivePart {
  std::uint64_t begin = 0;  // the archive's byte that comes first; a header begins there
  bool ends_early = false;  // the source may end where a header would begin, without the two blocks of zeros
};

// Threads: one at a time.
class TarReader {
 public:
  explicit TarReader(std::unique_ptr<Source> source, ArchivePart part = {});

  // Goes on to the next member (its payload need not have been read); false at the end of the archive. After
  // an error the reader is of no further use.
  base::Result<bool> next(Member& member);
  // The payload of the member that next() gave; once. kResourceExhausted where it is larger than a sample may
  // be, or memory is short: the archive can be read on.
  base::Status read_payload(std::string& payload);
  // Whether no byte is missing of the payload of the member that next() gave last: also after an error of
  // next().
  bool payload_was_there() const { return payload_left_ == 0; }

  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return source_->name(); }

 private:
  struct Header;
  // What PAX records say of a member, as far as a reader of shards has to know it.
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
  std::vector<char> buffer_;
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t offset_ = 0;        // of the next byte that view() and fill() give
  std::uint64_t payload_left_ = 0;  // of the current member
  std::uint64_t padding_ = 0;       // after it
  Member current_;                  // only what errors need: name, offset, size
  std::string extension_;           // an extended header's payload that is larger than the buffer
  Records local_, global_;          // of the next member, and of all from here on
  ArchivePart part_;
};

}  // namespace sluice::data
