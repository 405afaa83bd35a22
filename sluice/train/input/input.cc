#include "sluice/train/input/input.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/urls.h"
#include "sluice/data/stream_state.h"
#include "sluice/session/session.h"
#include "sluice/text/token_batches.h"
#include "sluice/train/recipe/recipe.h"

namespace sluice::train {
namespace input_detail {

// Images of one set: noise around a pattern of the class, so that a model can learn them.
class FakeBatches {
 public:
  // Makes the batches of this process's replicas of the session.
  FakeBatches(const TrainOptions& options, bool training, int64_t rows, const Session& session,
              int64_t samples, int64_t batches, int64_t skip)
      : options_(options),
        training_(training),
        rows_(rows),
        shares_(session.shares()),
        first_(session.batch_part() * session.local_replicas()),
        local_(session.local_replicas()),
        samples_(samples),
        batches_(batches),
        at_(skip) {}

  std::vector<sessions::HostBatch> operator()() {
    std::vector<sessions::HostBatch> group;
    if (at_ >= batches_) return group;
    for (int r = 0; r < local_; ++r) group.push_back(make(at_ * shares_ + first_ + r));
    ++at_;
    return group;
  }

 private:
  sessions::HostBatch make(int64_t number) const {
    const int64_t side = options_.image_size;
    base::Random random({options_.seed, training_ ? 1u : 2u, static_cast<uint64_t>(number)});
    sessions::HostBatch batch;
    batch.image = at::empty({rows_, options_.channels, side, side}, at::kByte);
    batch.label = at::empty({rows_}, at::kLong);
    auto* pixels = batch.image.data_ptr<uint8_t>();
    auto* labels = batch.label.data_ptr<int64_t>();
    const int64_t size = batch.image.numel() / rows_;
    for (int64_t row = 0; row < rows_; ++row) {
      labels[row] = static_cast<int64_t>(random.below(static_cast<uint64_t>(options_.classes)));
      for (int64_t i = 0; i < size; ++i) {
        const bool bright = (i / (1 + labels[row])) % 2 == 0;
        pixels[row * size + i] = static_cast<uint8_t>((random() & 127) + (bright ? 128 : 0));
      }
    }
    const int64_t left = samples_ - number * rows_;
    batch.count = std::clamp<int64_t>(left, 0, rows_);
    if (!training_) batch.mask = at::arange(rows_).lt(batch.count);
    batch.columns = {batch.image, batch.label};
    return batch;
  }

