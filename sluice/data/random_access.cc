// Samples by their number or key, one at a time.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sluice/data/dataset_settings.h"
#include "sluice/data/order/pipeline_stream.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {
namespace {

// The keys of a shard's samples, in their order: from its index, or its headers.
base::Result<std::vector<std::string>> keys_of(const std::string& url) {
  SLUICE_TRY(auto index, read_index(url));
  if (!index) {
    SLUICE_TRY(index, index_shard(url));
  }
  std::vector<std::string> keys;
  for (const auto& members : index->samples) {
    const auto name = split_name(members.front().name);
    keys.emplace_back(name ? name->key : members.front().name);
  }
  return keys;
}

}  // namespace

Sample WebDataset::operator[](std::int64_t index) const {
  const StreamSource source = stream_source({.epoch = settings_->epoch});
  source.read->facts = base::value_or_throw(settings_->learn(source.read->urls));
  const ShardFacts& facts = *source.read->facts;
  if (index < 0 || index >= facts.total)
    throw_error(Code::kOutOfRange,
                base::str("sample ", index, " of ", facts.total, ": expected 0 to ", facts.total - 1));
  RangeOptions range;
  std::int64_t in_shard = index;
  std::size_t shard = 0;
  for (; in_shard >= facts.sizes[shard]; ++shard) in_shard -= facts.sizes[shard];
  range.segments.push_back({shard, in_shard, 1});
  source.read->on_error = OnError::kStop;
  RawSample raw;
  base::value_or_throw(RangeReader(*source.read, std::move(range)).next(raw));
  return base::value_or_throw(decode_and_map(raw, source));
}

std::optional<std::int64_t> WebDataset::find(const std::string& key) const {
  const auto shards = urls();
  std::lock_guard lock(settings_->known->mutex);
  auto& numbers = settings_->known->numbers;
  if (!numbers) {
    numbers.emplace();
    std::int64_t number = 0;
    for (const std::string& url : shards)
      for (std::string& name : base::value_or_throw(keys_of(url)))
        numbers->try_emplace(std::move(name), number++);
  }
  const auto found = numbers->find(key);
  return found == numbers->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sluice::data
