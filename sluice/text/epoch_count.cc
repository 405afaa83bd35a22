#include "sluice/text/epoch_count.h"

#include <sys/stat.h>

#include <array>
#include <limits>
#include <optional>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/data/order/survey_file.h"
#include "sluice/text/token_rows.h"

namespace sluice::text {
namespace {

constexpr std::uint64_t kMaxKept = std::uint64_t{1} << 30;  // bytes of all surveys and counts of a user

// Returns the numbers of the facts, in this order for ever.
template <typename Facts>
auto numbers_of(Facts& f) {
  return std::array{&f.documents,       &f.tokens,          &f.rows,          &f.places,
                    &f.filled,          &f.short_documents, &f.cut_documents, &f.cut_tokens,
                    &f.split_documents, &f.dropped_rows,    &f.dropped_tokens};
}

// A file of surveys has 32 bits a number.
std::optional<data::SurveyedShard> packed(const EpochCount& count) {
  data::SurveyedShard shard;
  for (const std::uint64_t* number : numbers_of(count.facts)) {
    shard.taken.push_back(static_cast<std::uint32_t>(*number));
    shard.taken.push_back(static_cast<std::uint32_t>(*number >> 32));
  }
  for (const std::uint64_t tokens : count.tokens) {
    if (tokens > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) return std::nullopt;
    shard.lengths.push_back(static_cast<std::int32_t>(tokens));
  }
  return shard;
}

std::optional<EpochCount> unpacked(const data::SurveyedShard& shard) {
  EpochCount count;
  const auto numbers = numbers_of(count.facts);
  if (shard.taken.size() != 2 * numbers.size()) return std::nullopt;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    *numbers[i] = shard.taken[2 * i] | std::uint64_t{shard.taken[2 * i + 1]} << 32;
  count.tokens.assign(shard.lengths.begin(), shard.lengths.end());
  return count;
}

// Returns a text that is another one if a file of the set was written since; "" if that cannot be said.
std::string identity_of(const TokenSet& set, const std::string& order) {
  std::string text = "token batches 1\n" + order;
  for (const TokenFile& file : set.files())
    for (const char* ending : {".idx", ".bin"}) {
      struct stat facts {};
      if (::stat((file.name() + ending).c_str(), &facts) != 0) return "";
      text += base::str('\n', facts.st_size, ' ', facts.st_mtim.tv_sec, '.', facts.st_mtim.tv_nsec);
    }
  return text;
}

}  // namespace

EpochCount count_epoch(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch,
                       std::int64_t replicas) {
  EpochCount count;
  RowPlan plan(set, options, epoch, replicas);
  RowBatch batch;
  for (std::uint64_t before = 0; plan.next(batch); before = plan.facts().tokens)
    count.tokens.push_back(plan.facts().tokens - before);
  count.facts = plan.facts();
  return count;
}

EpochCount kept_count(const TokenSet& set, const TokenBatchOptions& options, std::int64_t epoch,
                      std::int64_t replicas, const std::string& order, const std::string& folder) {
  const std::string identity = folder.empty() ? "" : identity_of(set, order);
  if (identity.empty()) return count_epoch(set, options, epoch, replicas);
  const std::string path = data::survey_path(folder, identity);
  const auto kept = [&]() -> std::optional<EpochCount> {
    const auto shards = data::read_survey(path, 1);
    return shards ? unpacked(shards->front()) : std::nullopt;
  };
  if (auto count = kept()) return std::move(*count);
  const auto turn = data::SurveyClaim::wait(path, nullptr);
  if (auto count = kept()) return std::move(*count);
  EpochCount count = count_epoch(set, options, epoch, replicas);
  const auto shard = packed(count);
  const base::Status written = shard ? data::write_survey(path, {*shard}) : base::Status();
  if (!written) base::warn("the number of batches is not kept for the next start: ", written.error().what());
  data::forget_old_surveys(folder, kMaxKept);
  return count;
}

}  // namespace sluice::text