  TrainOptions options_;
  bool training_;
  int64_t rows_;
  int shares_, first_, local_;
  int64_t samples_, batches_, at_;
};

}  // namespace input_detail

void set_reading(const TrainOptions& options, bool training, data::WebDataset& dataset) {
  for (const std::string& condition : training ? options.where : options.test_where) dataset.where(condition);
  if (options.classes > 0) dataset.classes(options.classes);
  dataset.seed(options.seed);
  if (options.workers > 0) dataset.workers(options.workers);
  dataset.prefetch(64).prefetch_memory(options.prefetch << 20);
  if (!options.cache.empty()) dataset.cache(options.cache, options.cache_size << 30);
  dataset.on_error(options.on_error).max_bad(options.max_bad.limit());
  if (options.allow_unknown_loss) dataset.allow_unknown_loss();
  if (training && options.shard_size > 0) dataset.shard_size(options.shard_size);
}

void refuse_token_files(Task task, const std::string& shards) {
  const auto files = data::expand_urls(shards);
  if (!files) return;  // the reader reports why
  for (const std::string& file : *files)
    if (base::ends_with(file, ".bin") && base::path_exists(file.substr(0, file.size() - 4) + ".idx"))
      throw_error(Code::kInvalidArgument,
                  base::str("--task ", name_of(task), " wants shards (.tar), found token files: ", file,
                            "; those are for --task clm and --task mlm"));
}

namespace input_detail {

data::WebDataset describe(const TrainOptions& options, const std::string& shards, bool training,
                          int64_t rows) {
  refuse_token_files(options.task, shards);
  data::WebDataset dataset(shards);
  dataset.images(options.images, options.channels == 1 ? "l8" : "rgb8").labels(options.labels);
  set_reading(options, training, dataset);
  if (options.exif_rotation) dataset.exif_rotation();
  if (options.resize > 0) dataset.resize(options.resize);
  if (options.crop > 0 && training) dataset.crop(options.crop, options.crop_padding);
  if (options.crop > 0 && !training) dataset.center_crop(options.crop);
  if (const int64_t side = options.random_resized_crop; side > 0 && training) {
    dataset.random_resized_crop(side);
  } else if (side > 0) {
    dataset.resize(side * 8 / 7).center_crop(side);
  }
  if (options.flip && training) dataset.flip();
  if (const auto& x = options.color_jitter; !x.empty() && training)
    dataset.color_jitter(x[0], x[1], x[2], x[3]);
  if (const auto& x = options.rand_augment; !x.empty() && training) dataset.rand_augment(x[0], x[1]);
  if (options.auto_contrast > 0 && training) dataset.autocontrast(options.auto_contrast);
  const auto channels = static_cast<size_t>(options.channels);
  dataset.normalize(options.mean.empty() ? std::vector<float>(channels, 0.5F) : options.mean,
                    options.deviation.empty() ? std::vector<float>(channels, 0.25F) : options.deviation);
  if (options.mixup > 0 && training) dataset.mixup(options.mixup);
  if (options.cutmix > 0 && training) dataset.cutmix(options.cutmix);
  return dataset.batch(rows);
}

// Sets the order of the training set and the treatment of its remainder.
void set_order(const TrainOptions& options, data::WebDataset& dataset) {
  dataset.shuffle(options.shuffle);
  // The default value adapts to the number of replicas.
  if (options.streams != TrainOptions().streams) dataset.interleave(options.streams);
  if (options.original_workers > 0) {
    dataset.original(options.original_workers, options.original_samples);
  } else if (options.remainder == Remainder::kCarry) {
    dataset.carry();
  } else if (options.remainder == Remainder::kPad) {
    dataset.pad();
  } else {
    dataset.drop_last();
  }
}

// Checks that the epochs of a training set may have a batch; `together`: the rows of a batch on all replicas.
void check_batches(const Input& train, int64_t together) {
  // If rows are packed, another epoch may fill a batch.
  const bool always = train.epochs_are_alike() || train.samples() < together;
  if (train.batches() == 0 && always)
    throw_error(Code::kInvalidArgument,
                base::str("the training set has ", train.samples(), " samples, less than one batch of ",
                          together, ": choose a smaller --batch-size"));
}

struct ImageShape {
  int64_t channels = 0, side = 0;  // 0: not known yet
};

// Returns the shape of the first image of the shards. `before`: the shape of the images of other shards.
ImageShape look_at_first(const TrainOptions& options, const data::WebDataset& dataset,
                         const std::string& shards, const ImageShape& before) {
  data::WebDataset probe = dataset;
  auto first = probe.batch(1).keep().workers(1).prefetch(1).open()->next();
  if (!first || !first->image.defined() || first->image.shape().size() != 4)
    throw_error(Code::kInvalidArgument,
                base::str("no image with one of the extensions ", options.images, " in ", shards));
  if (!first->label.defined())
    throw_error(Code::kInvalidArgument,
                base::str("no label with the extension ", options.labels, " in ", shards));
  const int64_t channels = first->image.shape()[1], side = first->image.shape()[2];
  if (before.side > 0 && side != before.side)
    throw_error(
        Code::kInvalidArgument,
        base::str("images of ", shards, " have ", side, " rows, and images of ", options.mix.front().shards,
                  " ", before.side, ": make them the same size with --resize and --crop"));
  return {channels, side};
}

}  // namespace input_detail

Input::Input(const TrainOptions& options, bool training, int64_t rows, int replicas)
    : options_(options), training_(training), rows_(rows), replicas_(replicas) {
  if (options.fake_data) {
    samples_ = training ? options.train_size : options.test_size;
    channels_ = options.channels;
    image_size_ = options.image_size;
  } else {
    dataset_ =
        training && !options.mix.empty() ? open_mixture() : open_set(training ? options.train : options.test);
    samples_ = dataset_->size();
  }
  batches_ = batches(0);
  if (training) input_detail::check_batches(*this, rows_ * replicas_);
}

Input::Input(const TrainOptions& options, bool training, std::shared_ptr<const data::Dataset> set,
             int replicas)
    : options_(options),
      training_(training),
      rows_(set->batch_size()),
      replicas_(replicas),
      dataset_(std::move(set)) {
  if (!training && dataset_->remainder() != data::Remainder::kPad)
    throw_error(Code::kInvalidArgument,
                "the test set leaves samples out: pad its last batch, with .pad(), so that all of it is "
                "measured");
  batches_ = batches(0);  // counts the documents of a set of tokens; its size then costs nothing
  samples_ = dataset_->size();
  if (training) input_detail::check_batches(*this, rows_ * replicas_);
}

std::unique_ptr<data::Dataset> Input::open_set(const std::string& shards) {
  data::WebDataset dataset = input_detail::describe(options_, shards, training_, rows_);
  const auto [channels, side] =
      input_detail::look_at_first(options_, dataset, shards, {channels_, image_size_});
  channels_ = channels;
  image_size_ = side;
  left_out_ = dataset.left_out();
  if (training_)
    input_detail::set_order(options_, dataset);
  else
    dataset.pad();
  return std::make_unique<data::WebDataset>(std::move(dataset));
}

std::unique_ptr<data::Dataset> Input::open_mixture() {
  std::vector<data::Mix::Source> sources;
  for (const auto& [shards, amount] : options_.mix) {
    data::WebDataset dataset = input_detail::describe(options_, shards, training_, rows_);
    const auto [channels, side] =
        input_detail::look_at_first(options_, dataset, shards, {channels_, image_size_});
    channels_ = channels;
    image_size_ = side;
    left_out_ += dataset.left_out();
    dataset.shuffle(options_.shuffle).interleave(options_.streams);
    sources.push_back({std::move(dataset), amount, shards});
  }
  auto mixture = std::make_unique<data::Mix>(std::move(sources), options_.mix_by);
  // An epoch has whole updates, because --mix-from counts updates.
  const int64_t update = options_.accumulate * rows_ * replicas_;
  if (options_.epoch_samples > 0) mixture->epoch_samples(options_.epoch_samples);
  int64_t steps = mixture->size() / update;
  if (options_.steps_per_epoch > 0) steps = std::min(steps, options_.steps_per_epoch);
  if (steps > 0 && options_.mix_by == MixBy::kShare) mixture->epoch_samples(steps * update);
  for (const auto& [step, shares] : options_.mix_from) mixture->from(step * options_.accumulate, shares);
  mixture_ = mixture.get();
  return mixture;
}

std::vector<data::Mix::Taken> Input::mixed(int64_t epoch) const {
  return mixture_ == nullptr ? std::vector<data::Mix::Taken>() : mixture_->taken(epoch, replicas_);
}

std::vector<std::string> Input::class_names() const {
  if (channels_ == 0) return {};
  const auto shards = data::expand_urls(!training_             ? options_.test
                                        : options_.mix.empty() ? options_.train
                                                               : options_.mix.front().shards);
  if (!shards || shards->empty()) return {};
  auto names = data::class_names(shards->front());
  return static_cast<int64_t>(names.size()) == options_.classes ? names : std::vector<std::string>();
}

int64_t Input::batches(int64_t epoch) const {
  if (epoch == asked_epoch_) return asked_batches_;
  const int64_t together = rows_ * replicas_;
  const int64_t all = dataset_    ? dataset_->batches(replicas_, epoch)
                      : training_ ? samples_ / together
                                  : (samples_ + together - 1) / together;
  asked_epoch_ = epoch;
  asked_batches_ =
      !training_ && options_.limit_test_batches > 0 ? std::min(all, options_.limit_test_batches) : all;
  return asked_batches_;
}

int64_t Input::updates(int64_t epoch) const {
  const int64_t all = (batches(epoch) + options_.accumulate - 1) / options_.accumulate;
  return options_.steps_per_epoch > 0 ? std::min(all, options_.steps_per_epoch) : all;
}

int64_t Input::batches_of(int64_t epoch, int64_t updates) const {
  return std::min(updates * options_.accumulate, batches(epoch));
}

std::vector<std::uint64_t> Input::tokens(int64_t epoch) const {
  const auto* set = dynamic_cast<const text::TokenBatches*>(dataset_.get());
  std::vector<std::uint64_t> updates;
  if (set == nullptr) return updates;
  const std::vector<std::uint64_t> batches = set->tokens_of_batches(replicas_, epoch);
  const int64_t count = this->updates(epoch);
  for (int64_t update = 0; update < count; ++update)
    updates.push_back(std::accumulate(batches.begin() + batches_of(epoch, update),
                                      batches.begin() + batches_of(epoch, update + 1), std::uint64_t{0}));
  return updates;
}

std::string Input::describe_remainder() const {
  const int64_t together = rows_ * replicas_, rest = samples_ % together;
  if (mixture_ != nullptr)
    return base::str("a mixture of ", options_.mix.size(), " sets, what does not fill a batch comes later");
  if (options_.original_workers > 0 && training_ && dataset_)
    return "the original order, workers' last batches are smaller";
  if (rest == 0) return "no remainder";
  if (dataset_ && dataset_->remainder() == Remainder::kCarry)
    return base::counted(rest, "sample") + " of the first epoch carried over into the next";
  if (dataset_ && dataset_->remainder() == Remainder::kPad)
    return base::str("the last batch has ", base::counted(rest, "sample"), " and is padded to ", together);
  return base::counted(rest, "sample") + " left out of each epoch";
}

std::string Input::state(const Session& session, int64_t epoch, int64_t batches) const {
  if (!dataset_) return "";
  return dataset_->state(
      {epoch, session.batch_part(), session.batch_parts(), session.local_replicas(), batches});
}

Feed Input::feed(Session& session, int64_t epoch, int64_t skip, const std::string& state) const {
  FeedOptions feed;
  feed.epoch = epoch;
  feed.skip = skip;
  if (skip > 0) feed.state = state;
  if (skip == 0 && !state.empty() && session.is_leader())
    if (const auto change = data::changed_content(state, this->state(session, epoch, 0)); !change.empty())
      base::warn("epoch ", epoch + 1, " reads other data than the run began with: ", change);
  if (dataset_) return session.feed(*dataset_, feed);
  return session.feed_source(
      input_detail::FakeBatches(options_, training_, rows_, session, samples_, batches_, skip), feed);
}

}  // namespace sluice::train
