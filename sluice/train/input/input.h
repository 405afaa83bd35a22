// The trainer's data: shards as the options describe them, or random images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/data/mixture.h"
#include "sluice/session/feed.h"
#include "sluice/session/session.h"
#include "sluice/train/options.h"

namespace sluice::train {

// Sets the options for reading shards of any contents: which samples, errors, threads, memory.
void set_reading(const TrainOptions& options, bool training, data::WebDataset& dataset);
// Throws sluice::Error if some of the shards are token files (NAME.bin next to NAME.idx).
void refuse_token_files(Task task, const std::string& shards);

class Input {
 public:
  // `rows`: of one replica's batch; `replicas`: of all processes. Counts the samples of the shards; a missing
  // shard is an error.
  Input(const TrainOptions& options, bool training, int64_t rows, int replicas);
  // Takes a data set with any fields, which makes its own batches.
  Input(const TrainOptions& options, bool training, std::shared_ptr<const data::Dataset> set, int replicas);

  int64_t samples() const { return samples_; }
  int64_t rows() const { return rows_; }
  int64_t left_out() const { return left_out_; }  // samples of the shards that --where excludes
  // The batches of epoch 0; the last test batch is padded, and a test ends after --limit-test-batches.
  int64_t batches() const { return batches_; }
  int64_t batches(int64_t epoch) const;  // with a carried-over remainder, epochs may differ by one
  // The updates of an epoch, each of --accumulate batches; the last update takes the batches that are left.
  int64_t updates(int64_t epoch) const;
  // The number of batches of the first `updates` updates of an epoch.
  int64_t batches_of(int64_t epoch, int64_t updates) const;
  // Whether all epochs are known to have the same number of updates. False: ask for each epoch.
  bool epochs_are_alike() const { return dataset_ == nullptr || mixture_ != nullptr; }
  // The tokens of each update of the epoch, on all replicas; empty if the set has no token files.
  std::vector<std::uint64_t> tokens(int64_t epoch) const;
  // Channels and side of the first image, as the model gets it.
  int64_t channels() const { return channels_; }
  int64_t image_size() const { return image_size_; }

  // `state`: the result of state() for this place; empty: no check. Within an epoch a different order is an
  // error; at an epoch's start different contents of the shards are a warning.
  Feed feed(Session& session, int64_t epoch, int64_t skip, const std::string& state = "") const;
  // A text of what the order of the samples depends on, for a checkpoint; empty for fake data.
  std::string state(const Session& session, int64_t epoch, int64_t batches) const;
  std::string describe_remainder() const;  // such as "3 of 1,283 samples left out of each epoch"
  // The names of classes 0, 1, … from the folder of the first shard; empty if they are unknown, or if their
  // number is not options.classes.
  std::vector<std::string> class_names() const;
  // The samples that the epoch takes from each source of a mixture; empty for a single set.
  std::vector<data::Mix::Taken> mixed(int64_t epoch) const;

 private:
  std::unique_ptr<data::Dataset> open_set(const std::string& shards);
  std::unique_ptr<data::Dataset> open_mixture();
  const TrainOptions& options_;
  bool training_;
  int64_t rows_, replicas_, samples_ = 0, left_out_ = 0, batches_ = 0, channels_ = 0, image_size_ = 0;
  std::shared_ptr<const data::Dataset> dataset_;          // null: fake data
  const data::Mix* mixture_ = nullptr;                    // `dataset_`, if it is a mixture
  mutable int64_t asked_epoch_ = -1, asked_batches_ = 0;  // cached: counting may run through an epoch
};

// A test set in addition to the first one.
struct NamedTest {
  std::string name;
  std::unique_ptr<const TrainOptions> options;  // options of the input
  Input input;
};

}  // namespace sluice::train
