#include "sluice/data/mixture.h"

#include <charconv>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/dataset_settings.h"
#include "sluice/data/order/mixture_order.h"
#include "sluice/data/pipeline/pipeline_stream.h"
#include "sluice/data/stream_state.h"

namespace sluice::data {
namespace {

const char* name_of(MixBy by) {
  switch (by) {
    case MixBy::kShare:
      return "share";
    case MixBy::kRepeat:
      return "repeat";
    case MixBy::kChoose:
      return "choose";
  }
  return "";
}

// Returns the shortest text that is read as the same number.
std::string exact_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(exact_text(number));
  return base::join(texts, ",");
}

std::vector<double> scaled_to_one(std::vector<double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

struct Mix::Known {
  std::mutex mutex;
  std::optional<std::vector<double>> mean_sizes;
};

Mix::Mix(std::vector<Source> sources, MixBy by)
    : sources_(std::move(sources)), by_(by), known_(std::make_shared<Known>()) {
  if (sources_.empty()) misuse("Mix of no sources: expected such as {{photos, 0.7}, {sketches, 0.3}}");
  const WebDataset::Settings& first = *sources_.front().dataset.settings_;
  std::vector<double> amounts;
  for (Source& source : sources_) {
    const WebDataset::Settings& settings = *source.dataset.settings_;
    if (source.name.empty()) source.name = settings.patterns.front();
    const auto expect_same = [&](bool same, const char* what) {
      if (!same)
        misuse(base::str("Mix: ", what, " of '", source.name, "' and '", sources_.front().name,
                         "' differ: expected the same for all sources"));
    };
    if (!settings.shuffle || settings.original_workers > 0)
      misuse(base::str("Mix: '", source.name, "' is not shuffled: expected shuffle(), and not original()"));
    if (!settings.shapes.empty())
      misuse(base::str("Mix: '", source.name, "' has bucket_by_length(): expected batch()"));
    expect_same(settings.batch == first.batch, "batch()");
    expect_same(settings.ranges == first.ranges, "interleave()");
    expect_same(settings.mean == first.mean && settings.deviation == first.deviation, "normalize()");
    expect_same(settings.on_error == first.on_error, "on_error()");
    amounts.push_back(source.amount);
    if (by_ != MixBy::kShare && !(source.amount > 0 && source.amount < 1e12))
      misuse(base::str("Mix: ", source.amount, " for '", source.name, "' by ", name_of(by_),
                       ": expected a number above 0"));
  }
  if (by_ == MixBy::kShare) check_shares(amounts);
}

Mix Mix::join(const std::vector<WebDataset>& datasets) {
  std::vector<Source> sources;
  for (const WebDataset& dataset : datasets) sources.push_back({dataset, 1, ""});
  return Mix(std::move(sources), MixBy::kRepeat);
}

void Mix::check_shares(const std::vector<double>& shares) const {
  if (shares.size() != sources_.size())
    misuse(base::str("Mix: ", shares.size(), " shares for ", sources_.size(), " sources: expected one each"));
  double sum = 0;
  for (const double share : shares) {
    if (!(share >= 0 && share < 1e12)) misuse(base::str("Mix: a share of ", share, ": expected 0 or more"));
    sum += share;
  }
  if (!(sum > 0)) misuse("Mix: all shares are 0: expected at least one above");
}

Mix& Mix::epoch_samples(std::int64_t samples) {
  demand(samples > 0, "an epoch", samples, "1 sample or more");
  if (by_ != MixBy::kShare)
    misuse(base::str("Mix: epoch_samples() by ", name_of(by_), ": the sources' numbers say it already"));
  epoch_samples_ = samples;
  return *this;
}

Mix& Mix::from(std::int64_t batch, std::vector<double> shares) {
  const std::int64_t least = changes_.empty() ? 1 : changes_.back().batch + 1;
  if (batch < least) misuse(base::str("Mix: shares from batch ", batch, " on: expected ", least, " or more"));
  if (by_ != MixBy::kShare)
    misuse(base::str("Mix: from() by ", name_of(by_), ": expected a mixture by shares"));
  check_shares(shares);
  changes_.push_back({batch, std::move(shares)});
  return *this;
}

Mix& Mix::by_size(std::function<double(const Sample&)> size, std::int64_t samples) {
  if (!size) misuse("Mix: by_size() of nothing: expected a function that takes a Sample");
  if (by_ != MixBy::kShare)
    misuse(base::str("Mix: by_size() by ", name_of(by_), ": expected a mixture by shares"));
  demand(samples > 0, "a number of samples whose mean size is taken", samples, "1 or more");
  size_ = std::move(size);
  sized_samples_ = samples;
  known_ = std::make_shared<Known>();
  return *this;
}

std::vector<double> Mix::mean_sizes() const {
  if (!size_) return std::vector<double>(sources_.size(), 1.0);
  std::lock_guard lock(known_->mutex);
  if (known_->mean_sizes) return *known_->mean_sizes;
  std::vector<double> means;
  for (const Source& source : sources_) {
    WebDataset first = source.dataset;
    first.change().shuffle = false;
    first.change().decode.transforms.clear();
    // One thread, so that the sum has one order.
    double sum = 0;
    std::int64_t count = 0;
    first.map([&](Sample& sample) {
      if (count < sized_samples_) sum += size_(sample), ++count;
    });
    const auto stream = first.batch(1).keep().workers(1).prefetch(1).open();
    for (std::int64_t i = 0; i < sized_samples_ && stream->next(); ++i) {
    }
    const double mean = count > 0 ? sum / static_cast<double>(count) : 0;
    if (!(mean > 0 && std::isfinite(mean)))
      misuse(base::str("Mix: the mean size of the first samples of '", source.name, "' is ", mean,
                       ": expected a number above 0"));
    means.push_back(mean);
  }
  known_->mean_sizes = means;
  return means;
}

// Returns the shares as they were given; the first begin at batch 0.
std::vector<Mix::Change> Mix::all_changes() const {
  std::vector<Change> changes(1);
  for (const Source& source : sources_) changes.front().shares.push_back(source.amount);
  changes.insert(changes.end(), changes_.begin(), changes_.end());
  return changes;
}

std::vector<Mix::Change> Mix::sample_shares() const {
  std::vector<Change> changes = all_changes();
  for (std::size_t i = 0; i < sources_.size() && by_ == MixBy::kRepeat; ++i)
    changes.front().shares[i] *= static_cast<double>(sources_[i].dataset.size());
  const std::vector<double> sizes = mean_sizes();
  for (Change& change : changes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) change.shares[i] /= sizes[i];
    change.shares = scaled_to_one(std::move(change.shares));
  }
  return changes;
}

std::int64_t Mix::size() const {
  if (epoch_samples_ > 0) return epoch_samples_;
  double samples = 0;
  for (const Source& source : sources_) {
    const auto all = static_cast<double>(source.dataset.size());
    samples += by_ == MixBy::kShare ? all : by_ == MixBy::kRepeat ? source.amount * all : source.amount;
  }
  return std::llround(samples);
}

std::shared_ptr<const MixtureOrder> Mix::order(std::int64_t replicas) const {
  demand(replicas > 0, "a number of replicas", replicas, "1 or more");
  const WebDataset::Settings& first = *sources_.front().dataset.settings_;
  std::vector<std::int64_t> sizes;
  for (const Source& source : sources_) {
    sizes.push_back(source.dataset.size());
    if (sizes.back() == 0) misuse(base::str("Mix: '", source.name, "' has no samples"));
  }
  const std::int64_t samples = size(), rows = first.batch * replicas;
  if (samples < rows)
    misuse(base::str("Mix: the ", samples, " samples of an epoch do not fill one batch of ", first.batch,
                     " × ", replicas, " = ", rows, ": use a smaller batch, or a longer epoch"));
  std::vector<MixtureShares> shares;
  for (Change& change : sample_shares()) shares.push_back({change.batch, std::move(change.shares)});
  return std::make_shared<const MixtureOrder>(std::move(sizes), shares, samples, rows, first.ranges,
                                              first.seed);
}

std::unique_ptr<Stream> Mix::open(const OpenOptions& options) const {
  const WebDataset& first = sources_.front().dataset;
  const auto order = this->order(options.parts * options.replicas);
  StreamOptions stream = first.stream_options(options);
  for (std::size_t i = 1; i < sources_.size(); ++i)
    stream.sources.push_back(sources_[i].dataset.stream_source(options));
  for (std::size_t i = 0; i < sources_.size(); ++i)
    stream.sources[i].capacity =
        buffer_share(sources_[i].dataset.part_options(options), *stream.sources[i].read->facts);
  stream.mixture = order;
  stream.part.remainder = Remainder::kDrop;
  stream.max_bad = bad_limit(first.settings_->max_bad, size(), options.parts);
  stream.state = [mix = *this, options] { return mix.state_words(options); };
  return std::make_unique<PipelineStream>(std::move(stream));
}

std::string Mix::state_words(const OpenOptions& options) const {
  std::vector<std::string> shares;
  for (const Change& change : all_changes())
    shares.push_back(base::str(change.batch, ":", numbers_text(change.shares)));
  const PartOptions part = sources_.front().dataset.part_options(options);
  std::string text =
      base::str("sluice-mixture=1 epoch=", options.epoch, " epoch-samples=", size(), " ", name_of(by_), "=",
                base::join(shares, ";"), " global-batch=", part.global_rows());
  if (size_) text += base::str(" mean-sizes=", numbers_text(mean_sizes()));
  OpenOptions anywhere = options;
  anywhere.epoch = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    for (const std::string& word : base::split(sources_[i].dataset.state_words(anywhere), ' '))
      text += base::str(" source", i, ".", word);
  return text;
}

std::string Mix::state(const OpenOptions& options) const {
  return base::str(state_words(options), " batches=", options.skip_batches);
}

std::unique_ptr<Stream> Mix::resume(const std::string& state, const OpenOptions& options) const {
  const OpenOptions at = position_in(state, options);
  std::vector<PinnedShards> pinned;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    pinned.push_back({base::str("source", i, "."), sources_[i].dataset.urls()});
  expect_same(state, this->state(at), pinned, options.part == 0);
  return open(at);
}

std::int64_t Mix::batches(std::int64_t replicas, std::int64_t /*epoch: all are alike*/) const {
  return order(replicas)->batches();
}

std::int64_t Mix::batch_size() const { return sources_.front().dataset.batch_size(); }
const std::vector<float>& Mix::mean() const { return sources_.front().dataset.mean(); }
const std::vector<float>& Mix::deviation() const { return sources_.front().dataset.deviation(); }

std::vector<Mix::Taken> Mix::taken(std::int64_t epoch, std::int64_t replicas) const {
  demand(epoch >= 0, "an epoch", epoch, "0 or more");
  const auto order = this->order(replicas);
  const auto before = order->taken_before(epoch), after = order->taken_before(epoch + 1);
  std::vector<Taken> result;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    result.push_back({sources_[i].name, after[i] - before[i],
                      static_cast<double>(after[i]) / static_cast<double>(sources_[i].dataset.size())});
  return result;
}

}  // namespace sluice::data
