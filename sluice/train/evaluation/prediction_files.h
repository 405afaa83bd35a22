// The files for predictions: a file of JSON lines, or WebDataset shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/result.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Unless commit() succeeds, it leaves no file. Threads: one at a time.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  // Adds a sample's values on the host, without the dimension of the batch. An empty key: it has none.
  virtual base::Status add(const std::string& key, const NamedValues& values) = 0;
  // Lets the files appear under their names. Call it only once.
  virtual base::Status commit() = 0;
};

struct PredictionPlace {
  std::string path;  // as for Trainer::predict
  int process = 0, processes = 1;
  int64_t shard_size = 10'000;  // samples in a shard, if there are several shards
};

// Fails with kInvalidArgument for a path where predictions cannot be written, kAlreadyExists for existing
// shards.
base::Result<std::unique_ptr<PredictionFile>> create_predictions(const PredictionPlace& place);

}  // namespace sluice::train
