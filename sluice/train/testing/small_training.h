// A training that takes a second or two.
#pragma once

#include <string>

#include "sluice/train/options.h"

namespace sluice::train {

// Trains an MLP on 4 classes that the pattern of generated images (8×8, one channel) tells apart: 200 for
// training, 50 for the test, 2 epochs on LibTorch's own CPU.
inline TrainOptions small_training(const std::string& logdir) {
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
  options.lr_schedule = LrSchedule::kConstant;
  options.device = DeviceKind::kCpu;
  options.log_steps = 5;
  options.logdir = logdir;
  return options;
}

// A small_training on the images of a shard: 32 of 8×8 with three channels, in two classes.
inline TrainOptions small_training_on(const std::string& shard, const std::string& logdir) {
  TrainOptions options = small_training(logdir);
  options.fake_data = false;
  options.train = options.test = shard;
  options.images = "ppm";
  options.classes = 2;
  options.channels = 3;
  return options;
}

// A small_training on the device "xla" of the CPU's plugin.
inline TrainOptions small_training_on_xla(const std::string& logdir) {
  TrainOptions options = small_training(logdir);
  options.device = DeviceKind::kXla;
  options.plugin = "cpu";
  return options;
}

}  // namespace sluice::train
