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

// What the options say of reading shards, whatever is in them: which samples, errors, threads, memory.
void set_reading(const TrainOptions& options, bool training, data::WebDataset& dataset);
// Throws sluice::Error where some of the shards are token files (NAME.bin beside NAME.idx).
void refuse_token_files(Task task, const std::string& shards);

class Input {
 public:
  // `rows`: of one replica's batch; `replicas`: of all processes. Counts the samples of the shards; a missing
  // one is an error.
  Input(const TrainOptions& options, bool training, int64_t rows, int replicas);
  // A data set of any fields, which brings its own batches.
  Input(const TrainOptions& options, bool training, std::shared_ptr<const data::Dataset> set, int replicas);

  int64_t samples() const { return samples_; }
  int64_t rows() const { return rows_; }
  int64_t left_out() const { return left_out_; }  // samples of the shards that --where does not take
  // In epoch 0; the last test batch is filled up, and a test ends after --limit-test-batches.
  int64_t batches() const { return batches_; }
  int64_t batches(int64_t epoch) const;  // with a carried-over remainder, epochs may differ by one
  // Updates of an epoch, of --accumulate batches each; the last one takes what is left.
  int64_t updates(int64_t epoch) const;
  // The batches of so many updates from an epoch's start on.
  int64_t batches_of(int64_t epoch, int64_t updates) const;
  // Whether all epochs are known to have as many updates. False: ask for each.
  bool epochs_are_alike() const { return dataset_ == nullptr || mixture_ != nullptr; }
  // Tokens of each update of the epoch, on all replicas; nothing where the set has no token files.
  std::vector<std::uint64_t> tokens(int64_t epoch) const;
  // Of the first image, as the model gets it.
  int64_t channels() const { return channels_; }
  int64_t image_size() const { return image_size_; }

  // `state`: what state() gave for this place; empty: nothing to compare with. In mid-epoch another order is
  // an error; at an epoch's start shards with other contents are a warning.
  Feed feed(Session& session, int64_t epoch, int64_t skip, const std::string& state = "") const;
  // What the order of the samples depends on, for a checkpoint; empty for fake data.
  std::string state(const Session& session, int64_t epoch, int64_t batches) const;
  std::string describe_remainder() const;  // "3 of 1,283 samples left out of each epoch"
  // Of classes 0, 1, … as the first shard's folder has them; none where they are unknown, or not
  // options.classes.
  std::vector<std::string> class_names() const;
  // What the epoch takes of each source of a mixture; nothing for one set.
  std::vector<data::Mix::Taken> mixed(int64_t epoch) const;

 private:
  void check_batches() const;
  void look_at_first(const data::WebDataset& dataset, const std::string& shards);
  std::unique_ptr<data::Dataset> open_set(const std::string& shards);
  std::unique_ptr<data::Dataset> open_mixture();
  const TrainOptions& options_;
  bool training_;
  int64_t rows_, replicas_, samples_ = 0, left_out_ = 0, batches_ = 0, channels_ = 0, image_size_ = 0;
  std::shared_ptr<const data::Dataset> dataset_;          // nothing: fake data
  const data::Mix* mixture_ = nullptr;                    // the same, when it is one
  mutable int64_t asked_epoch_ = -1, asked_batches_ = 0;  // of batches(): some sets play an epoch to tell
};

// A test set beside the first one.
struct NamedTest {
  std::string name;
  std::unique_ptr<const TrainOptions> options;  // the input's
  Input input;
};

}  // namespace sluice::train
