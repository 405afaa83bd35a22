#include "sluice/data/shards/shard_places.h"

#include <algorithm>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {

ShardPlaces::ShardPlaces(std::vector<std::string> urls, std::vector<std::int64_t> sizes,
                         std::vector<bool> later)
    : urls_(std::move(urls)), sizes_(std::move(sizes)), known_(urls_.size()) {
  for (std::size_t i = 0; i < known_.size(); ++i) {
    known_[i].later = later[i];
    unread_ += later[i] ? 1 : 0;
  }
}

bool ShardPlaces::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return unread_ > 0;
}

base::Status ShardPlaces::load(std::size_t shard) {
  {
    const std::lock_guard lock(mutex_);
    if (!known_[shard].later) return {};
  }
  const std::string& url = urls_[shard];
  SLUICE_TRY(const auto index, read_index(url));
  if (index && static_cast<std::int64_t>(index->samples.size()) != sizes_[shard])
    return base::fail(Code::kFailedPrecondition, base::shown_urls(index_path(url)), " has ",
                      base::counted(static_cast<std::int64_t>(index->samples.size()), "sample"),
                      ": sizes.json next to it says ", sizes_[shard],
                      "; make both again with 'sluice data index'");
  std::vector<std::uint64_t> starts;
  if (index && !is_packed(url)) starts = index->starts();
  const std::lock_guard lock(mutex_);
  Known& known = known_[shard];
  if (!known.later) return {};  // another thread was faster
  if (index) known.end = index->end();
  known.starts = std::move(starts);
  known.later = false;
  --unread_;
  return {};
}

void ShardPlaces::load_all(const std::vector<std::size_t>& shards) {
  std::vector<std::size_t> missing;
  std::vector<std::string> urls;
  {
    const std::lock_guard lock(mutex_);
    for (const std::size_t shard : shards)
      if (known_[shard].later) missing.push_back(shard);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  for (const std::size_t shard : missing) urls.push_back(urls_[shard]);
  static_cast<void>(for_each_shard(urls, [&](std::size_t i) -> base::Status {
    static_cast<void>(load(missing[i]));
    return {};
  }));
}

const std::vector<std::uint64_t>& ShardPlaces::starts(std::size_t shard) const {
  static const std::vector<std::uint64_t> none;
  const std::lock_guard lock(mutex_);
  return known_[shard].later ? none : known_[shard].starts;
}

std::uint64_t ShardPlaces::end(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  return known_[shard].end;
}

bool ShardPlaces::has_index(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  return known_[shard].later || !known_[shard].starts.empty();
}

void ShardPlaces::learn(std::size_t shard, const Place& place) {
  const std::lock_guard lock(mutex_);
  Known& known = known_[shard];
  if (place.sample != static_cast<std::int64_t>(known.learned.size()) + 1) return;
  known.learned.push_back(place.offset);
  if (known.members_from.empty() || known.members_from.back().second < place.members)
    known.members_from.emplace_back(place.sample, place.members);
}

ShardPlaces::Place ShardPlaces::last_before(std::size_t shard, std::int64_t sample) const {
  const std::lock_guard lock(mutex_);
  const Known& known = known_[shard];
  const std::int64_t last = std::min(sample, static_cast<std::int64_t>(known.learned.size()));
  if (last <= 0) return {};
  Place place{last, known.learned[static_cast<std::size_t>(last - 1)], 0};
  for (const auto& [from, members] : known.members_from)
    if (from <= last) place.members = members;
  return place;
}

void ShardPlaces::set_packing(std::size_t shard, Packing packing) {
  const std::lock_guard lock(mutex_);
  known_[shard].packing = packing;
}

bool ShardPlaces::may_be_packed(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  return known_[shard].packing != Packing::kNone;
}

std::shared_ptr<UnpackPlaces> ShardPlaces::unpacking(std::size_t shard) {
  constexpr std::size_t kMaxShards = 8;  // of at most 5 MB each
  const std::lock_guard lock(mutex_);
  for (auto one = unpacking_.begin(); one != unpacking_.end(); ++one)
    if (one->first == shard) {
      unpacking_.splice(unpacking_.begin(), unpacking_, one);
      return one->second;
    }
  unpacking_.emplace_front(shard, std::make_shared<UnpackPlaces>());
  if (unpacking_.size() > kMaxShards) unpacking_.pop_back();
  return unpacking_.front().second;
}

void ShardPlaces::count_passage(std::size_t shard, std::uint64_t bytes) {
  constexpr std::int64_t kMany = 8;
  constexpr std::uint64_t kLarge = 64 << 20;
  const std::lock_guard lock(mutex_);
  if (known_[shard].packing != Packing::kZstd || ++known_[shard].passages < kMany || bytes < kLarge ||
      warned_)
    return;
  warned_ = true;
  base::warn(base::shown_urls(urls_[shard]), ": ", known_[shard].passages,
             " streams have unpacked this zstd shard from its start, each up to its own samples. Unpack the "
             "shard, use gzip, or pack the set into more and smaller ones with 'sluice data pack'");
}

}  // namespace sluice::data
