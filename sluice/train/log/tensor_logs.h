// Scalars, images and histograms of tensors, on their way from the device to TensorBoard.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <deque>
#include <string>

#include "sluice/data/images/image.h"
#include "sluice/session/backend.h"
#include "sluice/train/log/event_writer.h"

namespace sluice::train {

// Returns the 8-bit pixels of [height, width] or [channels, height, width] on the host, with 1, 3 or 4
// channels: uint8, or floating-point numbers, clamped to 0…1. Throws kInvalidArgument for another tensor.
data::Pixels pixels_of(const torch::Tensor& image);

// Threads: the session's. Errors are thrown.
class TensorLogs {
 public:
  // These log a tensor's current value, at this step; later writes do not change it. They throw
  // kInvalidArgument for a tensor that is not an image (see pixels_of), for complex values, and for a scalar
  // that does not have exactly one element.
  void image(const sessions::Backend& backend, const std::string& tag, const torch::Tensor& image,
             int64_t step);
  void scalar(const sessions::Backend& backend, const std::string& tag, const torch::Tensor& value,
              int64_t step);
  void histogram(const sessions::Backend& backend, const std::string& tag, const torch::Tensor& values,
                 int64_t step);
  // Writes what has arrived, in order; with `wait` everything. `events` is null if nothing is written.
  void deliver(EventWriter* events, bool wait);

 private:
  enum class Kind { kScalar, kImage, kHistogram };
  struct Log {
    std::string tag;
    Kind kind;
    int64_t step;
    double wall;
    sessions::Pending value;
  };
  std::deque<Log> logs_;
};

}  // namespace sluice::train
