// The first images of a test, with the model's answers, for TensorBoard.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/session/backend.h"
#include "sluice/session/session.h"
#include "sluice/train/log/event_writer.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Shows up to `most` images of process 0's first batch, in frames: green if the largest output is the
// label's, else red; and a table of both. Threads: the session's. Errors are thrown.
class TestImages {
 public:
  // `mean` and `deviation`: the images' normalisation, for each channel, in 0…1; empty: 0.5, 0.25.
  TestImages(int64_t most, std::vector<float> mean, std::vector<float> deviation)
      : most_(most), mean_(std::move(mean)), deviation_(std::move(deviation)) {}
  // Takes the first batch, before its values are computed. Throws kInvalidArgument for steps without an
  // output [N, classes] and target [N] for images.
  void look(Session& session, const Batch& batch, const StepOutput& step);
  // Call it after the test. `classes`: their names; empty if they are unknown.
  void write(EventWriter& events, const std::vector<std::string>& classes, int64_t step) const;

 private:
  const int64_t most_;
  const std::vector<float> mean_, deviation_;
  bool looked_ = false;
  sessions::Pending images_, shares_, answers_, labels_;
  std::optional<sessions::Pending> masks_;
};

}  // namespace sluice::train
