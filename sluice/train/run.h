// One training run: the epochs, their logs, evaluation and checkpoints.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <string>

#include "sluice/base/file.h"
#include "sluice/train/checkpoint.h"
#include "sluice/train/console.h"
#include "sluice/train/evaluate.h"
#include "sluice/train/input.h"
#include "sluice/train/metrics_writer.h"
#include "sluice/train/rate.h"
#include "sluice/train/remote_folder.h"
#include "sluice/train/schedule.h"
#include "sluice/train/signals.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

// The batch of one replica that the options ask for. Throws when a global batch size does not divide.
int64_t rows_per_replica(const TrainOptions& options, int replicas);

class Run {
 public:
  Run(const TrainOptions& options, Session& session, const Input& train, const Input* test,
      torch::nn::Module& model, Trainer::Forward forward);
  // Trains to the end, or to a signal.
  TrainResult operator()();

 private:
  // Where the run starts: fresh, or as a checkpoint left it. Before and after the model moves to the device.
  void restore();
  void prepare();
  void announce();

  bool train_epoch();  // false: a signal came
  void report_input(const FeedStatistics& feed);
  torch::Tensor batch_loss(const Batch& batch);
  torch::Tensor train_batch(Batch& batch);
  void after_update(const torch::Tensor& loss, bool last, bool stop);
  void report(double loss, int64_t epoch, int64_t step, int64_t batch, double rate, double global_rate,
              double lr, const std::string& time, bool log);
  void end_of_epoch();
  bool test_epoch();
  void save(bool best);
  TrainResult end();
  TrainResult stopped();

  // A signal came; with several processes, and all of them stop here.
  bool interrupted() { return session_.agree_to_stop(SignalGuard::pending() != 0); }
  double global_rate(double now);
  std::string folder(const char* name) const;
  // The same as messages name it: in a bucket, the object.
  std::string shown(const char* name) const { return base::join_path(options_.logdir, name); }
  // Where --resume points to, as a folder of this machine; "" for a fresh start.
  std::string find_start();
  void write(const Measurement& row);
  double learning_rate_now() const;

  const TrainOptions& options_;
  Session& session_;
  const Input& train_;
  const Input* test_;
  torch::nn::Module& model_;
  Trainer::Forward forward_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  ScheduleOptions schedule_;
  Console console_;
  std::optional<MetricsWriter> metrics_;
  std::unique_ptr<RemoteFolder> remote_;             // of --logdir gs://…
  std::optional<base::TemporaryDirectory> fetched_;  // the checkpoint of --resume gs://…
  CheckpointWriter writer_;
  SignalGuard signals_;
  std::optional<Checkpoint> restored_;
  Progress progress_;
  std::optional<RateTracker> rate_;  // of this epoch
  double last_loss_ = 0;
  double last_accuracy_ = -1;
  int64_t steps_per_epoch_;
  double started_;              // monotonic seconds
  double earlier_seconds_ = 0;  // of the run before it was resumed
  // What the session still holds for later must not outlive the run.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sluice::train
