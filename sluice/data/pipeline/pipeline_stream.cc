#include "sluice/data/pipeline/pipeline_stream.h"

#include <algorithm>
#include <exception>

#include "sluice/base/log.h"
#include "sluice/base/span.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/thread.h"
#include "sluice/data/decode/fit_length.h"
#include "sluice/data/memory.h"
#include "sluice/data/order/mixture_reader.h"
#include "sluice/data/pipeline/tuning.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

constexpr std::size_t kMaxChunk = 16;  // samples that a decoder takes at a time

// Returns roughly the memory that a batch holds.
std::int64_t bytes_of(const RawBatch& raw) {
  std::int64_t sum = 0;
  for (const auto& row : raw.rows)
    if (row) sum += static_cast<std::int64_t>(row->bytes());
  return sum;
}

std::uint64_t bytes_of(const Value& value) {
  if (const auto* image = std::get_if<Image>(&value)) return image->pixels.bytes();
  if (const auto* array = std::get_if<Array>(&value)) return array->bytes();
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  return sizeof(Value);
}

std::int64_t bytes_of(const Batch& batch) {
  std::size_t sum = 0;
  for (const Column& column : batch.columns) {
    sum += column.array.bytes();
    for (const std::string& text : column.text) sum += text.size();
  }
  return static_cast<std::int64_t>(sum);
}

base::Result<bool> read_batch(PartReader& reader, RawBatch& raw) {
  base::Span span("read");
  SLUICE_TRY(const bool found, reader.next(raw));
  if (base::spans_are_recorded()) span.batch(raw.index).bytes(bytes_of(raw));
  return found;
}

bool hands_on_bytes(const StreamSource& source) {
  return stays_bytes(source.decode) && source.maps.empty() && !source.decode.mix.wanted();
}

}  // namespace

base::Result<Sample> decode_and_map(RawSample& raw, const StreamSource& source) {
  SLUICE_TRY(Sample sample, decode_sample(raw, source.decode));
  for (const auto& map : source.maps) {
    try {
      map(sample);
    } catch (const Error& error) {
      return base::fail(error.code(), raw.where(), ": in map(): ", error.what());
    } catch (const std::exception& error) {
      return base::fail(Code::kInvalidArgument, raw.where(), ": in map(): ", error.what());
    }
  }
  return sample;
}

PipelineStream::PipelineStream(StreamOptions options)
    : options_(std::move(options)),
      hands_on_bytes_(options_.part.shapes.empty() &&
                      std::all_of(options_.sources.begin(), options_.sources.end(), hands_on_bytes)) {
  for (StreamSource& source : options_.sources) source.read->source.cancelled = &stopped_;
  if (options_.mixture) statistics_.sources.resize(options_.sources.size());
  statistics_.decoders = options_.workers;
  threads_.emplace_back([this] { read(); });
  if (hands_on_bytes_) return;
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { decode(); });
}

PipelineStream::~PipelineStream() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  chunk_ready_.notify_all();
  batch_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PipelineStream::read() {
  base::name_thread("sluice-read");
  base::Status status;
  try {
    status = read_epoch();
  } catch (const std::exception& error) {
    status = base::fail(Code::kResourceExhausted, "reading stopped: ", error.what());
  }
  if (!status) fail_in_order(status.error());
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    statistics_.reader_busy = clock_.seconds() - statistics_.reader_idle;
  }
  batch_ready_.notify_all();
  chunk_ready_.notify_all();
}

base::Result<std::unique_ptr<PartReader>> PipelineStream::make_reader() const {
  if (!options_.mixture) return make_part_reader(*options_.sources.front().read, options_.part);
  std::vector<MixedSource> mixed;
  for (const StreamSource& source : options_.sources)
    mixed.push_back({source.read.get(), options_.part.shuffle, source.seed, source.capacity});
  return make_mixture_reader(std::move(mixed), options_.mixture, options_.part);
}

