// The state of a Feed, and how datasets become host batches.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/queue.h"
#include "sluice/session/backend.h"
#include "sluice/session/feed.h"
#include "sluice/session/step_meter.h"

namespace sluice {

struct Feed::State {
  // Called with each batch that is handed out.
  using OnBatch = std::function<void(const sessions::StepMeter::Handed& batch)>;
  // Starts the thread that calls `source` and uploads.
  State(std::shared_ptr<const sessions::Backend> backend, sessions::HostSource source,
        const FeedOptions& options, OnBatch on_batch, std::function<data::Statistics()> statistics = nullptr);
  ~State();

  std::optional<Batch> wait_for_batch();
  void set_normalization(const std::vector<float>& mean, const std::vector<float>& deviation);
  void apply_normalization(Batch& batch) const;

  std::shared_ptr<const sessions::Backend> backend;
  OnBatch on_batch;
  bool normalize = false;
  at::Tensor scale, shift;  // f32 [1, C, 1, 1] on the device; undefined: only divide by 255
  std::function<data::Statistics()> statistics;  // the source's, if it has any
  base::Stopwatch clock;
  double waiting = 0;   // seconds that the loop waited
  double starving = 0;  // the part of `waiting` with no program on the device
  std::atomic<double> uploading{0};
  base::Queue<Batch> queue;
  std::thread thread;
};

namespace sessions {

// Splits a batch of R × rows into R equal parts, one for each replica. `padded`: with mask and weight.
std::vector<HostBatch> split_batch(const data::Batch& batch, int replicas, bool padded);
// One epoch of a dataset, for the `replicas` of process `part` of `parts`.
struct DatasetSource {
  HostSource next;
  std::function<data::Statistics()> statistics;
};
DatasetSource dataset_source(const data::Dataset& dataset, int replicas, int part, int parts,
                             const FeedOptions& options);

}  // namespace sessions
}  // namespace sluice
