// The inside of a Feed, and how datasets become host batches.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/queue.h"
#include "sluice/train/backend.h"
#include "sluice/train/feed.h"

namespace sluice {

struct Feed::State {
  // Starts the thread that calls `source` and uploads. `on_batch` hears the samples of each batch that is
  // handed out.
  State(std::shared_ptr<const train::Backend> backend, train::HostSource source, const FeedOptions& options,
        std::function<void(int64_t)> on_batch);
  ~State();

  void set_normalization(const std::vector<float>& mean, const std::vector<float>& deviation);
  void apply_normalization(Batch& batch) const;

  std::shared_ptr<const train::Backend> backend;
  std::function<void(int64_t)> on_batch;
  bool normalize = false;
  at::Tensor scale, shift;  // f32 [1, C, 1, 1] on the device, or undefined: only divide by 255
  base::Queue<Batch> queue;
  std::thread thread;
};

namespace train {

// The rows of each replica: R equal runs of a batch of R × rows. `padded`: with mask and weight.
std::vector<HostBatch> split_batch(const data::Batch& batch, int replicas, bool padded);
// One epoch of a dataset whose batch size is that of one replica. `part` of `parts` processes.
HostSource dataset_source(data::WebDataset dataset, int replicas, int part, int parts,
                          const FeedOptions& options);

}  // namespace train
}  // namespace sluice
