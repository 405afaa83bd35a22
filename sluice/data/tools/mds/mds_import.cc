#include "sluice/data/tools/mds/mds_import.h"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <set>

#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/thread.h"
#include "sluice/data/tools/mds/mds.h"
#include "sluice/data/tools/mds/mds_values.h"

namespace sluice::data {
namespace {

// A column that becomes a member.
struct Taken {
  std::size_t column = 0;
  MdsEncoding encoding;
  std::string extension;  // all of it, except the number of one of several images; empty: by the encoding

  std::string member(const std::string& name, const MdsMember& value) const {
    return extension.empty() ? base::str(name, ".", value.part, value.extension) : value.part + extension;
  }
};

base::Result<std::vector<Taken>> choose(const std::vector<MdsColumn>& columns,
                                        const std::vector<std::string>& wanted) {
  std::vector<Taken> taken;
  std::vector<std::string> names;
  for (const MdsColumn& column : columns) names.push_back(column.name);
  for (const std::string& text : wanted.empty() ? names : wanted) {
    const std::size_t equals = wanted.empty() ? std::string::npos : text.find('=');
    const std::string name = text.substr(0, equals);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return base::fail(Code::kInvalidArgument, "the set has no column '", name, "': expected one of ",
                        base::join(names, ", "));
    Taken one{static_cast<std::size_t>(found - names.begin()), {}, ""};
    const MdsColumn& column = columns[one.column];
    if (equals != std::string::npos) one.extension = text.substr(equals + 1);
    auto encoding = parse_mds_encoding(column.encoding);
    if (!encoding) return base::fail_at(encoding, "column '", name, "'");
    one.encoding = std::move(*encoding);
    if (column.size != one.encoding.size())
      return base::fail(Code::kDataLoss, "column '", name, "' of the encoding ", column.encoding, " has ",
                        column.size ? base::str(*column.size, " bytes a value") : "values of different sizes",
                        ", which is not the encoding's size");
    const std::string member = one.member(name, {"", mds_extension(one.encoding), ""});
    if (member.empty() || member.front() == '.' || member.find('/') != std::string::npos)
      return base::fail(Code::kInvalidArgument, "'", member, "' cannot be the extension of a member: give ",
                        "another one with --column '", name, "=EXTENSION'");
    taken.push_back(std::move(one));
  }
  return taken;
}

// Checks that no two members of a sample have one name; readers ignore the case of names.
base::Status check_members(const std::vector<std::pair<std::string, std::string>>& members) {
  std::set<std::string> names;
  for (const auto& [member, encoding] : members) {
    const std::string small = base::lower_case(member);
    if (!names.insert(small).second)
      return base::fail(Code::kInvalidArgument, "two columns would be the member ", small,
                        ": give one of them another extension with --column NAME=EXTENSION");
  }
  return {};
}

// The set's shards that were read last. Threads: any; one at a time reads a shard.
class ShardCache {
 public:
  ShardCache(const MdsSet& set, std::size_t most) : set_(set), most_(most) {}

  base::Result<std::shared_ptr<const MdsShard>> get(std::size_t shard) {
    std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(shards_.begin(), shards_.end(), [&](const auto& one) { return one.first == shard; });
    if (known != shards_.end()) {
      shards_.splice(shards_.begin(), shards_, known);
      return shards_.front().second;
    }
    while (shards_.size() >= most_) shards_.pop_back();
    SLUICE_TRY(auto read, set_.read(shard));
    shards_.emplace_front(shard, std::move(read));
    return shards_.front().second;
  }

 private:
  const MdsSet& set_;
  const std::size_t most_;
  std::mutex mutex_;
  std::list<std::pair<std::size_t, std::shared_ptr<const MdsShard>>> shards_;  // the last one first
};

}  // namespace

base::Result<MdsReport> pack_mds(const MdsOptions& options) {
  SLUICE_TRY(const MdsSet set, MdsSet::open(options.input));
  auto chosen = choose(set.columns(), options.columns);
  if (!chosen) return base::fail_at(chosen, options.input);
  const std::vector<Taken>& taken = *chosen;
  MdsReport report;
  for (const Taken& one : taken) {
    const MdsColumn& column = set.columns()[one.column];
    report.members.emplace_back(one.member(column.name, {"", mds_extension(one.encoding), ""}),
                                column.encoding);
  }
  SLUICE_OK(check_members(report.members));
  std::vector<std::int64_t> ends;  // of the shards, in samples of the set
  for (const MdsShardFacts& shard : set.shards())
    ends.push_back((ends.empty() ? 0 : ends.back()) + shard.samples);
  ShardOptions shards = options.shards;
  shards.fingerprint = base::hexadecimal(base::sha256(
      base::str("mds\n", base::join(options.columns, "\n"), "\n", shards.shard_size, "\n", set.index())));
  ShardCache cache(
      set, shards.workers > 0 ? static_cast<std::size_t>(shards.workers) : base::available_processors());
  const auto produce = [&](std::int64_t i) -> base::Result<NewSample> {
    const auto shard = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    SLUICE_TRY(const auto bytes, cache.get(shard));
    auto values = bytes->sample(i - (ends[shard] - set.shards()[shard].samples));
    if (!values) return base::fail_at(values, set.name(shard));
    NewSample sample{sample_key(i), {}};
    for (const Taken& one : taken) {
      const MdsColumn& column = set.columns()[one.column];
      auto members = mds_members(one.encoding, (*values)[one.column]);
      if (!members)
        return base::fail_at(members, set.name(shard), ": sample ", i, " of the set, column '", column.name,
                             "'");
      for (MdsMember& member : *members)
        sample.members.emplace_back(one.member(column.name, member), std::move(member.payload));
    }
    if (sample.members.empty())  // without one there would be no sample
      return base::fail(Code::kInvalidArgument, set.name(shard), ": sample ", i,
                        " has no image at all: take another column with it");
    return sample;
  };
  SLUICE_TRY(report.shards, write_shards(set.samples(), produce, shards));
  report.unknown_hashes = set.unknown_hashes();
  return report;
}

}  // namespace sluice::data
