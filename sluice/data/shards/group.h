// Grouping: the members of a shard become samples, by WebDataset's rules.
//
// A member's name is split at the first dot after its last slash: the key is before it, the extension (in
// lower case) after it. Adjacent members with the same key are one sample. Left out are folders, links, names
// without a dot or with an empty key (".hidden"), AppleDouble files of macOS ("._name"), and names that begin
// with a `__…__` part. The same extension twice in a sample is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/data/shards/tar.h"

namespace sluice::data {

struct SplitName {
  std::string_view key, extension;  // the extension as written
};
// Whether a name is like "a/._0001.jpg", which macOS's tar and zip write next to a file with attributes.
bool is_apple_double(std::string_view name);
// Splits a name; returns nothing for names that readers leave out.
std::optional<SplitName> split_name(std::string_view name);

struct Field {
  std::string extension;      // in lower case
  std::string bytes;          // empty when the payload was not wanted
  std::string member;         // the name in the archive
  std::uint64_t offset = 0;   // position of the member's header
  std::uint64_t payload = 0;  // position of the payload's first byte
  std::uint64_t size = 0;     // bytes of payload
};

// A sample as stored in a shard.
struct RawSample {
  std::string key;
  std::shared_ptr<const std::string> shard;
  std::vector<Field> fields;
  std::int64_t length = 0;  // where ShardFacts has it
  // In a mixture: the index of its source, and the pass through the source, which its random draws depend on.
  int source = 0;
  std::optional<std::int64_t> epoch;
  // Set if the sample could not be read and the policy is to continue (then it has only a shard), or if it is
  // larger than memory.h allows (then the rest of its shard can be read).
  std::shared_ptr<const Error> failed;

  const Field* find(std::string_view extension) const;
  std::uint64_t bytes() const;
  // Returns "train-0003.tar: sample 0000012 (at byte 51200)", for errors.
  std::string where() const;
};

// The extensions of one sample. A few are compared one by one; many are looked up in a table.
class ExtensionSet {
 public:
  // Returns the field of `sample` that already has the extension; otherwise returns nothing and records the
  // extension for the field that is added next.
  const Field* add(const RawSample& sample, const std::string& extension);
  void clear() { places_.clear(); }

 private:
  std::unordered_map<std::string, std::size_t> places_;  // empty while there are few
};

// The limit of a sample's members: a shard in which all members have one key is a mistake.
constexpr std::size_t kMaxMembers = 100'000;

// Returns the offset in the archive after the padding of the sample's last member.
std::uint64_t end_of(const RawSample& sample);

// The payloads to keep; the others are passed over.
struct Wanted {
  bool all = true;
  std::set<std::string, std::less<>> extensions;  // in lower case; used when `all` is false
};

// Threads: one at a time.
class ShardReader {
 public:
  // `members`: the largest number of members of the samples before the part, if that is known.
  ShardReader(std::unique_ptr<Source> source, Wanted wanted, ArchivePart part = {}, std::size_t members = 0);
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  // Reads the next sample; false at the shard's end. With `with_payloads` false, all payloads are passed
  // over. If the archive is damaged after a whole sample, this sample is returned first, and the error by the
  // next call. A sample is whole if it reaches `end`, where its last member's padding ends. If that is not
  // known (0), it is whole with at least the number of members of the samples before it; a shard's first
  // sample then is not.
  base::Result<bool> next(RawSample& sample, bool with_payloads = true, std::uint64_t end = 0);
  std::uint64_t offset() const { return tar_.offset(); }
  // Returns the largest number of members of a sample so far.
  std::size_t members_so_far() const { return last_fields_; }

 private:
  TarReader tar_;
  Wanted wanted_;
  std::shared_ptr<const std::string> shard_;
  Member ahead_;          // the first member of the next sample, if has_ahead_
  SplitName ahead_name_;  // within ahead_
  bool has_ahead_ = false, ended_ = false;
  std::size_t last_fields_ = 0;  // the largest number of members of a sample so far
  ExtensionSet extensions_;      // of the sample that is being read
  std::uint64_t held_ = 0;       // bytes of this sample's payloads
  std::optional<Error> later_;   // the error that was found after the last sample

  bool is_whole(const RawSample& sample, std::uint64_t end) const;
  base::Result<bool> next_member();
  base::Status add(RawSample& sample, bool with_payload);
  base::Status read_payload(Field& field, RawSample& sample);
};

}  // namespace sluice::data