base::Status PipelineStream::read_epoch() {
  SLUICE_TRY(const auto reader, make_reader());
  while (true) {
    RawBatch raw;
    SLUICE_TRY(const bool found, read_batch(*reader, raw));
    if (!found || !dispatch(std::move(raw))) return {};
  }
}

// Hands a batch to the decoders as soon as there is room; false if the stream is being closed.
bool PipelineStream::dispatch(RawBatch raw) {
  auto work = std::make_shared<Work>();
  work->bytes = bytes_of(raw);
  const std::size_t count = raw.rows.size();
  if (auto taken = hands_on_bytes_ ? take_bytes(raw) : std::nullopt) {
    work->result = std::move(*taken);
    work->finished = true;
  } else {
    work->raw = std::move(raw);
    work->samples.resize(count);
  }
  const std::size_t share = count / (2 * static_cast<std::size_t>(options_.workers)) + 1;
  // If there is nothing to decode, a batch is one piece of work, and the reader does it itself.
  const std::size_t step = hands_on_bytes_ ? count + 1 : std::min(kMaxChunk, share);
  work->chunks_left = std::max<std::size_t>(1, (count + step - 1) / step);

  std::unique_lock lock(mutex_);
  const base::Stopwatch waited;
  room_.wait(lock, [&] {
    return stopped_ || pending_.empty() ||
           (pending_.size() < static_cast<std::size_t>(options_.prefetch) &&
            pending_bytes_ + work->bytes <= options_.prefetch_bytes);
  });
  statistics_.reader_idle += waited.seconds();
  if (stopped_) return false;
  pending_bytes_ += work->bytes;
  pending_.push_back(work);
  if (hands_on_bytes_) {
    if (work->finished) statistics_.samples += static_cast<std::int64_t>(count);
    lock.unlock();
    if (work->finished)
      batch_ready_.notify_one();
    else
      decode_chunk({work, 0, count});
    return true;
  }
  for (std::size_t i = 0; i < work->chunks_left; ++i)
    chunks_.push_back({work, i * step, std::min(count, (i + 1) * step)});
  lock.unlock();
  chunk_ready_.notify_all();
  return true;
}

void PipelineStream::fail_in_order(const Error& error) {
  auto work = std::make_shared<Work>();
  work->result = tl::unexpected<Error>(error);
  work->finished = true;
  std::lock_guard lock(mutex_);
  pending_.push_back(std::move(work));
}

void PipelineStream::decode() {
  base::name_thread("sluice-decode");
  while (true) {
    std::unique_lock lock(mutex_);
    const base::Stopwatch waited;
    chunk_ready_.wait(lock, [&] { return stopped_ || ended_ || !chunks_.empty(); });
    statistics_.decoder_idle += waited.seconds();
    if (stopped_ || chunks_.empty()) return;
    const Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    lock.unlock();
    decode_chunk(chunk);
  }
}

// Makes a batch of the members' bytes, without a copy. Returns nothing if samples must be decoded one by one:
// because of padding, a sample that could not be read, or a member that is missing or wanted twice.
std::optional<Batch> PipelineStream::take_bytes(RawBatch& raw) const {
  const std::size_t rows = raw.rows.size(), fields = options_.sources.front().decode.fields.size();
  std::vector<Field*> taken;
  taken.reserve(rows * fields);
  for (auto& row : raw.rows) {
    if (!row || row->failed) return std::nullopt;
    const auto& plans = source_of(*row).decode.fields;
    if (plans.size() != fields) return std::nullopt;
    for (const FieldPlan& plan : plans) {
      const Field* found = find_field(*row, plan);
      if (found == nullptr) return std::nullopt;
      Field* field = &row->fields[static_cast<std::size_t>(found - row->fields.data())];
      const auto own = taken.end() - (&plan - plans.data());
      if (std::find(own, taken.end(), field) != taken.end()) return std::nullopt;
      taken.push_back(field);
    }
  }
  if (rows == 0) return std::nullopt;
  Batch batch;
  batch.columns.resize(fields);
  for (std::size_t i = 0; i < fields; ++i) {
    batch.columns[i].text.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row)
      batch.columns[i].text.push_back(std::move(taken[row * fields + i]->bytes));
  }
  batch.keys.reserve(rows);
  for (auto& row : raw.rows) {
    batch.keys.push_back(std::move(row->key));
    if (options_.mixture) batch.sources.push_back(row->source);
  }
  batch.mask = Array(ElementType::kBool, {static_cast<std::int64_t>(rows)});
  std::fill_n(batch.mask.data<bool>(), rows, true);
  batch.count = static_cast<std::int64_t>(rows);
  number(batch, raw);
  return batch;
}

