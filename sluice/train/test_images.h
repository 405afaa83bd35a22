// The first images of a test, with what the model says of them, for TensorBoard.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/session/backend.h"
#include "sluice/session/session.h"
#include "sluice/train/event_writer.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Of process 0's first batch: up to `most` images in a frame, green where the largest output is the label's
// and red elsewhere, and a table of both. Threads: the session's. Errors are thrown.
class TestImages {
 public:
  // `mean` and `deviation`: what the images were normalised with, of each channel, in 0…1; empty: 0.5, 0.25.
  TestImages(int64_t most, std::vector<float> mean, std::vector<float> deviation)
      : most_(most), mean_(std::move(mean)), deviation_(std::move(deviation)) {}
  // Takes the first batch, before its values are computed. kInvalidArgument for steps that give no output
  // [N, classes] and target [N] for images.
  void look(Session& session, const Batch& batch, const StepOutput& step);
  // Once the test is over. `classes`: names; none where they are unknown.
  void write(EventWriter& events, const std::vector<std::string>& classes, int64_t step) const;

 private:
  const int64_t most_;
  const std::vector<float> mean_, deviation_;
  bool looked_ = false;
  sessions::Pending images_, shares_, answers_, labels_;
  std::optional<sessions::Pending> masks_;
};

}  // namespace sluice::train
