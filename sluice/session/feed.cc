#include "sluice/session/feed.h"

#include <algorithm>
#include <thread>

#include "sluice/base/queue.h"
#include "sluice/base/span.h"
#include "sluice/base/thread.h"
#include "sluice/data/torch_adapter.h"
#include "sluice/session/feed_state.h"

namespace sluice {
namespace sessions {

std::vector<HostBatch> split_batch(const data::Batch& batch, int replicas, bool padded) {
  const int64_t rows = batch.size() / replicas;
  const at::Tensor image = batch.image.defined() ? data::to_tensor(batch.image) : at::Tensor();
  const at::Tensor label = batch.label.defined() ? data::to_tensor(batch.label) : at::Tensor();
  const at::Tensor mask = padded ? data::to_tensor(batch.mask) : at::Tensor();
  std::vector<at::Tensor> columns;
  for (const auto& column : batch.columns)
    if (column.array.defined()) columns.push_back(data::to_tensor(column.array));
  // The batch's own weight is count × parts ÷ global_count; each replica gets its part of this weight.
  const double scale = batch.count > 0 ? batch.weight / static_cast<double>(batch.count) : 0;
  std::vector<HostBatch> result;
  auto key = batch.keys.begin();
  for (int r = 0; r < replicas; ++r) {
    auto rows_of = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, r * rows, rows) : all; };
    HostBatch part;
    for (const auto& column : columns) part.columns.push_back(rows_of(column));
    part.image = rows_of(image);
    part.label = rows_of(label);
    part.mask = rows_of(mask);
    const bool* own_mask = batch.mask.data<bool>() + r * rows;
    part.count = std::count(own_mask, own_mask + rows, true);
    const auto known = std::min<std::ptrdiff_t>(part.count, batch.keys.end() - key);
    part.keys.assign(key, key + known);
    key += known;
    part.weight = static_cast<float>(static_cast<double>(part.count) * scale * replicas);
    result.push_back(std::move(part));
  }
  return result;
}

DatasetSource dataset_source(const data::Dataset& dataset, int replicas, int part, int parts,
                             const FeedOptions& options) {
  const bool padded = dataset.remainder() == data::Remainder::kPad;
  // A last batch that is not a multiple of the replicas cannot be split.
  const bool whole_batches = replicas > 1;
  const data::OpenOptions open{options.epoch, part, parts, replicas, options.skip, whole_batches};
  std::shared_ptr<data::Stream> stream =
      options.state.empty() ? dataset.open(open) : dataset.resume(options.state, open);
  DatasetSource source;
  source.statistics = [stream] { return stream->statistics(); };
  source.next = [stream, replicas, padded]() -> std::vector<HostBatch> {
    auto batch = stream->next();
    if (!batch) return {};
    return split_batch(*batch, replicas, padded);
  };
  return source;
}

}  // namespace sessions

namespace feed_detail {

// Returns one column of all replicas, on the device; undefined if the source has none.
template <typename Column>
at::Tensor upload(const sessions::Backend& backend, const std::vector<sessions::HostBatch>& group,
                  const Column& column) {
  std::vector<at::Tensor> parts;
  for (const auto& batch : group) {
    at::Tensor tensor = column(batch);
    if (!tensor.defined()) return {};
    if (!parts.empty() &&
        (tensor.sizes() != parts[0].sizes() || tensor.scalar_type() != parts[0].scalar_type()))
      throw_error(Code::kInvalidArgument,
                  base::str("the replicas' batches differ: ", tensor.scalar_type(), " ", tensor.sizes(),
                            " and ", parts[0].scalar_type(), " ", parts[0].sizes(),
                            ". Feed batches of one shape (drop the last, smaller one)."));
    parts.push_back(tensor);
  }
  return backend.upload(parts);
}

Batch to_device(const sessions::Backend& backend, const std::vector<sessions::HostBatch>& group,
                int64_t index) {
  Batch result;
  result.index = index;
  for (size_t i = 0; i < group[0].columns.size(); ++i)
    result.columns.push_back(
        upload(backend, group, [i](const sessions::HostBatch& b) { return b.columns.at(i); }));
  // The image and the label are also columns: the same memory is uploaded only once.
  auto pick = [&](auto member) {
    for (size_t i = 0; i < group[0].columns.size(); ++i) {
      const at::Tensor& wanted = group[0].*member;
      if (wanted.defined() && wanted.is_same(group[0].columns[i])) return result.columns[i];
      if (wanted.defined() && wanted.data_ptr() == group[0].columns[i].data_ptr() && wanted.numel() > 0)
        return result.columns[i];
    }
    return upload(backend, group, [&](const sessions::HostBatch& b) { return b.*member; });
  };
  result.image = pick(&sessions::HostBatch::image);
  result.label = pick(&sessions::HostBatch::label);
  result.mask = upload(backend, group, [](const sessions::HostBatch& b) { return b.mask; });
  // With a mesh over processes the mask covers the whole batch, which weighs 1.
  if (result.mask.defined())
    result.weight = upload(backend, group, [&](const sessions::HostBatch& b) {
      return at::scalar_tensor(backend.spans_processes() ? 1.0F : b.weight, at::kFloat);
    });
  for (const auto& batch : group) {
    result.count += batch.count;
    result.keys.insert(result.keys.end(), batch.keys.begin(), batch.keys.end());
  }
  return result;
}

// The tokens that this process gave to each replica, padding included; 0 if the batch is not one of sequences
// of numbers.
int64_t tokens_of(const Batch& batch, const sessions::Backend& backend) {
  const at::Tensor& first = batch.image;
  const bool is_sequences = first.defined() && first.dim() == 2 &&
                            (first.scalar_type() == at::kLong || first.scalar_type() == at::kInt);
  return is_sequences ? first.numel() / (backend.spans_processes() ? backend.batch_parts() : 1) : 0;
}

}  // namespace feed_detail

