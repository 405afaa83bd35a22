// Grouping: the members of a shard become samples, by WebDataset's rules.
//
// A member's name is split at the first dot after its last slash: the key before it, the extension (in lower
// case) after it. Members that follow each other with the same key are one sample. Left out are folders,
// links, names without a dot or with an empty key (".hidden"), AppleDouble files of macOS ("._name"), and
// names that begin with a `__…__` part. Twice the same extension in a sample is an error.
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
// "a/._0001.jpg": what macOS's tar and zip write beside a file with attributes.
bool is_apple_double(std::string_view name);
// Nothing for names that readers leave out.
std::optional<SplitName> split_name(std::string_view name);

std::string lower_case(std::string_view text);  // of ASCII letters

struct Field {
  std::string extension;      // in lower case
  std::string bytes;          // empty when the payload was not wanted
  std::string member;         // the name in the archive
  std::uint64_t offset = 0;   // of the member's header
  std::uint64_t payload = 0;  // where the payload begins
  std::uint64_t size = 0;     // of the payload
};

// A sample as it stands in a shard.
struct RawSample {
  std::string key;
  std::shared_ptr<const std::string> shard;
  std::vector<Field> fields;
  std::int64_t length = 0;  // where ShardFacts has it
  // In a mixture: the place of its source among all, and the pass through it, for which its draws are made.
  int source = 0;
  std::optional<std::int64_t> epoch;
  // Set when the sample could not be read and the policy is to go on (it has a shard then, and nothing else),
  // and when it is larger than memory.h allows: then its shard can be read on.
  std::shared_ptr<const Error> failed;

  const Field* find(std::string_view extension) const;
  std::uint64_t bytes() const;
  // "train-0003.tar: sample 0000012 (at byte 51200)", for errors.
  std::string where() const;
};

// The extensions of one sample. Few of them are compared with each other, many are looked up.
class ExtensionSet {
 public:
  // The field of `sample` that has the extension already, or nothing; then it is noted as that of the next
  // one.
  const Field* add(const RawSample& sample, const std::string& extension);
  void clear() { places_.clear(); }

 private:
  std::unordered_map<std::string, std::size_t> places_;  // empty while there are few
};

// No sample has more members: a shard in which all members have one key is a mistake.
constexpr std::size_t kMaxMembers = 100'000;

// Where the padding of its last member ends in the archive.
std::uint64_t end_of(const RawSample& sample);

// Which payloads to keep; the others are passed over.
struct Wanted {
  bool all = true;
  std::set<std::string, std::less<>> extensions;  // in lower case; used when `all` is false
};

// Threads: one at a time.
class ShardReader {
 public:
  ShardReader(std::unique_ptr<Source> source, Wanted wanted, ArchivePart part = {});
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  // The next sample; false at the shard's end. With `with_payloads` false, all payloads are passed over.
  // Where the archive is damaged after a whole sample, the sample comes first, and the error with the next
  // call. Whole is one that reaches `end`, where its last member's padding ends; where that is not known (0),
  // one that has as many members as those before it. So a shard's first sample is whole only if its end is
  // known.
  base::Result<bool> next(RawSample& sample, bool with_payloads = true, std::uint64_t end = 0);
  std::uint64_t offset() const { return tar_.offset(); }

 private:
  TarReader tar_;
  Wanted wanted_;
  std::shared_ptr<const std::string> shard_;
  Member ahead_;          // the first member of the next sample, if has_ahead_
  SplitName ahead_name_;  // within ahead_
  bool has_ahead_ = false, ended_ = false;
  std::size_t last_fields_ = 0;  // the most that a sample had
  ExtensionSet extensions_;      // of the sample that is read
  std::uint64_t held_ = 0;       // bytes of its payloads
  std::optional<Error> later_;   // what was found behind the last sample

  bool is_whole(const RawSample& sample, std::uint64_t end) const;
  base::Result<bool> next_member();
  base::Status add(RawSample& sample, bool with_payload);
  base::Status read_payload(Field& field, RawSample& sample);
};

}  // namespace sluice::data
