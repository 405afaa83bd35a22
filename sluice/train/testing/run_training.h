// The helpers that tests of the trainer share: running a training, comparing checkpoints, and a small shard.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/data/shards/tar_writer.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/train/testing/small_training.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

inline base::TemporaryDirectory scratch() { return base::value_or_throw(base::TemporaryDirectory::create()); }

// Trains, and returns what is printed meanwhile.
inline std::string capture(const TrainOptions& options, TrainResult* result) {
  testing::internal::CaptureStdout();
  try {
    *result = train(options);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

// Returns the message of what train() throws; "" if it throws nothing.
inline std::string refusal(const TrainOptions& options) {
  try {
    TrainResult result;
    capture(options, &result);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Returns whether two checkpoints have the same step and the same weights, bit for bit.
inline bool same_weights(const std::string& a, const std::string& b) {
  const sessions::Checkpoint x = base::value_or_throw(sessions::read_checkpoint(a)),
                             y = base::value_or_throw(sessions::read_checkpoint(b));
  for (size_t i = 0; i < x.model.size(); ++i)
    if (!at::equal(x.model[i].second, y.model[i].second)) return false;
  return x.progress.step == y.progress.step && x.model.size() == y.model.size();
}

// Writes 32 images of 8×8 in two classes; returns the path.
inline std::string write_shard(const std::string& path) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) {
    std::string pixels = "P6\n8 8\n255\n";
    for (int k = 0; k < 192; ++k) pixels += static_cast<char>((i * 37 + k * (i % 2 == 0 ? 1 : 11)) % 256);
    bytes += data::tar_member(base::str("s", i, ".ppm"), pixels);
    bytes += data::tar_member(base::str("s", i, ".cls"), std::to_string(i % 2));
  }
  base::value_or_throw(base::write_file_atomically(path, bytes + data::tar_end(bytes.size())));
  return path;
}

}  // namespace sluice::train
