// Access to single samples by their number or key.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sluice/data/dataset_settings.h"
#include "sluice/data/pipeline/pipeline_stream.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {
Sample WebDataset::operator[](std::int64_t index) const {
  const StreamSource source = stream_source({.epoch = settings_->epoch});
  source.read->facts = base::value_or_throw(settings_->learn());
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
  if (raw.failed) throw_error(*raw.failed);
  return base::value_or_throw(decode_and_map(raw, source));
}

std::optional<std::int64_t> WebDataset::find(const std::string& key) const {
  const auto shards = settings_->shards();
  // Without filters the list of keys is complete, so the sizes are not needed.
  const auto facts = !settings_->survey.wanted() ? nullptr : base::value_or_throw(settings_->learn());
  std::lock_guard lock(settings_->known->mutex);
  auto& numbers = settings_->known->numbers;
  if (!numbers) {
    numbers.emplace();
    std::int64_t number = 0;
    for (std::size_t i = 0; i < shards->size(); ++i) {
      auto names = base::value_or_throw(keys_of_shard((*shards)[i]));
      const std::int64_t taken = facts ? facts->sizes[i] : static_cast<std::int64_t>(names.size());
      for (std::int64_t place = 0; place < taken; ++place) {
        const auto in_shard = static_cast<std::size_t>(facts ? facts->number_of(i, place) : place);
        numbers->try_emplace(std::move(names.at(in_shard)), number++);
      }
    }
  }
  const auto found = numbers->find(key);
  return found == numbers->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sluice::data
