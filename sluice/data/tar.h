// tar archives, read once from front to back: ustar, GNU and PAX.
//
// Stricter than most readers, because a shard that ends early must not pass for a short one:
// - the checksum of every header is verified;
// - the archive must end with two blocks of zeros, and only zeros may follow (their number does not matter,
// so a file
//   cut off inside this last padding is accepted: nothing of it is lost);
// - sparse members and parts of multi-volume archives are refused.
// Errors are kDataLoss (kUnimplemented for the refused kinds) and name shard, member and offset. Offsets
// count from the archive's start, after unpacking.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/data/source.h"

namespace sluice::data {

enum class MemberKind { kFile, kFolder, kLink, kOther };

struct Member {
  std::string name;  // as stored: "./a" stays "./a"
  MemberKind kind = MemberKind::kFile;
  std::uint64_t offset = 0;  // of its first header, long-name headers included
  std::uint64_t size = 0;    // bytes of payload
  std::string link;          // target of a link
};

// Threads: one at a time.
class TarReader {
 public:
  explicit TarReader(std::unique_ptr<Source> source);

  // Goes on to the next member (its payload need not have been read); false at the end of the archive. After
  // an error the reader is of no further use.
  base::Result<bool> next(Member& member);
  // The payload of the member that next() gave; once.
  base::Status read_payload(std::string& payload);

  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return source_->name(); }

 private:
  struct Header;
  using Records = std::map<std::string, std::string>;

  base::Result<std::size_t> fill(void* bytes, std::size_t size);
  base::Result<std::uint64_t> pass_over(std::uint64_t size);
  base::Status finish_member();
  base::Result<bool> read_header(Header& header);
  base::Status check_end();
  base::Status read_extension(const Header& header, std::string& text);
  base::Status parse_records(const std::string& text, Records& records) const;
  base::Status apply_records(const Header& header, const Records& local, Member& member) const;
  base::Status classify(const Header& header, Member& member) const;
  template <typename... Pieces>
  tl::unexpected<Error> broken(const Pieces&... cause) const;

  std::unique_ptr<Source> source_;
  std::vector<char> buffer_;
  std::size_t used_ = 0, have_ = 0;
  std::uint64_t offset_ = 0;        // of the next byte that fill() gives
  std::uint64_t payload_left_ = 0;  // of the current member
  std::uint64_t padding_ = 0;       // after it
  Member current_;
  Records global_;
};

}  // namespace sluice::data
