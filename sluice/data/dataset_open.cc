// WebDataset::open() and its helpers: where a stream begins, and whether a resumed stream is the same one.
#include <algorithm>

#include "sluice/base/thread.h"
#include "sluice/data/dataset_settings.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/data/order/original_order.h"
#include "sluice/data/pipeline/pipeline_stream.h"
#include "sluice/data/stream_state.h"

namespace sluice::data {
namespace {

Wanted wanted_members(const DecodePlan& plan) {
  Wanted wanted{false, {}};
  for (const FieldPlan& field : plan.fields)
    wanted.extensions.insert(field.extensions.begin(), field.extensions.end());
  return wanted;
}

// Returns the number of ranges: the setting when samples are shuffled; otherwise one for each replica, or a
// single one, in the shards' order, when there is one part.
std::int64_t ranges_for(const WebDataset::Settings& settings, const OpenOptions& options) {
  const std::int64_t replicas = options.parts * options.replicas;
  if (!settings.shuffle) return options.parts == 1 && settings.shapes.empty() ? 1 : replicas;
  if (settings.ranges % replicas == 0 || settings.original_workers > 0) return settings.ranges;
  const std::int64_t next = (settings.ranges + replicas - 1) / replicas * replicas;
  if (!settings.ranges_are_chosen) return next;
  misuse(base::str("WebDataset: ", settings.ranges, " ranges cannot be dealt to ", replicas,
                   " replicas: expected a multiple of them; the next is --streams ", next,
                   " (in C++ interleave(", next, ")). The order of samples depends on this number"));
}

const char* name_of(Remainder remainder) {
  switch (remainder) {
    case Remainder::kDrop:
      return "drop";
    case Remainder::kPad:
      return "pad";
    case Remainder::kKeep:
      return "keep";
    case Remainder::kCarry:
      return "carry";
  }
  return "";
}

// Describes the epoch and everything that the order depends on, as name=value pairs.
std::string describe(const PartOptions& part, const ShardFacts* facts) {
  std::string text = base::str("sluice-stream=1 epoch=", part.epoch, " seed=", part.seed,
                               " global-batch=", part.global_rows(), " remainder=", name_of(part.remainder));
  if (part.shuffle) text += base::str(" streams=", part.ranges);  // the name that checkpoints have
  if (part.original_workers > 0)
    text += base::str(" original-workers=", part.original_workers, " replicas=", part.replicas());
  if (!part.shapes.empty())
    text += base::str(" shapes=", shapes_text(part.shapes), " replicas=", part.replicas());
  else if (!part.shuffle && part.parts > 1)
    text += base::str(" replicas=", part.replicas());
  if (facts == nullptr) return text + base::str(" buffer=", part.shuffle ? part.buffer_samples : 0);
  text += base::str(" buffer=", part.original_workers > 0 ? part.buffer_samples : buffer_share(part, *facts),
                    " samples=", facts->total, " shards=", facts->fingerprint,
                    facts->tagged ? " tags=" : " content=", facts->content);
  if (facts->times) text += base::str(" times=", *facts->times);
  if (facts->sums) text += base::str(" sums=", *facts->sums);
  if (facts->length_key) text += base::str(" lengths=", *facts->length_key);
  if (facts->taken_key) text += base::str(" filter=", *facts->taken_key);
  return text;
}

}  // namespace

base::Result<std::shared_ptr<const ShardFacts>> WebDataset::Settings::learn() const {
  const auto urls = shards();
  std::lock_guard lock(known->mutex);
  if (!known->facts) {
    LearnOptions options;
    options.shard_size = shard_size;
    options.skip_damaged = on_error != OnError::kStop;
    options.allow_unknown_loss = options.skip_damaged && allow_unknown_loss;
    options.cache_folder = cache_folder;
    options.cache_bytes = static_cast<std::uint64_t>(cache_bytes);
    SLUICE_TRY(ShardFacts facts, learn_shards(*urls, options));
    if (survey.wanted()) SLUICE_OK(survey_samples(*urls, survey, options, facts));
    known->facts = std::make_shared<const ShardFacts>(std::move(facts));
  }
  return known->facts;
}

void WebDataset::check() const {
  if (settings_->decode.fields.empty())
    misuse(
        "WebDataset: which members make a sample? Call images(\"jpg;png\") and labels(\"cls\"), or "
        "to_tuple(…)");
  if (!settings_->decode.spec && !settings_->decode.transforms.empty())
    misuse(
        "WebDataset: resize(), crop() and flip() need images: call images(\"jpg;png\"), or "
        "decode(\"rgb8\")");
  const char* const other = remainder() == Remainder::kCarry ? "carry()"
                            : original_order()               ? "original()"
                                                             : nullptr;
  if (!settings_->shapes.empty() && other != nullptr)
    misuse(base::str("WebDataset: bucket_by_length() with ", other, ": expected drop_last() or pad()"));
}

PartOptions WebDataset::part_options(const OpenOptions& options) const {
  demand(options.epoch >= 0, "an epoch", options.epoch, "0 or more");
  demand(options.parts > 0, "a number of parts", options.parts, "1 or more");
  demand(options.part >= 0 && options.part < options.parts, "a part", options.part, "0 to parts − 1");
  demand(options.replicas > 0, "a number of replicas", options.replicas, "1 or more");
  demand(options.skip_batches >= 0, "a number of batches to skip", options.skip_batches, "0 or more");
  PartOptions part;
  part.shuffle = settings_->shuffle;
  part.buffer_samples = settings_->buffer_samples;
  part.buffer_bytes = settings_->buffer_bytes;
  part.seed = settings_->seed;
  part.epoch = options.epoch;
  part.ranges = ranges_for(*settings_, options);
  part.rows = settings_->batch;
  part.part = options.part;
  part.parts = options.parts;
  part.local_replicas = options.replicas;
  part.remainder = remainder();
  if (options.whole_batches && part.remainder == Remainder::kKeep && !original_order())
    part.remainder = Remainder::kDrop;
  part.skip_batches = options.skip_batches;
  part.original_workers = settings_->original_workers;
  part.original_samples = settings_->original_samples;
  part.shapes = settings_->shapes;
  return part;
}

// Counts the shards if the order depends on it, or if a state is requested (`counted`). A set that can be
// read only once is one range for one part.
std::shared_ptr<const ShardFacts> WebDataset::facts_for(const OpenOptions& options, bool counted) const {
  const auto shards = settings_->shards();
  const bool again = std::all_of(shards->begin(), shards->end(), can_be_read_again);
  const bool needed = settings_->shuffle || options.parts > 1 || settings_->original_workers > 0 ||
                      remainder() == Remainder::kCarry || settings_->survey.wanted();
  if (again && (counted || needed || options.skip_batches > 0 || settings_->on_error != OnError::kStop))
    return base::value_or_throw(settings_->learn());
  if (options.parts > 1 || settings_->original_workers > 0 || remainder() == Remainder::kCarry ||
      settings_->survey.wanted())
    misuse(
        "WebDataset: what comes from stdin or a pipe can be read only once: it cannot be split into parts, "
        "carried over epochs or filtered");
  std::lock_guard lock(settings_->known->mutex);
  return settings_->known->facts;
}

std::unique_ptr<Stream> WebDataset::open() const { return open(settings_->epoch); }

std::unique_ptr<Stream> WebDataset::open(std::int64_t epoch, std::int64_t part, std::int64_t parts,
                                         std::int64_t skip_batches) const {
  return open(OpenOptions{epoch, part, parts, 1, skip_batches});
}

StreamSource WebDataset::stream_source(const OpenOptions& options) const {
  check();
  StreamSource source;
  source.read = std::make_unique<ReadSettings>();
  source.read->urls = settings_->shards();
  source.read->source.cache_folder = settings_->cache_folder;
  source.read->source.cache_bytes = static_cast<std::uint64_t>(settings_->cache_bytes);
  source.read->facts = facts_for(options, /*counted=*/false);
  source.read->wanted = wanted_members(settings_->decode);
  source.read->on_error = settings_->on_error;
  source.decode = settings_->decode;
  source.decode.seed = settings_->seed;
  source.decode.epoch = options.epoch;
  source.maps = settings_->maps;
  source.seed = settings_->seed;
  return source;
}

std::unique_ptr<Stream> WebDataset::open(const OpenOptions& options) const {
  return std::make_unique<PipelineStream>(stream_options(options));
}

// Returns the options of a stream with this data set as its only source.
StreamOptions WebDataset::stream_options(const OpenOptions& options) const {
  StreamOptions stream;
  stream.part = part_options(options);
  stream.sources.push_back(stream_source(options));
  const ShardFacts* facts = stream.sources.front().read->facts.get();
  stream.max_bad = bad_limit(settings_->max_bad, facts == nullptr ? 0 : facts->total, options.parts);
  stream.state = [dataset = *this, options] { return dataset.state_words(options); };
  stream.workers = stream.max_workers = settings_->workers;
  if (settings_->workers == 0) {
    stream.max_workers = static_cast<int>(base::available_processors());
    stream.workers = std::max(std::min(8, stream.max_workers), settings_->known->workers.load());
    stream.on_workers = [known = settings_->known](int workers) { known->workers = workers; };
  }
  stream.padding = settings_->survey.length.padding;
  stream.prefetch = settings_->prefetch;
  stream.prefetch_bytes = settings_->prefetch_bytes;
  return stream;
}

std::string WebDataset::state_words(const OpenOptions& options) const {
  return describe(part_options(options), facts_for(options, /*counted=*/true).get());
}

std::string WebDataset::state(const OpenOptions& options) const {
  return base::str(state_words(options), " batches=", options.skip_batches);
}

std::unique_ptr<Stream> WebDataset::resume(const std::string& state, const OpenOptions& options) const {
  const OpenOptions at = position_in(state, options);
  expect_same(state, this->state(at), {{"", urls()}}, options.part == 0);
  return open(at);
}

std::int64_t WebDataset::batches(std::int64_t replicas, std::int64_t epoch) const {
  demand(replicas > 0, "a number of replicas", replicas, "1 or more");
  const auto facts = base::value_or_throw(settings_->learn());
  if (settings_->original_workers > 0)
    return OriginalPlan::make(facts->sizes, replicas, settings_->original_workers, settings_->batch,
                              settings_->original_samples, remainder() == Remainder::kDrop)
        .steps();
  if (!settings_->shapes.empty()) {
    OpenOptions all;
    all.epoch = epoch;
    all.replicas = replicas;
    check();
    return bucket_batches(facts, part_options(all));
  }
  return BatchPlan{facts->total, settings_->batch, replicas, remainder(), epoch}.batches();
}

}  // namespace sluice::data
