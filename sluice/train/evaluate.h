// Evaluation over exactly the whole set, in batches of one shape.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sluice/metrics/metrics.h"
#include "sluice/session/feed.h"
#include "sluice/session/session.h"

namespace sluice::train {

struct Evaluation {
  int64_t samples = 0;
  int64_t correct = 0;
  double loss = 0;         // mean cross-entropy
  metrics::Values values;  // of the other metrics
  bool stopped = false;
  double accuracy() const {
    return samples == 0 ? 0 : 100.0 * static_cast<double>(correct) / static_cast<double>(samples);
  }
};

// Counts on the device and reads once at the end, over the whole feed or its first `most` batches. Rows that
// a mask calls padding do not count. `stop` is asked after each batch; `on_batch` hears how many are done.
// The model must be in eval mode.
// `others`: metrics of classes besides accuracy and loss; all processes give the same.
Evaluation evaluate(Session& session, const std::function<torch::Tensor(torch::Tensor)>& forward, Feed feed,
                    int64_t most, const std::function<bool()>& stop,
                    const std::function<void(int64_t)>& on_batch,
                    const std::vector<metrics::Metric>& others = {});

}  // namespace sluice::train
