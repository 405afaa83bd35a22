// A run that is over in a second or two.
#pragma once

#include <string>

#include "sluice/train/run.h"

namespace sluice::train {

// An MLP on 4 classes that the pattern of made images (8×8, one channel) tells apart: 200 for training, 50
// for the test, 2 epochs on LibTorch's own CPU.
inline TrainOptions small_run(const std::string& logdir) {
  TrainOptions options;
  options.model = "mlp";
  options.classes = 4;
  options.fake_data = true;
  options.image_size = 8;
  options.channels = 1;
  options.train_size = 200;
  options.test_size = 50;
  options.batch_size = 16;
  options.epochs = 2;
  options.lr = 0.05;
  options.lr_schedule = "constant";
  options.device = "cpu";
  options.log_steps = 5;
  options.logdir = logdir;
  return options;
}

}  // namespace sluice::train
