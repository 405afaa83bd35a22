// Where predictions go: a file of JSON lines, or WebDataset shards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/result.h"
#include "sluice/train/steps.h"

namespace sluice::train {

// Unless commit() succeeds, nothing of it remains. Threads: one at a time.
class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  // A sample's values on the host, without the dimension of the batch. An empty key: it has none.
  virtual base::Status add(const std::string& key, const NamedValues& values) = 0;
  // The files appear under their names. Once only.
  virtual base::Status commit() = 0;
};

struct PredictionPlace {
  std::string path;  // as Trainer::predict says
  int process = 0, processes = 1;
  int64_t shard_size = 10'000;  // samples in a shard, of several
};

// kInvalidArgument for a path that is no place for predictions, kAlreadyExists for shards that are there.
base::Result<std::unique_ptr<PredictionFile>> create_predictions(const PredictionPlace& place);

}  // namespace sluice::train
