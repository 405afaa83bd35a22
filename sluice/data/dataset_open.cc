// WebDataset::open() and what belongs to it: where a stream begins, and whether it is the same one again.
#include <algorithm>
#include <map>

#include "sluice/base/thread.h"
#include "sluice/data/dataset_settings.h"
#include "sluice/data/order/pipeline_stream.h"

namespace sluice::data {
namespace {

Wanted wanted_members(const DecodePlan& plan) {
  Wanted wanted{false, {}};
  for (const FieldPlan& field : plan.fields)
    wanted.extensions.insert(field.extensions.begin(), field.extensions.end());
  return wanted;
}

// Ranges for the replicas: those of the settings when samples are shuffled; otherwise one for each replica,
// or a single one, in the shards' order, when there is one part.
std::int64_t ranges_for(const WebDataset::Settings& settings, const OpenOptions& options) {
  const std::int64_t replicas = options.parts * options.replicas;
  if (!settings.shuffle) return options.parts == 1 ? 1 : replicas;
  if (settings.ranges % replicas == 0 || settings.original_workers > 0) return settings.ranges;
  const std::int64_t next = (settings.ranges + replicas - 1) / replicas * replicas;
  misuse(base::str("WebDataset: ", settings.ranges, " ranges cannot be dealt to ", replicas,
                   " replicas: expected a multiple of them; the next is --streams ", next,
                   " (in C++ interleave(", next, ")). The order of samples depends on this number"));
}

std::int64_t bad_limit(double limit, const PartOptions& part, const ShardFacts* facts) {
  if (limit >= 1) return static_cast<std::int64_t>(limit);
  return facts == nullptr ? 0
                          : static_cast<std::int64_t>(limit * static_cast<double>(facts->total) /
                                                      static_cast<double>(part.parts));
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

// All that the order depends on, and the epoch. Words of the form name=value.
std::string describe(const PartOptions& part, const ShardFacts* facts) {
  std::string text = base::str("sluice-stream=1 epoch=", part.epoch, " seed=", part.seed,
                               " global-batch=", part.global_rows(), " remainder=", name_of(part.remainder));
  if (part.shuffle) text += base::str(" streams=", part.ranges);  // the name that checkpoints have
  if (part.original_workers > 0)
    text += base::str(" original-workers=", part.original_workers, " replicas=", part.replicas());
  if (!part.shuffle && part.parts > 1) text += base::str(" replicas=", part.replicas());
  if (facts == nullptr) return text + base::str(" buffer=", part.shuffle ? part.buffer_samples : 0);
  text += base::str(" buffer=", part.original_workers > 0 ? part.buffer_samples : buffer_share(part, *facts),
                    " samples=", facts->total, " shards=", facts->fingerprint, " content=", facts->content);
  if (facts->times) text += base::str(" times=", *facts->times);
  if (facts->sums) text += base::str(" sums=", *facts->sums);
  return text;
}

using Words = std::map<std::string, std::string>;

Words words_of(const std::string& text) {
  Words words;
  for (const std::string& word : base::split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return words;
}

std::int64_t number_in(const Words& words, const char* name) {
  const auto found = words.find(name);
  const auto number = found == words.end() ? base::Result<std::int64_t>(base::fail(Code::kNotFound, name))
                                           : parse_whole_number(found->second);
  if (!number || *number < 0)
    misuse(base::str("a stream's state has no number '", name, "': expected text that Stream::state() gave"));
  return *number;
}

// Whether both states say something of the shards' content, and not the same.
bool differ(const Words& before, const Words& now, const char* name) {
  const auto was = before.find(name), is = now.find(name);
  return was != before.end() && is != now.end() && was->second != is->second;
}

// Whether the shards still hold what they held. Sums that an index wrote say it of local shards wherever they
// were copied to; without sums the times do, of the first part alone: other hosts have copies of their own.
// In `now` nothing is left of this.
base::Status check_content(const std::vector<std::string>& urls, bool first_part, const Words& before,
                           Words& now) {
  const bool summed = before.contains("sums") && now.contains("sums");
  const bool touched = first_part && differ(before, now, "times");
  const bool changed = differ(before, now, "content") || (summed && differ(before, now, "sums"));
  for (const char* name : {"content", "sums", "times"}) now.erase(name);
  if (!changed && touched && summed) return check_sums(urls);
  if (!changed && !touched) return {};
  return base::fail(Code::kFailedPrecondition, "the shards have the same names and numbers of samples, but ",
                    changed
                        ? "other contents than they had"
                        : "local ones were written since. If they are copies of what they were, give them "
                          "the times of the originals (cp -p, rsync -t); with the sums that 'sluice data "
                          "index' writes into sizes.json times do not matter");
}

}  // namespace

base::Result<std::shared_ptr<const ShardFacts>> WebDataset::Settings::learn(
    const std::vector<std::string>& urls) const {
  std::lock_guard lock(known->mutex);
  if (!known->facts) {
    LearnOptions options;
    options.shard_size = shard_size;
    options.skip_damaged = on_error != OnError::kStop;
    options.allow_unknown_loss = options.skip_damaged && allow_unknown_loss;
    options.cache_folder = cache_folder;
    options.cache_bytes = static_cast<std::uint64_t>(cache_bytes);
    SLUICE_TRY(ShardFacts facts, learn_shards(urls, options));
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
  part.skip_batches = options.skip_batches;
  part.original_workers = settings_->original_workers;
  part.original_samples = settings_->original_samples;
  return part;
}

// The shards are counted where the order depends on it, and where a state is asked for (`counted`). What can
// be read only once is one range for one part.
std::shared_ptr<const ShardFacts> WebDataset::facts_for(const OpenOptions& options, bool counted) const {
  const auto shards = urls();
  const bool again = std::all_of(shards.begin(), shards.end(), can_be_read_again);
  const bool needed = settings_->shuffle || options.parts > 1 || settings_->original_workers > 0 ||
                      remainder() == Remainder::kCarry;
  if (again && (counted || needed || options.skip_batches > 0 || settings_->on_error != OnError::kStop))
    return base::value_or_throw(settings_->learn(shards));
  if (options.parts > 1 || settings_->original_workers > 0 || remainder() == Remainder::kCarry)
    misuse(
        "WebDataset: what comes from stdin or a pipe can be read only once: it cannot be split into parts "
        "or carried over epochs");
  std::lock_guard lock(settings_->known->mutex);
  return settings_->known->facts;
}

std::unique_ptr<Stream> WebDataset::open() const { return open(settings_->epoch); }

std::unique_ptr<Stream> WebDataset::open(std::int64_t epoch, std::int64_t part, std::int64_t parts,
                                         std::int64_t skip_batches) const {
  return open(OpenOptions{epoch, part, parts, 1, skip_batches});
}

std::unique_ptr<Stream> WebDataset::open(const OpenOptions& options) const {
  check();
  StreamOptions stream;
  stream.part = part_options(options);
  stream.read = std::make_unique<ReadSettings>();
  stream.read->urls = urls();
  stream.read->source.cache_folder = settings_->cache_folder;
  stream.read->source.cache_bytes = static_cast<std::uint64_t>(settings_->cache_bytes);
  stream.read->facts = facts_for(options, /*counted=*/false);
  stream.read->wanted = wanted_members(settings_->decode);
  stream.read->on_error = settings_->on_error;
  stream.decode = settings_->decode;
  stream.decode.seed = settings_->seed;
  stream.decode.epoch = options.epoch;
  stream.maps = settings_->maps;
  stream.max_bad = bad_limit(settings_->max_bad, stream.part, stream.read->facts.get());
  stream.state = [dataset = *this, options] { return dataset.state_words(options); };
  stream.workers = settings_->workers > 0
                       ? settings_->workers
                       : static_cast<int>(std::min<std::size_t>(8, base::available_processors()));
  stream.prefetch = settings_->prefetch;
  stream.prefetch_bytes = settings_->prefetch_bytes;
  return std::make_unique<PipelineStream>(std::move(stream));
}

std::string WebDataset::state_words(const OpenOptions& options) const {
  return describe(part_options(options), facts_for(options, /*counted=*/true).get());
}

std::string WebDataset::state(const OpenOptions& options) const {
  return base::str(state_words(options), " batches=", options.skip_batches);
}

std::unique_ptr<Stream> WebDataset::resume(const std::string& state, const OpenOptions& options) const {
  const auto before = words_of(state);
  OpenOptions at = options;
  at.epoch = number_in(before, "epoch");
  at.skip_batches = number_in(before, "batches");
  auto now = words_of(this->state(at));
  const base::Status content = check_content(urls(), options.part == 0, before, now);
  std::vector<std::string> differences;
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    const std::string was = found == before.end() ? "not set" : found->second;
    if (was != value) differences.push_back(base::str(name, " is ", value, " now and was ", was));
  }
  if (differences.empty() && content) return open(at);
  if (differences.empty())
    throw_error(content.error().code(), base::str("cannot go on in mid-epoch: ", content.error().what()));
  misuse(base::str("cannot go on in mid-epoch, because the samples would come in another order: ",
                   base::join(differences, "; "),
                   ". Set this as it was when the state was taken, or begin with the next epoch"));
}

std::int64_t WebDataset::batches(std::int64_t replicas, std::int64_t epoch) const {
  demand(replicas > 0, "a number of replicas", replicas, "1 or more");
  const auto facts = base::value_or_throw(settings_->learn(urls()));
  if (settings_->original_workers > 0)
    return OriginalPlan::make(facts->sizes, replicas, settings_->original_workers, settings_->batch,
                              settings_->original_samples, remainder() == Remainder::kDrop)
        .steps();
  return BatchPlan{facts->total, settings_->batch, replicas, remainder(), epoch}.batches();
}

}  // namespace sluice::data
