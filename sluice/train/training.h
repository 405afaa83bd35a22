// One training: the epochs, their logs, evaluation and checkpoints.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "sluice/base/file.h"
#include "sluice/session/checkpoint.h"
#include "sluice/session/log_line.h"
#include "sluice/session/rate.h"
#include "sluice/train/batch_group.h"
#include "sluice/train/console.h"
#include "sluice/train/epoch_times.h"
#include "sluice/train/evaluate.h"
#include "sluice/train/input.h"
#include "sluice/train/learning_rate_finder.h"
#include "sluice/train/metrics_writer.h"
#include "sluice/train/remote_folder.h"
#include "sluice/train/run_length.h"
#include "sluice/train/schedule.h"
#include "sluice/train/signals.h"
#include "sluice/train/skipped_updates.h"
#include "sluice/train/steps.h"
#include "sluice/train/tensor_logs.h"
#include "sluice/train/top_checkpoints.h"
#include "sluice/train/tracking/mlflow_run.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

// Returns the batch size of one replica from the options. Throws if a global batch size does not divide.
int64_t rows_per_replica(const TrainOptions& options, int replicas);

using Callbacks = std::vector<std::shared_ptr<Callback>>;
// Trains the task of checked options, with these callbacks in addition to the options' own.
TrainResult train_task(const TrainOptions& options, const Callbacks& callbacks);
// Instead of a training: tries batch sizes, and prints the suggestion. batch_size_finder.cc
TrainResult sweep_batch_sizes(const TrainOptions& options);

class Training final : private Run {
 public:
  Training(const TrainOptions& options, Session& session, const Input& train, const Input* test,
           const std::vector<NamedTest>& more_tests, torch::nn::Module& model, const Steps& steps,
           std::vector<std::shared_ptr<Callback>> callbacks);
  ~Training();
  // Trains to the end, or until a signal.
  TrainResult operator()();
  // Instead of a training: trains with rising rates, and restores the weights. learning_rate_finder.cc
  LearningRates sweep_learning_rates(const LearningRateSweep& sweep);

 private:
  // Set the start of the run: fresh, or from a checkpoint. restore() before the model is on the device;
  // prepare() moves it there.
  void restore();
  void prepare();
  void open_metrics();
  void open_mlflow(const std::vector<HyperParameter>& parameters);
  void end_mlflow(const char* status, double seconds);
  void announce();
  void announce_layers(const stablehlo::Work& work);
  void announce_filters();

  // training_epoch.cc
  // The reason why a run ends before its last epoch is over.
  enum class Halt { kNone, kSignal, kMaxSteps, kMaxTime, kCallback };
  Halt train_epoch();
  int64_t epoch_steps() const;  // of a whole epoch
  // Returns the group for the batches of the next update and their values.
  BatchGroup next_group() const;
  // Runs `work`; adds the number of the step to its errors.
  void in_step(const std::function<void()>& work) const;
  // Makes one update with the feed's next batches.
  void train_step(Feed& feed);
  void count_skipped(const torch::Tensor& skipped);
  // Reports the parts of the epoch's time and, if much of it was spent waiting for data, the cause.
  void report_times(double wall);
  void report_mixture();
  // The tokens of the set in the first updates of an epoch, or in all of them; 0: there are no token files.
  std::uint64_t tokens_of(int64_t epoch, int64_t updates = -1) const;
  void report_tokens(bool whole, Measurement& row);
  // Adds to the group the gradients of a batch (or, with updating_step, makes all of its updates) and the
  // values to log: the loss first, each of one element.
  void train_batch(Batch& batch, BatchGroup& group);
  void end_step(const Batch& batch, int64_t batches);
  // Logs; returns whether a checkpoint is to be written here.
  bool after_update(int64_t steps, bool stop);
  void save_within_epoch();
  // Reports a line whose values have arrived.
  void report(sessions::LogLine line, int64_t step, double lr, bool log);
  void report_own(sessions::LogLine line, int64_t step, double lr);
  void check_finite(const sessions::LogLine& line, int64_t step, double lr);
  Measurement measurement(const sessions::LogLine& line, int64_t step, double lr) const;
  void end_of_epoch(bool whole);
  bool test_within_epoch();
  bool test_epoch();  // false: a signal came
  std::optional<metrics::Values> test_on(const Input& set,
                                         const std::string& name);  // empty: a signal came
  void write(const Measurement& row);
  double learning_rate_now() const;  // of the first group of the first optimizer
  void set_learning_rates();
  void set_learning_rates(double first);  // `first`: of the first group; the others stay in proportion
  double sweep_step(const std::function<std::shared_ptr<Batch>()>& next_batch);
  void report(const LearningRates& found);
  Session& session() override { return session_; }
  torch::nn::Module& module() override { return model_; }
  RunPlace place() const override;
  const Monitor& monitor() const override { return steps_.monitor; }
  void stop(const std::string& reason) override;
  void log_image(const std::string& tag, const torch::Tensor& image) override;
  void log_histogram(const std::string& tag, const torch::Tensor& values) override;
  void log_text(const std::string& tag, const std::string& markdown) override;
  void log_scalar(const std::string& tag, double value) override;
  void log_scalar(const std::string& tag, const torch::Tensor& value) override;
  bool forward_epoch(const std::function<void()>& after_batch) override;
  void deliver_logs(bool wait) { tensor_logs_.deliver(metrics_ ? &metrics_->events() : nullptr, wait); }
  // Calls a hook of each callback; an error names the callback and the hook.
  template <typename Hook>
  void call_back(const char* hook_name, const Hook& hook) const;
  // Stores the value of a test if it is the best so far.
  void judge(const metrics::Values& values);
  StepOptions clip() const { return {.clip_norm = options_.clip_norm, .clip_value = options_.clip_value}; }
  // The epoch of the data that an epoch uses.
  int64_t data_epoch(int64_t epoch) const { return options_.overfit_batches > 0 ? 0 : epoch; }
  int64_t data_epoch() const { return data_epoch(progress_.epoch); }
  // The number, from 1, of the epoch that the last step was in.
  int64_t shown_epoch() const { return progress_.epoch + (progress_.batch > 0 ? 1 : 0); }
  double run_seconds() const;  // of the whole run, earlier parts included