// Sets the batch's index in the epoch and its weight.
void PipelineStream::number(Batch& batch, const RawBatch& raw) const {
  batch.index = raw.index;
  batch.global_count = raw.global_count;
  batch.weight = static_cast<float>(batch.count * options_.part.parts) / static_cast<float>(raw.global_count);
}

base::Result<Sample> PipelineStream::decode_one(RawSample& raw, std::int64_t length) const {
  if (raw.failed) return tl::unexpected<Error>(*raw.failed);
  SLUICE_TRY(Sample sample, decode_and_map(raw, source_of(raw)));
  if (length == 0) return sample;
  const auto fitted = fit_length(sample, raw.length, length, options_.padding);
  if (!fitted) return base::fail_at(fitted, raw.where());
  return sample;
}

// Counts the decoded samples of a batch, which are all held until the batch is complete.
base::Status PipelineStream::hold_decoded(Work& work, const Sample& sample) const {
  std::uint64_t bytes = 0;
  for (const Value& value : sample.fields) bytes += bytes_of(value);
  const std::uint64_t limit = memory_limits().readers;
  if (work.decoded.fetch_add(bytes) + bytes <= limit) return {};
  return base::fail(
      Code::kResourceExhausted, "the decoded samples of its batch, including it, have more than ", limit,
      " bytes: choose a smaller --batch-size or smaller images, or allow more with --max-buffered");
}

// Decodes a chunk; the last chunk of a batch finishes the batch.
void PipelineStream::decode_chunk(const Chunk& chunk) {
  const base::Stopwatch busy;
  Work& work = *chunk.work;
  base::Span span("decode");
  span.batch(work.raw.index);
  for (std::size_t i = chunk.begin; i < chunk.end && !stopped_; ++i) {
    auto& raw = work.raw.rows[i];
    if (!raw) continue;
    try {
      work.samples[i] = decode_one(*raw, work.raw.length);
      if (work.raw.length > 0 && raw->length > work.raw.length) ++work.cut;
      if (*work.samples[i])
        if (const auto held = hold_decoded(work, **work.samples[i]); !held)
          work.samples[i] = base::fail_at(held, raw->where());
      // A bad sample's row is filled with another sample's image, so images are kept until then.
      if (*work.samples[i] && on_error() == OnError::kStop)
        work.images.take(**work.samples[i], i, work.samples.size());
    } catch (const std::exception& error) {
      work.samples[i] = base::fail(Code::kResourceExhausted, raw->where(), ": ", error.what());
    }
    raw.reset();
    // Errors after this one cannot be the batch's first error.
    if (!*work.samples[i] && on_error() == OnError::kStop) break;
  }
  std::unique_lock lock(mutex_);
  const bool last = --work.chunks_left == 0;
  lock.unlock();
  if (last) {
    try {
      work.result = finish(work);
    } catch (const std::exception& error) {
      work.result =
          base::fail(Code::kResourceExhausted, "a batch of ", work.samples.size(), " rows: ", error.what());
    }
  }
  lock.lock();
  statistics_.decoder_busy += busy.seconds();
  if (!last) return;
  work.finished = true;
  if (*work.result) {
    statistics_.samples += (*work.result)->count;
    statistics_.cut += work.cut;
    const std::int64_t bytes = bytes_of(**work.result);
    pending_bytes_ += bytes - work.bytes;
    work.bytes = bytes;
  }
  lock.unlock();
  batch_ready_.notify_one();
}