Feed::State::State(std::shared_ptr<const sessions::Backend> used, sessions::HostSource source,
                   const FeedOptions& options, OnBatch on_batch, std::function<data::Statistics()> statistics)
    : backend(std::move(used)),
      on_batch(std::move(on_batch)),
      statistics(std::move(statistics)),
      queue(static_cast<size_t>(std::max<int64_t>(1, options.prefetch))) {
  thread = std::thread([this, source = std::move(source), first = options.skip] {
    base::name_thread("sluice-feed");
    try {
      for (int64_t index = first;; ++index) {
        auto group = source();
        if (group.empty()) break;
        const base::Stopwatch upload;
        base::Span span("upload");
        span.batch(index);
        Batch batch = feed_detail::to_device(*backend, group, index);
        uploading = uploading + upload.seconds();
        if (!queue.push(std::move(batch))) return;
      }
      queue.close();
    } catch (const Error& error) {
      queue.close(error);
    } catch (const std::exception& error) {
      queue.close(Error(Code::kUnknown, error.what()));
    }
  });
}

Feed::State::~State() {
  queue.cancel();
  thread.join();
}

std::optional<Batch> Feed::State::wait_for_batch() {
  const base::Span span("wait for a batch");
  return base::value_or_throw(queue.pop());
}

void Feed::State::set_normalization(const std::vector<float>& mean, const std::vector<float>& deviation) {
  normalize = true;
  if (mean.empty() && deviation.empty()) return;
  const auto channels = static_cast<int64_t>(std::max(mean.size(), deviation.size()));
  at::Tensor means = mean.empty() ? at::zeros({channels}) : at::tensor(mean);
  at::Tensor deviations = deviation.empty() ? at::ones({channels}) : at::tensor(deviation);
  auto on_device = [&](const at::Tensor& t) {
    return t.to(at::kFloat).reshape({1, channels, 1, 1}).to(backend->device());
  };
  scale = on_device(1 / (255 * deviations));
  shift = on_device(-means / deviations);
}

void Feed::State::apply_normalization(Batch& batch) const {
  if (!normalize || !batch.image.defined() || batch.image.scalar_type() != at::kByte ||
      batch.image.dim() != 4)
    return;
  at::NoGradGuard no_grad;
  at::Tensor image = batch.image.to(at::kFloat);
  if (scale.defined())
    image = image * scale + shift;
  else
    image = image / 255;
  for (auto& column : batch.columns)
    if (column.is_same(batch.image)) column = image;
  batch.image = image;
}

Feed::Feed(std::unique_ptr<State> state) : state_(std::move(state)) {}
Feed::Feed(Feed&&) noexcept = default;
Feed& Feed::operator=(Feed&&) noexcept = default;
Feed::~Feed() = default;

std::shared_ptr<Batch> Feed::next() {
  state_->backend->cut("feed");
  const double busy = state_->backend->times().busy;
  const base::Stopwatch waited;
  std::optional<Batch> batch = state_->wait_for_batch();
  const double seconds = waited.seconds();
  state_->waiting += seconds;
  const double starving = std::clamp(seconds - (state_->backend->times().busy - busy), 0.0, seconds);
  state_->starving += starving;
  if (!batch) return nullptr;
  const int64_t tokens = feed_detail::tokens_of(*batch, *state_->backend) * state_->backend->local_replicas();
  state_->apply_normalization(*batch);
  state_->on_batch({.examples = batch->count, .tokens = tokens, .starving = starving});
  return std::make_shared<Batch>(std::move(*batch));
}

FeedStatistics Feed::statistics() const {
  FeedStatistics result;
  const double seconds = std::max(state_->clock.seconds(), 1e-9);
  result.waiting = state_->waiting / seconds;
  result.starving = state_->starving;
  result.uploading = state_->uploading / seconds;
  result.has_data = state_->statistics != nullptr;
  if (!result.has_data) return result;
  result.data = state_->statistics();
  const double reading = data::reading_share(result.data), decoding = data::decoding_share(result.data);
  result.narrowest = "upload";
  if (reading >= std::max(decoding, result.uploading))
    result.narrowest = "read";
  else if (decoding >= result.uploading)
    result.narrowest = "decode";
  return result;
}

Feed::Iterator Feed::begin() {
  Iterator first;
  first.feed_ = this;
  ++first;
  return first;
}

Feed::Iterator& Feed::Iterator::operator++() {
  current_.reset();  // frees the old batch's memory before the next batch is made
  current_ = feed_->next();
  return *this;
}

}  // namespace sluice
