#include "sluice/data/stream.h"

#include <algorithm>
#include <exception>

#include "sluice/base/thread.h"

namespace sluice::data {
namespace {

constexpr std::size_t kMaxChunk = 16;  // samples that a decoder takes at a time

}  // namespace

PipelineStream::PipelineStream(StreamOptions options)
    : options_(std::move(options)), reader_([this] {
        ReaderOptions reader = options_.reader;
        reader.cancelled = &stopped_;
        return reader;
      }()) {
  threads_.emplace_back([this] { read(); });
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

base::Status PipelineStream::read_epoch() {
  const std::int64_t global = options_.batch * options_.parts;
  std::int64_t total = 0, index = 0, in_batch = 0;
  std::vector<RawSample> mine;
  RawSample sample;
  while (true) {
    SLUICE_TRY(const bool found, reader_.next(sample));
    if (!found) break;
    if (total++ == 0) {
      std::lock_guard lock(mutex_);
      specimen_ = sample;
    }
    if (index >= options_.skip_batches && in_batch / options_.batch == options_.part)
      mine.push_back(std::move(sample));
    if (++in_batch < global) continue;
    if (index >= options_.skip_batches && !dispatch(std::move(mine), index, global)) return {};
    mine.clear();
    in_batch = 0;
    ++index;
  }
  if (total == 0)
    return base::fail(Code::kInvalidArgument, "no samples in ", options_.reader.urls.size(),
                      " shard(s), the first being '", options_.reader.urls.front(),
                      "': expected members such as 0001.jpg and 0001.cls");
  if (options_.remainder == Remainder::kDrop && total < global)
    return base::fail(Code::kInvalidArgument, "the ", total, " samples of an epoch do not fill one batch of ",
                      options_.batch, " × ", options_.parts, " = ", global,
                      ": use a smaller batch, or pad() or keep() instead of drop_last()");
  if (in_batch > 0 && options_.remainder != Remainder::kDrop && index >= options_.skip_batches)
    dispatch(std::move(mine), index, in_batch);
  return {};
}

// Hands a batch to the decoders as soon as there is room; false when the stream is being closed.
bool PipelineStream::dispatch(std::vector<RawSample> raw, std::int64_t index, std::int64_t global_count) {
  auto work = std::make_shared<Work>();
  work->index = index;
  work->global_count = global_count;
  work->rows =
      options_.remainder == Remainder::kKeep ? static_cast<std::int64_t>(raw.size()) : options_.batch;
  work->raw = std::move(raw);
  work->samples.resize(work->raw.size());
  const std::size_t count = work->raw.size();
  const std::size_t share = count / (2 * static_cast<std::size_t>(options_.workers)) + 1;
  const std::size_t step = std::min(kMaxChunk, share);
  work->chunks_left = std::max<std::size_t>(1, (count + step - 1) / step);

  std::unique_lock lock(mutex_);
  const base::Stopwatch waited;
  room_.wait(lock, [&] { return stopped_ || pending_.size() < static_cast<std::size_t>(options_.prefetch); });
  statistics_.reader_idle += waited.seconds();
  if (stopped_) return false;
  pending_.push_back(work);
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

base::Result<Sample> PipelineStream::decode_one(const RawSample& raw) const {
  SLUICE_TRY(Sample sample, decode_sample(raw, options_.decode));
  for (const auto& map : options_.maps) {
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

// The last chunk of a batch finishes the batch.
void PipelineStream::decode_chunk(const Chunk& chunk) {
  const base::Stopwatch busy;
  Work& work = *chunk.work;
  for (std::size_t i = chunk.begin; i < chunk.end && !stopped_; ++i) {
    try {
      work.samples[i] = decode_one(work.raw[i]);
    } catch (const std::exception& error) {
      work.samples[i] = base::fail(Code::kResourceExhausted, work.raw[i].where(), ": ", error.what());
    }
    if (!*work.samples[i]) break;  // what comes after it cannot be the batch's first error
    work.raw[i] = RawSample{};
  }
  std::unique_lock lock(mutex_);
  const bool last = --work.chunks_left == 0;
  lock.unlock();
  if (last) {
    try {
      work.result = finish(work);
    } catch (const std::exception& error) {
      work.result = base::fail(Code::kResourceExhausted, "a batch of ", work.rows, " rows: ", error.what());
    }
  }
  lock.lock();
  statistics_.decoder_busy += busy.seconds();
  if (!last) return;
  work.finished = true;
  statistics_.samples += static_cast<std::int64_t>(work.samples.size());
  lock.unlock();
  batch_ready_.notify_one();
}

base::Result<BatchLayout> PipelineStream::layout_for_padding() {
  std::unique_lock lock(mutex_);
  const RawSample specimen = *specimen_;
  lock.unlock();
  SLUICE_TRY(const Sample sample, decode_one(specimen));
  return layout_of(sample);
}

base::Result<Batch> PipelineStream::finish(Work& work) {
  std::vector<Sample> samples;
  for (auto& sample : work.samples) {
    if (!sample) return base::fail(Code::kCancelled, "the stream is being closed");
    SLUICE_TRY(auto decoded, std::move(*sample));
    samples.push_back(std::move(decoded));
  }
  BatchLayout layout;
  if (!samples.empty()) {
    layout = layout_of(samples.front());
  } else {
    SLUICE_TRY(layout, layout_for_padding());
  }
  SLUICE_TRY(Batch batch, collate(std::move(samples), work.rows, layout));
  if (options_.decode.mix.wanted())
    SLUICE_OK(mix_rows(batch, options_.decode.mix, options_.decode.seed, options_.decode.epoch));
  work.samples.clear();
  batch.index = work.index;
  batch.global_count = work.global_count;
  batch.weight = static_cast<float>(batch.count * options_.parts) / static_cast<float>(work.global_count);
  return batch;
}

std::optional<Batch> PipelineStream::next() {
  if (error_) throw *error_;
  std::unique_lock lock(mutex_);
  const base::Stopwatch waited;
  batch_ready_.wait(lock, [&] { return pending_.empty() ? ended_ : pending_.front()->finished; });
  statistics_.consumer_waiting += waited.seconds();
  if (pending_.empty()) return std::nullopt;
  const std::shared_ptr<Work> work = std::move(pending_.front());
  pending_.pop_front();
  if (*work->result) ++statistics_.batches;
  lock.unlock();
  room_.notify_one();
  if (!*work->result) {
    error_ = work->result->error();
    throw *error_;
  }
  return std::move(**work->result);
}

Statistics PipelineStream::statistics() const {
  std::lock_guard lock(mutex_);
  Statistics result = statistics_;
  result.seconds = clock_.seconds();
  result.bytes = reader_.bytes();
  result.shards = reader_.shards();
  if (!ended_) result.reader_busy = result.seconds - result.reader_idle;
  return result;
}

}  // namespace sluice::data