  // Finish the work that the checkpoint says is due, at an epoch's end and after an update within one.
  // finish_due() returns false if a signal came.
  bool finish_due();
  Halt finish_due_within_epoch();
  bool is_test_due(bool last) const;  // at the end of an epoch
  void save(bool best);
  void write_checkpoints(bool best);
  // Waits for the checkpoint that is being written. Throws if it could not, or must not, be written: its
  // weights are NaN.
  void await_checkpoint();
  std::string last_good();  // as a sentence
  // Whether the run's log folder has this checkpoint. In a bucket: whether this part of the run has written
  // or read it.
  bool has_checkpoint(const char* name) const;
  std::string shown_checkpoints() const;
  NamedValues callback_tensors() const;
  void load_callbacks();
  TrainResult end();
  TrainResult stopped();
  TrainResult result_so_far() const;
  std::vector<torch::optim::Optimizer*> optimizers() const;

  Halt limit_reached() const;  // kMaxSteps, kMaxTime or kNone
  // Whether a signal came or the time is over, and, with several processes, all of them stop here.
  Halt agreed_halt();
  bool agreed_save();  // whether --save-minutes are over
  bool all_workers_log() const { return options_.log_workers == LogWorkers::kAll; }
  // The console for what each worker prints.
  Console& worker_console() { return own_console_ ? *own_console_ : console_; }
  // Sums over all processes in this epoch: examples per second, and examples.
  struct Totals {
    double rate = 0;
    int64_t examples = 0;
  };
  Totals totals(double now);
  std::string folder(const char* name) const;
  // Returns the folder's name in messages: in a bucket, the object's.
  std::string shown(const char* name) const { return base::join_path(options_.logdir, name); }
  // Returns a local folder with the checkpoint of --resume; "" for a fresh start.
  std::string find_start();

  const TrainOptions& options_;
  Session& session_;
  const Input& train_;
  const Input* test_;
  const std::vector<NamedTest>& more_tests_;
  torch::nn::Module& model_;
  const Steps& steps_;
  const std::vector<std::shared_ptr<Callback>> callbacks_;
  std::string stop_reason_;  // of the first callback that asked to stop; "": none did
  bool ends_here_ = false;   // the next checkpoint is the last one
  bool stopping_ = false;    // by a signal: the rest must be fast
  struct Optimizing {
    OptimizerSetup setup;
    std::vector<double> rates;  // of its groups when it was made
  };
  std::vector<Optimizing> optimizers_;
  ScheduleOptions schedule_;
  Console console_;                     // the leader's
  std::optional<Console> own_console_;  // another process's, with --log-workers all
  std::optional<MetricsWriter> metrics_;
  std::unique_ptr<RemoteFolder> remote_;  // for --logdir gs://…
  std::unique_ptr<TopCheckpoints> top_;   // for --save-top-k, on the leader
  std::unique_ptr<MlflowRun> mlflow_;     // for --mlflow, on the leader
  TensorLogs tensor_logs_;
  std::optional<base::TemporaryDirectory> fetched_;  // the checkpoint of --resume gs://…
  sessions::CheckpointWriter writer_;
  SignalGuard signals_;
  std::optional<sessions::Checkpoint> restored_;
  std::string restored_from_;            // its name in messages
  std::set<std::string> saved_folders_;  // local folders, written by this part of the run
  std::vector<std::string> writing_;     // local folders that the writer is writing
  NamedValues restored_tensors_;         // of the callbacks
  sessions::Progress progress_;
  std::optional<sessions::RateTracker> rate_;  // of this epoch
  sessions::DeviceTimes epoch_began_;
  FeedStatistics fed_;        // of this epoch's training batches
  double opening_input_ = 0;  // seconds until the epoch's feed was ready
  std::optional<BatchMeans> epoch_means_;
  ShapeNames step_names_;
  NamedValues logged_;                     // of the last update
  std::optional<SkippedUpdates> skipped_;  // for --on-nan skip
  int64_t skipped_in_a_row_ = 0;
  double last_loss_ = 0;
  metrics::Values tested_;  // of the last test
  RunLength length_;
  int64_t first_step_ = 0;           // the first step of this part of the run
  std::uint64_t tokens_before_ = 0;  // of the epochs before this one; the leader's
  double started_;                   // monotonic seconds
  double saved_;                     // the time of the last checkpoint, likewise
  int64_t saved_at_ = 0;             // the session's step at the last checkpoint
  double earlier_seconds_ = 0;       // of the run's parts before this one
  // Shows the session's pending functions whether the run still lives; they must not use it afterwards.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

template <typename Hook>
void Training::call_back(const char* hook_name, const Hook& hook) const {
  for (const auto& callback : callbacks_) {
    try {
      hook(*callback);
    } catch (const Error& error) {
      throw_error(error.code(),
                  base::str("callback '", callback->name(), "', ", hook_name, ": ", error.what()));
    } catch (const std::exception& error) {
      throw_error(Code::kUnknown,
                  base::str("callback '", callback->name(), "', ", hook_name, ": ", error.what()));
    }
  }
}

}  // namespace sluice::train
