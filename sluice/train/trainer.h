// Trainer: the loop of a training, for any module and any task.
//
// A classification of images, as the options describe it:
// For a classification of images, as the options describe it:
//   options.train = "train-{0000..0009}.tar"; options.test = "test-{0000..0001}.tar"; options.classes = 10;
//   sluice::train::Trainer trainer(options);
//   auto result = trainer.fit(my_model);  // a shared_ptr or a holder of a module with forward(Tensor)
//
// For any other task: data sets with any fields, and the steps for a batch of them (steps.h):
//   sluice::train::Trainer trainer(options, {train, test});
//   auto result = trainer.fit(my_model, steps);
//
// It trains, logs, tests after each epoch over exactly the whole test set, and keeps the checkpoints
// logdir/last and logdir/best. SIGINT and SIGTERM save and end the training. Errors are sluice::Error.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/dataset.h"
#include "sluice/session/session.h"
#include "sluice/train/callback.h"
#include "sluice/train/callbacks/freeze.h"
#include "sluice/train/callbacks/histograms.h"
#include "sluice/train/callbacks/weight_average.h"
#include "sluice/train/learning_rate_finder.h"
#include "sluice/train/options.h"
#include "sluice/train/steps.h"

SLUICE_API_BEGIN

namespace sluice::train {

// The data of a training; each set has its own batch size. A test set pads (WebDataset::pad), so that all of
// it is measured.
struct Sets {
  template <typename Train>
  requires std::derived_from<std::decay_t<Train>, data::Dataset> Sets(Train&& of_training)  // NOLINT
      : train(std::make_shared<std::decay_t<Train>>(std::forward<Train>(of_training))) {}
  template <typename Train, typename Test>
  requires std::derived_from<std::decay_t<Test>, data::Dataset> Sets(Train&& of_training, Test&& of_test)
      : Sets(std::forward<Train>(of_training)) {
    test = std::make_shared<std::decay_t<Test>>(std::forward<Test>(of_test));
  }
  explicit Sets(std::shared_ptr<const data::Dataset> of_training,
                std::shared_ptr<const data::Dataset> of_test = nullptr)
      : train(std::move(of_training)), test(std::move(of_test)) {}
  // Adds a test set. Its values are called NAME/loss and so on, in tables and curves, for callbacks and in
  // Steps::monitor; values of the first test set have no prefix.
  template <typename Test>
  requires std::derived_from<std::decay_t<Test>, data::Dataset> Sets& also(std::string name, Test&& of_test) {
    more_tests.emplace_back(std::move(name),
                            std::make_shared<std::decay_t<Test>>(std::forward<Test>(of_test)));
    return *this;
  }
  std::shared_ptr<const data::Dataset> train, test;  // test: may be null
  std::vector<std::pair<std::string, std::shared_ptr<const data::Dataset>>> more_tests;
};

class Trainer {
 public:
  using Forward = std::function<torch::Tensor(torch::Tensor)>;

  // Checks the options, starts the session and opens the data.
  explicit Trainer(const TrainOptions& options);
  // Takes the program's own data: ignores what the options say about shards, images, classes and batches.
  Trainer(const TrainOptions& options, Sets sets);
  // Takes data that depends on the number of replicas, which is known once the session has started.
  Trainer(const TrainOptions& options, const std::function<Sets(int replicas)>& open);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Session& session();
  // Channels and side of the images of the options' shards as the model gets them, pixels.
  int64_t channels() const;
  int64_t image_size() const;

  template <typename Model>
  TrainResult fit(const std::shared_ptr<Model>& model) {
    return train(*model, [model](torch::Tensor x) { return model->forward(x); });
  }
  template <typename Model>
  TrainResult fit(torch::nn::ModuleHolder<Model>& model) {
    return fit(model.ptr());
  }

  // Callbacks are called in the order in which they were added. Throws for a name that is already used.
  void add(std::shared_ptr<Callback> callback);

  // Throws kInvalidArgument for steps that contradict each other or the options.
  TrainResult fit(torch::nn::Module& module, const Steps& steps);
  template <typename Model>
  TrainResult fit(const std::shared_ptr<Model>& model, const Steps& steps) {
    return fit(*model, steps);
  }
  template <typename Model>
  TrainResult fit(const torch::nn::ModuleHolder<Model>& model, const Steps& steps) {
    return fit(*model.ptr(), steps);
  }

  // Trains for some steps with learning rates that rise from step to step, and restores the weights and
  // buffers. The groups of all optimizers keep their proportions. Writes logdir/learning_rates.csv and one
  // line with the suggestion. Waits for each step. Of callbacks, only before_optimizers() and end() are
  // called. Throws kInvalidArgument for a senseless sweep, and without a training_step.
  LearningRates find_learning_rate(torch::nn::Module& module, const Steps& steps,
                                   const LearningRateSweep& sweep = {});
  template <typename Model>
  LearningRates find_learning_rate(const std::shared_ptr<Model>& model, const LearningRateSweep& sweep = {}) {
    return find_for(
        *model, [model](torch::Tensor x) { return model->forward(x); }, sweep);
  }

  // Returns the means of steps.validation_step and steps.metrics over a padded set, with the module as it is:
  // moved to the device, in eval mode. Without `set`: over the test set.
  metrics::Values validate(torch::nn::Module& module, const Steps& steps);
  metrics::Values validate(torch::nn::Module& module, const Steps& steps, const data::Dataset& set);
  // Writes the results of steps.predict_step to a file of JSON lines, one for each sample: {"key": …, NAME:
  // number or nested lists, …}. A path that ends in .tar is a shard instead: it has for each sample
  // KEY.NAME.npy for each tensor (float32 for types that NumPy does not have), and KEY.json with all numbers.
  // If the name has a place for a number, codes-%04d.tar, there are several shards of `shard_size` samples;
  // none of them may exist already. Each process writes the samples of its replicas: to `path`, or with
  // several processes to PATH with .0, .1, … (for shards -0, -1, …) before its last ending. Files take their
  // places when all is written. Returns the number of samples of this process.
  int64_t predict(torch::nn::Module& module, const Steps& steps, const data::Dataset& set,
                  const std::string& path, int64_t shard_size = 10'000);

  struct State;

 private:
  TrainResult train(torch::nn::Module& model, const Forward& forward);
  LearningRates find_for(torch::nn::Module& model, const Forward& forward, const LearningRateSweep& sweep);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::train

SLUICE_API_END
