#include "sluice/data/order/survey.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/data/decode/npy.h"
#include "sluice/data/order/survey_file.h"
#include "sluice/data/shards/shard_index.h"

namespace sluice::data {
namespace {

using Found = SurveyedShard;

constexpr std::uint64_t kMaxKept = 1 << 30;  // bytes of all surveys without a cache folder

std::int64_t rows_of(std::string_view npy) {
  const Array array = base::value_or_throw(parse_npy(npy));
  return array.shape().empty() ? 1 : array.shape().front();
}

class ShardSurvey {
 public:
  ShardSurvey(const Survey& survey, const LearnOptions& options)
      : survey_(survey), options_(options), wanted_{false, {}} {
    for (const Filter& filter : survey.filters)
      wanted_.extensions.insert(filter.members.begin(), filter.members.end());
    wanted_.extensions.insert(survey.measured.begin(), survey.measured.end());
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
    sample.shard = std::make_shared<const std::string>(base::shown_urls(url));
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
        return unread(Error(Code::kDataLoss, base::str(url, ": it ends after ", base::counted(i, "sample"),
                                                       ": expected ", size)),
                      i, size, std::move(found));
      if (sample.failed && !options_.skip_damaged) return tl::unexpected<Error>(*sample.failed);
      if (sample.failed)
        take(static_cast<std::size_t>(i), 0, found);
      else
        SLUICE_OK(decide(sample, static_cast<std::size_t>(i), found));
    }
    return found;
  }

  // Handles an error: samples `from` … of the shard cannot be read.
  base::Result<Found> unread(const Error& error, std::int64_t from, std::int64_t size, Found found) const {
    if (!options_.skip_damaged || error.code() == Code::kCancelled) return tl::unexpected<Error>(error);
    for (std::int64_t i = from; i < size; ++i) take(static_cast<std::size_t>(i), 0, found);
    return found;
  }

  base::Status decide(const RawSample& sample, std::size_t number, Found& found) const {
    auto taken = is_taken(survey_.filters, sample);
    base::Result<std::int64_t> length = 0;
    if (taken && *taken) length = length_of(sample);
    if (taken && !length) taken = tl::unexpected<Error>(length.error());
    if (!taken && !options_.skip_damaged) return tl::unexpected<Error>(taken.error());
    if (!taken) base::warn(taken.error().what(), "; the sample is not taken");
    if (taken && *taken) take(number, *length, found);
    return {};
  }

  base::Result<std::int64_t> length_of(const RawSample& sample) const {
    if (survey_.measured.empty()) return 0;
    const Field* field = nullptr;
    for (const std::string& extension : survey_.measured)
      if (field == nullptr) field = sample.find(extension);
    if (field == nullptr)
      return base::fail(Code::kDataLoss, sample.where(), ": expected a member ",
                        base::join(survey_.measured, " or "), ", whose length is asked for");
    std::int64_t length = 0;
    try {
      length = survey_.length.length ? survey_.length.length(field->bytes) : rows_of(field->bytes);
    } catch (const std::exception& error) {
      return base::fail(Code::kDataLoss, sample.where(), ": the length of its ", field->extension, ": ",
                        error.what());
    }
    const bool too_long = length > survey_.longest && survey_.length.too_long == TooLong::kError;
    if (length >= 0 && !too_long && length <= std::numeric_limits<std::int32_t>::max()) return length;
    return base::fail(Code::kOutOfRange, sample.where(), " has a length of ", length, ": expected 0 to ",
                      survey_.longest,
                      ", the longest of the shapes; or let what is longer be cut (TooLong::kCut)");
  }

  void take(std::size_t number, std::int64_t length, Found& found) const {
    found.taken.push_back(static_cast<std::uint32_t>(number));
    if (!survey_.measured.empty()) found.lengths.push_back(static_cast<std::int32_t>(length));
  }

