// Callbacks: what a training does besides its steps, at fixed points of the run.
//
//   struct Reporter : sluice::train::Callback {
//     std::string name() const override { return "reporter"; }
//     void after_test(sluice::train::Run& run, const sluice::metrics::Values& values) override {
//       send(run.place().epoch, values["loss"]);
//     }
//   };
//   trainer.add(std::make_shared<Reporter>());
//
// All hooks run on the session's thread, on every process, at the same steps. An exception ends the run; its
// message names the callback and the hook, and logdir/last stays as it was.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sluice/base/export.h"
#include "sluice/metrics/metrics.h"
#include "sluice/session/session.h"
#include "sluice/train/steps.h"

SLUICE_API_BEGIN

namespace sluice::train {

// The training, as its callbacks see it.
class Run {
 public:
  virtual Session& session() = 0;
  virtual torch::nn::Module& module() = 0;
  virtual RunPlace place() const = 0;  // the next step
  virtual const Monitor& monitor() const = 0;
  // Ends the run after this step, with a test and a checkpoint. All processes must call it at the same step:
  // decide by values that are equal on all of them, such as the values of a test. `reason` is a sentence for
  // the log.
  virtual void stop(const std::string& reason) = 0;
  // These log to TensorBoard at this step. The values are copied while the device continues, and written a
  // little later. All processes make the same calls. If replicas differ, process 0's count: the image of its
  // first one, the values of all, the mean of a scalar. `image`: [height, width] or [channels, height, width]
  // with 1, 3 or 4 channels; uint8, or floating-point numbers from 0 to 1. `values`: real numbers of any
  // shape. A scalar is a real number, or a tensor of one element, and becomes a point of the curve `tag`.
  // Throws kInvalidArgument for other values.
  virtual void log_image(const std::string& tag, const torch::Tensor& image) = 0;
  virtual void log_histogram(const std::string& tag, const torch::Tensor& values) = 0;
  virtual void log_scalar(const std::string& tag, double value) = 0;
  virtual void log_scalar(const std::string& tag, const torch::Tensor& value) = 0;
  virtual void log_text(const std::string& tag, const std::string& markdown) = 0;
  // Runs the training step without gradients and updates, in training mode, over the batches of the epoch
  // that the last step was in; calls `after_batch` after each. For what is measured in training, such as
  // statistics. Returns false if it did not run all: the run is being stopped, or has an updating_step.
  virtual bool forward_epoch(const std::function<void()>& after_batch) = 0;

 protected:
  ~Run() = default;
};

class Callback {
 public:
  virtual ~Callback() = default;
  // Returns a name that no other callback of the run has.
  virtual std::string name() const = 0;
  // Called with the module on its device, before its optimizers are made.
  virtual void before_optimizers(Run&) {}
  // Called before the first step, after load() and load_tensors().
  virtual void begin(Run&) {}
  // Called before the steps of an epoch (after a resume, of its rest); after its last step, before the test.
  virtual void before_epoch(Run&) {}
  virtual void after_epoch(Run&) {}
  // Called within each update, after the optimizers: what is recorded here is part of the step's program.
  virtual void within_step(Run&) {}
  // Called after each update, which may still be running on the device: a value that is read here makes it
  // wait.
  virtual void after_step(Run&) {}
  // Called around each reading of the weights, by a test or a checkpoint: in between, other weights than the
  // trained ones may be in the module, if after_reading() puts all of the trained ones back.
  virtual void before_reading(Run&) {}
  virtual void after_reading(Run&) {}
  // Called with the values over the whole test set; shares are from 0 to 1.
  virtual void after_test(Run&, const metrics::Values&) {}
  // Called after the last checkpoint: it leaves the module as fit() returns it.
  virtual void end(Run&) {}
  // Return what a resumed run must know. Checkpoints contain it, the tensors with their values between
  // before_reading() and after_reading().
  virtual std::string state() const { return ""; }
  virtual NamedValues tensors() const { return {}; }
  // Called before begin() with the results of state() and tensors(), the latter on the host. Throw if
  // unreadable.
  virtual void load(const std::string& /*state*/) {}
  virtual void load_tensors(const NamedValues& /*tensors*/) {}
};

struct EarlyStoppingOptions {
  std::int64_t patience = 3;  // the run ends after this number of tests without a better value; at least 1
  double min_delta = 0;       // a value counts as better only if it is better by more than this
  // The value to watch; empty: the one that the steps monitor.
  std::optional<Monitor> monitor = {};
};

// Ends a run whose tests do not improve. A test whose value is NaN is not better. All processes stop at the
// same step, and a resumed run continues the count.
class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  std::string name() const override { return "early stopping"; }
  void begin(Run& run) override;
  void after_test(Run& run, const metrics::Values& values) override;
  std::string state() const override;
  void load(const std::string& state) override;

 private:
  const Monitor& monitor(const Run& run) const;
  void stop_when_patience_ends(Run& run) const;
  EarlyStoppingOptions options_;
  std::optional<double> best_;
  std::int64_t without_ = 0;  // tests since the best one
};

}  // namespace sluice::train

SLUICE_API_END
