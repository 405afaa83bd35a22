// Callbacks: what a training does beside its steps, called at its turning points.
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
// message names callback and hook, and logdir/last stays as it was.
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
  virtual RunPlace place() const = 0;  // the step that comes next
  virtual const Monitor& monitor() const = 0;
  // Ends the run after this step, tested and saved. All processes must ask for it at the same step: decide by
  // what is equal on all of them, such as the values of a test. `reason` is a sentence for the log.
  virtual void stop(const std::string& reason) = 0;
  // For TensorBoard, at this step. The values are copied while the device goes on, and written a little
  // later. All processes call it alike; where replicas differ, it is what those of process 0 have: the image
  // of the first one, the values of all, the mean of a scalar. `image`: [height, width] or [channels, height,
  // width] with 1, 3 or 4 channels; uint8, or floating-point numbers from 0 to 1. `values`: real numbers of
  // any shape. Throws kInvalidArgument for others. A scalar is a real number, or a tensor of one element, and
  // becomes a point of the curve `tag`.
  virtual void log_image(const std::string& tag, const torch::Tensor& image) = 0;
  virtual void log_histogram(const std::string& tag, const torch::Tensor& values) = 0;
  virtual void log_scalar(const std::string& tag, double value) = 0;
  virtual void log_scalar(const std::string& tag, const torch::Tensor& value) = 0;
  virtual void log_text(const std::string& tag, const std::string& markdown) = 0;
  // The training step without gradients and updates, in training mode, over the batches of an epoch: of the
  // one that the last step was in. `after_batch` is called after each. For what is measured in training, such
  // as statistics. False: not all of it was done, because the run is being stopped, or has an updating_step.
  virtual bool forward_epoch(const std::function<void()>& after_batch) = 0;

 protected:
  ~Run() = default;
};

class Callback {
 public:
  virtual ~Callback() = default;
  // Unlike those of the run's other callbacks.
  virtual std::string name() const = 0;
  // With the module on its device, before its optimizers are made.
  virtual void before_optimizers(Run&) {}
  // Before the first step, after load() and load_tensors().
  virtual void begin(Run&) {}
  // Before the steps of an epoch, the rest of one after a resume; and after the last one, before the test.
  virtual void before_epoch(Run&) {}
  virtual void after_epoch(Run&) {}
  // Within each update, behind the optimizers: what is recorded here is part of the step's program.
  virtual void within_step(Run&) {}
  // After each update, which may still be running on the device: what is read here makes it wait.
  virtual void after_step(Run&) {}
  // Around whatever reads the weights, a test or a checkpoint: in between they may be others than those that
  // are trained, if all of the latter are back behind it.
  virtual void before_reading(Run&) {}
  virtual void after_reading(Run&) {}
  // With the values over the whole test set, shares from 0 to 1.
  virtual void after_test(Run&, const metrics::Values&) {}
  // After the last checkpoint: the module is what fit() leaves behind.
  virtual void end(Run&) {}
  // What a resumed run must know; checkpoints hold it, the tensors as they are between before_reading() and
  // after_reading().
  virtual std::string state() const { return ""; }
  virtual NamedValues tensors() const { return {}; }
  // What state() and tensors() gave, the latter on the host, before begin(). Throw for what they cannot read.
  virtual void load(const std::string& /*state*/) {}
  virtual void load_tensors(const NamedValues& /*tensors*/) {}
};

struct EarlyStoppingOptions {
  std::int64_t patience = 3;  // tests without a better value after which the run ends; at least 1
  double min_delta = 0;       // by so much at least a value must be better to count
  // Of the value; nothing: that of the steps.
  std::optional<Monitor> monitor = {};
};

// Ends a run whose tests get no better. A test without a number (NaN) is not better. All processes stop at
// the same step, and a resumed run goes on counting.
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
