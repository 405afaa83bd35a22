#include "sluice/data/order/survey.h"

#include <algorithm>

#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/base/strings.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {
namespace {

// Of one shard: the numbers of the samples that are taken.
struct Found {
  std::vector<std::uint32_t> taken;
};

class ShardSurvey {
 public:
  ShardSurvey(const Survey& survey, const LearnOptions& options)
      : survey_(survey), options_(options), wanted_{false, {}} {
    for (const Filter& filter : survey.filters)
      wanted_.extensions.insert(filter.members.begin(), filter.members.end());
  }

  base::Result<Found> operator()(const std::string& url, std::int64_t size,
                                 const std::string& version) const {
    if (wanted_.extensions.empty()) {
      SLUICE_TRY(const auto index, read_index(url));
      if (index && static_cast<std::int64_t>(index->samples.size()) == size) return by_index(url, *index);
    }
    SourceOptions place;
    place.cancelled = options_.cancelled;
    place.cache_folder = options_.cache_folder;
    place.cache_bytes = options_.cache_bytes;
    place.version = version;
    return by_members(url, size, place);
  }

 private:
  base::Result<Found> by_index(const std::string& url, const ShardIndex& index) const {
    Found found;
    RawSample sample;
    sample.shard = std::make_shared<const std::string>(url);
    for (std::size_t i = 0; i < index.samples.size(); ++i) {
      const auto name = split_name(index.samples[i].front().name);
      sample.key = name ? name->key : index.samples[i].front().name;
      SLUICE_OK(decide(sample, i, found));
    }
    return found;
  }

  base::Result<Found> by_members(const std::string& url, std::int64_t size,
                                 const SourceOptions& place) const {
    Found found;
    auto source = open_source(url, place);
    if (!source) return unread(source.error(), 0, size, std::move(found));
    ShardReader reader(std::move(*source), wanted_);
    RawSample sample;
    for (std::int64_t i = 0; i < size; ++i) {
      if (options_.cancelled != nullptr && *options_.cancelled)
        return base::fail(Code::kCancelled, "cancelled");
      const auto more = reader.next(sample);
      if (!more) return unread(more.error(), i, size, std::move(found));
      if (!*more)
        return unread(
            Error(Code::kDataLoss, base::str(url, ": it ends after ", i, " samples: expected ", size)), i,
            size, std::move(found));
      if (sample.failed && !options_.skip_damaged) return tl::unexpected<Error>(*sample.failed);
      if (sample.failed)
        take(static_cast<std::size_t>(i), found);
      else
        SLUICE_OK(decide(sample, static_cast<std::size_t>(i), found));
    }
    return found;
  }

  // Samples `from` … of a shard cannot be read.
  base::Result<Found> unread(const Error& error, std::int64_t from, std::int64_t size, Found found) const {
    if (!options_.skip_damaged || error.code() == Code::kCancelled) return tl::unexpected<Error>(error);
    for (std::int64_t i = from; i < size; ++i) take(static_cast<std::size_t>(i), found);
    return found;
  }

  base::Status decide(const RawSample& sample, std::size_t number, Found& found) const {
    const auto taken = is_taken(survey_.filters, sample);
    if (!taken && !options_.skip_damaged) return tl::unexpected<Error>(taken.error());
    if (!taken) base::warn(taken.error().what(), "; the sample is not taken");
    if (taken && *taken) take(number, found);
    return {};
  }

  static void take(std::size_t number, Found& found) {
    found.taken.push_back(static_cast<std::uint32_t>(number));
  }

  const Survey& survey_;
  const LearnOptions& options_;
  Wanted wanted_;
};

tl::unexpected<Error> nothing_left(const std::vector<std::string>& urls, const Survey& survey,
                                   std::int64_t samples) {
  std::vector<std::string> texts;
  for (const Filter& one : survey.filters) texts.push_back(one.text);
  return base::fail(Code::kInvalidArgument, "none of the ", samples, " samples of ", urls.front(),
                    urls.size() > 1 ? " and others" : "", " is taken: expected some for which '",
                    base::join(texts, "' and '"), "' holds; 'sluice data cat' shows what samples hold");
}

}  // namespace

base::Status survey_samples(const std::vector<std::string>& urls, const Survey& survey,
                            const LearnOptions& options, ShardFacts& facts) {
  std::vector<Found> found(urls.size());
  const ShardSurvey survey_shard(survey, options);
  SLUICE_OK(for_each_shard(urls, [&](std::size_t i) -> base::Status {
    SLUICE_TRY(found[i], survey_shard(urls[i], facts.sizes[i], facts.versions[i]));
    return {};
  }));
  const std::int64_t before = facts.total;
  facts.stored = facts.sizes;
  facts.total = 0;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    facts.total += facts.sizes[i] = static_cast<std::int64_t>(found[i].taken.size());
    for (const std::uint32_t number : found[i].taken)
      facts.taken_key = base::key({facts.taken_key.value_or(0), i, number});
    facts.taken.push_back(std::move(found[i].taken));
  }
  if (before > 0 && facts.total == 0) return nothing_left(urls, survey, before);
  facts.left_out = before - facts.total;
  if (before > 0)
    facts.bytes = static_cast<std::uint64_t>(static_cast<double>(facts.bytes) *
                                             static_cast<double>(facts.total) / static_cast<double>(before));
  return {};
}

}  // namespace sluice::data
