// Trainer: the loop of `sluice train` for any module.
//
//   sluice::train::TrainOptions options;
//   options.train = "train-{0000..0009}.tar"; options.test = "test-{0000..0001}.tar"; options.classes = 10;
//   sluice::train::Trainer trainer(options);
//   auto result = trainer.fit(my_model);            // a shared_ptr or a holder of a module with
//   forward(Tensor)
//
// It trains, logs, evaluates after each epoch over exactly the whole test set, and keeps the checkpoints
// logdir/last and logdir/best. SIGINT and SIGTERM save and end it. Errors are sluice::Error.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>

#include "sluice/base/export.h"
#include "sluice/session/session.h"
#include "sluice/train/options.h"

SLUICE_API_BEGIN

namespace sluice::train {

class Trainer {
 public:
  using Forward = std::function<torch::Tensor(torch::Tensor)>;

  // Checks the options, starts the session and opens the data.
  explicit Trainer(const TrainOptions& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Session& session();
  // Channels and side of the images as the model gets them, pixels.
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

  struct State;

 private:
  TrainResult train(torch::nn::Module& model, const Forward& forward);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::train

SLUICE_API_END