  const Survey& survey_;
  const LearnOptions& options_;
  Wanted wanted_;
};

tl::unexpected<Error> nothing_left(const std::vector<std::string>& urls, const Survey& survey,
                                   std::int64_t samples) {
  std::vector<std::string> texts;
  for (const Filter& one : survey.filters) texts.push_back(one.text);
  return base::fail(Code::kInvalidArgument, "0 of the ", samples, " samples of ", urls.front(),
                    urls.size() > 1 ? " and others" : "", " are taken: expected some for which '",
                    base::join(texts, "' and '"), "' holds; 'sluice data cat' shows what samples hold");
}

// Returns a text that is the same only for the same samples surveyed in the same way; "" if that cannot be
// said: a function may do anything, and what is left out as damaged is to be reported at every start.
std::string identity_of(const Survey& survey, const LearnOptions& options, const ShardFacts& facts) {
  if (options.skip_damaged || options.allow_unknown_loss) return "";
  if (survey.length.length && survey.length.name.empty()) return "";
  std::string text =
      base::str("samples=", facts.total, " shards=", facts.fingerprint, " content=", facts.content,
                " times=", facts.times.value_or(0), " sums=", facts.sums.value_or(0),
                " longest=", survey.longest, " cut=", survey.length.too_long == TooLong::kCut,
                " measured=", base::join(survey.measured, ";"), " by=", survey.length.name);
  for (const std::string& version : facts.versions)
    if (version.empty()) return "";
  for (const Filter& filter : survey.filters) {
    if (!filter.is_condition) return "";
    text += "\nwhere " + filter.text;
  }
  return text;
}

// Whether these shards can have the samples and lengths that were kept.
bool fits(const std::vector<Found>& found, const Survey& survey, const ShardFacts& facts) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool lengths = survey.measured.empty() || found[i].lengths.size() == found[i].taken.size();
    std::int64_t before = -1;
    for (const std::uint32_t number : found[i].taken) {
      if (number <= before || number >= facts.sizes[i]) return false;
      before = number;
    }
    if (!lengths) return false;
  }
  return true;
}

base::Result<std::vector<Found>> survey_all(const std::vector<std::string>& urls, const Survey& survey,
                                            const LearnOptions& options, const ShardFacts& facts) {
  const bool usual = options.cache_folder.empty();
  const std::string folder = usual ? usual_survey_folder() : options.cache_folder;
  const std::string identity = folder.empty() ? "" : identity_of(survey, options, facts);
  const std::string path = identity.empty() ? "" : survey_path(folder, identity);
  const auto kept_before = [&]() -> std::optional<std::vector<Found>> {
    auto kept = path.empty() ? std::nullopt : read_survey(path, urls.size());
    return kept && fits(*kept, survey, facts) ? std::move(kept) : std::nullopt;
  };
  if (auto kept = kept_before()) return std::move(*kept);
  std::optional<SurveyClaim> turn;
  if (!path.empty()) {
    auto waited = SurveyClaim::wait(path, options.cancelled);
    if (!waited && waited.error().code() == Code::kCancelled) return tl::unexpected<Error>(waited.error());
    if (waited) turn.emplace(std::move(*waited));
    if (auto kept = kept_before()) return std::move(*kept);
  }
  std::vector<Found> found(urls.size());
  const ShardSurvey survey_shard(survey, options);
  SLUICE_OK(for_each_shard(urls, [&](std::size_t i) -> base::Status {
    SLUICE_TRY(found[i], survey_shard(urls[i], facts.sizes[i], facts.versions[i]));
    return {};
  }));
  if (path.empty()) return found;
  if (const auto kept = write_survey(path, found); !kept)
    base::warn("the lengths and the choice of samples are not kept for the next start: ",
               kept.error().what());
  if (usual) forget_old_surveys(folder, kMaxKept);
  return found;
}

}  // namespace

base::Status survey_samples(const std::vector<std::string>& urls, const Survey& survey,
                            const LearnOptions& options, ShardFacts& facts) {
  SLUICE_TRY(std::vector<Found> found, survey_all(urls, survey, options, facts));
  const std::int64_t before = facts.total;
  facts.stored = facts.sizes;
  facts.total = 0;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    facts.total += facts.sizes[i] = static_cast<std::int64_t>(found[i].taken.size());
    for (const std::uint32_t number : found[i].taken)
      facts.taken_key = base::key({facts.taken_key.value_or(0), i, number});
    for (const std::int32_t length : found[i].lengths)
      facts.length_key = base::key({facts.length_key.value_or(0), static_cast<std::uint64_t>(length)});
    facts.taken.push_back(std::move(found[i].taken));
    if (!survey.measured.empty()) facts.lengths.push_back(std::move(found[i].lengths));
  }
  if (before > 0 && facts.total == 0) return nothing_left(urls, survey, before);
  facts.left_out = before - facts.total;
  if (before > 0)
    facts.bytes = static_cast<std::uint64_t>(static_cast<double>(facts.bytes) *
                                             static_cast<double>(facts.total) / static_cast<double>(before));
  // If all samples are taken, no list of their numbers is needed.
  if (facts.left_out == 0 && survey.filters.empty()) facts.taken.clear(), facts.taken_key.reset();
  return {};
}

}  // namespace sluice::data
