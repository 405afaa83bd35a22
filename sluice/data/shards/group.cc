#include "sluice/data/shards/group.h"

#include <algorithm>
#include <mutex>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

// Whether a name is like "__meta__" or "__meta__/x.json".
bool is_metadata(std::string_view name) {
  if (!base::starts_with(name, "__")) return false;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return base::ends_with(name, "__");
  return slash >= 4 && base::ends_with(name.substr(0, slash), "__");
}

void say_apple_double(const std::string& shard, const std::string& member) {
  static std::once_flag once;
  std::call_once(once, [&] {
    base::warn(
        shard, ": member ", base::printable(member),
        " is an AppleDouble file of macOS; such members are passed over, here and in all other shards. "
        "COPYFILE_DISABLE=1 makes macOS's tar leave them out");
  });
}

}  // namespace

bool is_apple_double(std::string_view name) {
  return base::starts_with(name.substr(name.rfind('/') + 1), "._");  // npos + 1 is 0
}

std::optional<SplitName> split_name(std::string_view name) {
  if (is_metadata(name) || is_apple_double(name)) return std::nullopt;
  const std::size_t slash = name.rfind('/');
  const std::size_t start = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', start);
  if (dot == std::string_view::npos) return std::nullopt;
  if (dot == start) {
    // A hidden file belongs to its folder ("a/.x" has the key "a/"), when that folder's name has no dot.
    if (start == 0) return std::nullopt;
    const std::size_t above = start < 2 ? std::string_view::npos : name.rfind('/', start - 2);
    const std::size_t first = above == std::string_view::npos ? 0 : above + 1;
    if (name.substr(first, start - first).find('.') != std::string_view::npos) return std::nullopt;
  }
  return SplitName{name.substr(0, dot), name.substr(dot + 1)};
}

const Field* RawSample::find(std::string_view extension) const {
  for (const Field& field : fields)
    if (field.extension == extension) return &field;
  return nullptr;
}

const Field* ExtensionSet::add(const RawSample& sample, const std::string& extension) {
  constexpr std::size_t kFew = 32;
  if (sample.fields.size() < kFew) return sample.find(extension);
  if (places_.empty())
    for (std::size_t i = 0; i < sample.fields.size(); ++i) places_.emplace(sample.fields[i].extension, i);
  const auto [place, is_new] = places_.emplace(extension, sample.fields.size());
  return is_new ? nullptr : &sample.fields[place->second];
}

std::uint64_t RawSample::bytes() const {
  std::uint64_t sum = 0;
  for (const Field& field : fields) sum += field.bytes.size();
  return sum;
}

std::uint64_t end_of(const RawSample& sample) {
  const Field& last = sample.fields.back();
  return tar_padded(last.payload + last.size);
}

std::string RawSample::where() const {
  return base::str(*shard, ": sample ", key, " (at byte ", fields.empty() ? 0 : fields.front().offset, ")");
}

ShardReader::ShardReader(std::unique_ptr<Source> source, Wanted wanted, ArchivePart part, std::size_t members)
    : tar_(std::move(source), part),
      wanted_(std::move(wanted)),
      shard_(std::make_shared<const std::string>(tar_.name())),
      last_fields_(members) {}

// Makes `ahead_` the next member that belongs to a sample; false at the end.
base::Result<bool> ShardReader::next_member() {
  if (has_ahead_) return true;
  if (ended_) return false;
  while (true) {
    SLUICE_TRY(const bool found, tar_.next(ahead_));
    ended_ = !found;
    if (!found) return false;
    if (ahead_.kind != MemberKind::kFile) continue;
    const auto name = split_name(ahead_.name);
    if (!name && is_apple_double(ahead_.name)) say_apple_double(*shard_, ahead_.name);
    if (!name) continue;
    ahead_name_ = *name;
    has_ahead_ = true;
    return true;
  }
}

base::Status ShardReader::add(RawSample& sample, bool with_payload) {
  Field field;
  field.extension = base::lower_case(ahead_name_.extension);
  field.offset = ahead_.offset;
  field.payload = tar_.offset();
  field.size = ahead_.size;
  if (sample.fields.size() == kMaxMembers)
    return base::fail(Code::kDataLoss, *shard_, ": sample ", sample.key, " has more than ", kMaxMembers,
                      " members: keys must differ from sample to sample, and end at the first dot");
  if (const Field* twin = extensions_.add(sample, field.extension))
    return base::fail(Code::kDataLoss, *shard_, ": member ", ahead_.name, " (header at byte ", field.offset,
                      ") has the same key and extension as ", twin->member, " (header at byte ", twin->offset,
                      "): names within a sample must differ, and not in upper and lower case only");
  if (with_payload && !sample.failed && (wanted_.all || wanted_.extensions.contains(field.extension)))
    SLUICE_OK(read_payload(field, sample));
  field.member = std::move(ahead_.name);
  sample.fields.push_back(std::move(field));
  return {};
}

// Reads a payload. A sample that is too large is marked as failed; the rest of the shard can be read.
base::Status ShardReader::read_payload(Field& field, RawSample& sample) {
  auto status = tar_.read_payload(field.bytes);
  if (status && held_ + field.size > memory_limits().sample)
    status =
        too_much_memory(base::str(*shard_, ": member ", ahead_.name, " (header at byte ", field.offset,
                                  "): including this member, the sample has ", held_ + field.size, " bytes"));
  held_ += field.size;
  if (status || status.error().code() != Code::kResourceExhausted) return status;
  field.bytes = std::string();
  for (Field& other : sample.fields) other.bytes = std::string();
  sample.failed = std::make_shared<const Error>(status.error());
  return {};
}

bool ShardReader::is_whole(const RawSample& sample, std::uint64_t end) const {
  if (sample.fields.empty() || !tar_.payload_was_there()) return false;
  if (end > 0) return end_of(sample) >= end;
  return last_fields_ > 0 && sample.fields.size() >= last_fields_;
}

base::Result<bool> ShardReader::next(RawSample& sample, bool with_payloads, std::uint64_t end) {
  if (later_) return tl::unexpected<Error>(*later_);
  sample = RawSample{};
  extensions_.clear();
  held_ = 0;
  sample.shard = shard_;
  sample.fields.reserve(last_fields_);
  while (true) {
    const auto found = next_member();
    if (!found && is_whole(sample, end)) {
      later_ = found.error();
      return true;
    }
    if (!found) return tl::unexpected<Error>(found.error());
    last_fields_ = std::max<std::size_t>(last_fields_, sample.fields.size());
    if (!*found) return !sample.fields.empty();
    if (sample.fields.empty()) sample.key = ahead_name_.key;
    if (ahead_name_.key != sample.key) return true;
    SLUICE_OK(add(sample, with_payloads));
    has_ahead_ = false;
  }
}

}  // namespace sluice::data