// Returns the layout of the first sample that can be read, in a batch of this length.
base::Result<BatchLayout> PipelineStream::layout_for_padding(std::int64_t length) {
  {
    std::lock_guard lock(mutex_);
    const auto known = padding_layouts_.find(length);
    if (known != padding_layouts_.end()) return known->second;
  }
  RangeOptions range;
  const ReadSettings& settings = *options_.sources.front().read;
  for (std::size_t shard = 0; shard < settings.urls->size(); ++shard)
    range.segments.push_back({shard, 0, settings.facts ? settings.facts->sizes[shard] : kToTheEnd});
  RangeReader reader(settings, std::move(range));
  RawSample raw;
  SLUICE_TRY(const bool found, reader.next(raw));
  if (!found) return base::fail(Code::kInvalidArgument, "no samples to make a batch of padding like");
  SLUICE_TRY(const Sample sample, decode_one(raw, length));
  std::lock_guard lock(mutex_);
  return padding_layouts_[length] = layout_of(sample);
}

// Fills the rows of bad samples: with padding if the dataset pads, else with a copy of the nearest good
// sample before it in the batch, or after it if no good one is before. So all other rows are unchanged.
base::Status PipelineStream::replace_bad(Work& work, std::vector<std::optional<Sample>>& rows) const {
  std::vector<std::size_t> bad;
  std::optional<std::size_t> good;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] && !good) good = i;
    if (!work.samples[i] || *work.samples[i]) continue;
    bad.push_back(i);
    work.bad.push_back(work.samples[i]->error());
  }
  if (bad.empty() || options_.part.remainder == Remainder::kPad) return {};
  if (!good)
    return base::fail(Code::kDataLoss, "all samples of a batch are bad; the first: ", work.bad[0].what());
  for (const std::size_t i : bad) rows[i] = i > 0 && rows[i - 1] ? rows[i - 1] : rows[*good];
  return {};
}

base::Result<Batch> PipelineStream::finish(Work& work) {
  const bool stop = on_error() == OnError::kStop;
  std::vector<std::optional<Sample>> rows(work.samples.size());
  std::optional<std::size_t> first;
  if (stopped_) return base::fail(Code::kCancelled, "the stream is being closed");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!work.samples[i]) continue;
    if (!*work.samples[i] && stop) return tl::unexpected<Error>(work.samples[i]->error());
    if (!*work.samples[i]) continue;
    rows[i] = std::move(**work.samples[i]);
    if (!first) first = i;
  }
  if (!stop) SLUICE_OK(replace_bad(work, rows));
  BatchLayout layout;
  if (first) {
    layout = layout_of(*rows[*first]);
  } else {
    SLUICE_TRY(layout, layout_for_padding(work.raw.length));
  }
  std::vector<int> sources;
  for (const auto& row : rows)
    if (row && options_.mixture) sources.push_back(row->source);
  Array lengths;
  if (work.raw.length > 0) {
    lengths = Array::zeros(ElementType::kInt64, {static_cast<std::int64_t>(rows.size())});
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i]) lengths.data<std::int64_t>()[i] = rows[i]->length;
  }
  base::Span span("collate");
  span.batch(work.raw.index);
  SLUICE_TRY(Batch batch, collate(std::move(rows), layout, work.images));
  batch.sources = std::move(sources);
  const DecodePlan& decode = options_.sources.front().decode;
  if (decode.mix.wanted()) SLUICE_OK(mix_rows(batch, decode.mix, decode.seed, decode.epoch));
  if (lengths.defined()) batch.columns.push_back({lengths, {}});
  batch.lengths = std::move(lengths);
  work.samples.clear();
  number(batch, work.raw);
  return batch;
}

// Reports each bad sample once; too many of them are an error.
void PipelineStream::count_bad(const Work& work) {
  for (const Error& error : work.bad) {
    ++statistics_.bad;
    // A lost shard is reported once, not once for each of its samples.
    if (last_bad_ != error.what()) base::warn("bad sample, left out: ", error.what());
    last_bad_ = error.what();
    if (statistics_.bad > options_.max_bad) {
      error_ = Error(error.code(), base::str("more than ", options_.max_bad,
                                             " bad samples in this epoch (the limit of --max-bad); "
                                             "the last: ",
                                             error.what()));
      throw_error(*error_);
    }
  }
}

std::optional<Batch> PipelineStream::next() {
  if (error_) throw_error(*error_);
  std::unique_lock lock(mutex_);
  const base::Stopwatch waited;
  batch_ready_.wait(lock, [&] { return pending_.empty() ? ended_ : pending_.front()->finished; });
  statistics_.consumer_waiting += waited.seconds();
  if (pending_.empty()) {
    if (statistics_.bad > 0 && !end_reported_)
      base::warn(base::counted(statistics_.bad, "bad sample"), statistics_.bad == 1 ? " was" : " were",
                 " left out of epoch ", options_.part.epoch, ", of ", options_.max_bad, " allowed");
    if (statistics_.decoders > options_.workers && !end_reported_)
      base::info("data: ", statistics_.decoders, " threads decode, ", options_.workers,
                 " at the start of epoch ", options_.part.epoch, ": batches were late because of decoding");
    end_reported_ = true;
    return std::nullopt;
  }
  const std::shared_ptr<Work> work = std::move(pending_.front());
  pending_.pop_front();
  pending_bytes_ -= work->bytes;
  tune();
  if (*work->result) {
    ++statistics_.batches;
    for (const int source : (*work->result)->sources) ++statistics_.sources[static_cast<std::size_t>(source)];
  }
  count_bad(*work);
  lock.unlock();
  room_.notify_one();
  if (!*work->result) {
    error_ = work->result->error();
    throw_error(*error_);
  }
  return std::move(**work->result);
}

// Adds decoders if the run waits for them.
void PipelineStream::tune() {
  statistics_.seconds = clock_.seconds();
  if (statistics_.seconds - tuned_.seconds < 0.5 || hands_on_bytes_) return;
  const int more = decoders_to_add(tuned_, statistics_, options_.max_workers);
  for (int i = 0; i < more; ++i) threads_.emplace_back([this] { decode(); });
  statistics_.decoders += more;
  tuned_ = statistics_;
  if (more > 0 && options_.on_workers) options_.on_workers(statistics_.decoders);
}

std::string PipelineStream::state() const {
  const std::string words = options_.state();
  std::lock_guard lock(mutex_);
  return base::str(words, " batches=", options_.part.skip_batches + statistics_.batches);
}

Statistics PipelineStream::statistics() const {
  std::lock_guard lock(mutex_);
  Statistics result = statistics_;
  result.seconds = clock_.seconds();
  result.cached = true;
  for (const StreamSource& source : options_.sources) {
    result.bytes += source.read->bytes;
    result.shards += source.read->shards;
    const ReadSettings& read = *source.read;
    result.remote = result.remote || std::any_of(read.urls->begin(), read.urls->end(), is_remote);
    result.cached = result.cached && !read.source.cache_folder.empty();
    if (read.facts)
      for (std::size_t shard = 0; shard < read.facts->starts.size(); ++shard)
        result.indexed = result.indexed && read.facts->is_indexed(shard);
  }
  if (!ended_) result.reader_busy = result.seconds - result.reader_idle;
  return result;
}

}  // namespace sluice::data
