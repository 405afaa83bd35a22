// Checkpoints: weights in safetensors, the rest of a run's state beside them.
//
// A checkpoint is a folder with model.safetensors (parameters and buffers by their names), state.safetensors
// (optimizer and random generator), state.json (epoch, step, …) and the files that a task adds. It is written
// under a temporary name and takes its place at once: whoever looks sees the old one or the new one,
// complete.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/session/backend.h"
#include "sluice/session/tensor_file.h"

namespace sluice::sessions {

// What a run had to do at its place and had not done yet when the checkpoint was taken: a run that goes on
// from there does it first.
struct Due {
  bool test = false;          // with the checkpoint behind it, `best` and what callbacks do after a test
  bool within_epoch = false;  // after an update, not at the end of the epoch or of the run
  std::string stop;           // why a callback has ended the run; "": none has
};

// Where a run stands: the next batch to train is `batch` of `epoch`.
struct Progress {
  std::string model;
  int64_t epoch = 0;
  int64_t batch = 0;
  int64_t step = 0;             // optimizer updates so far
  std::string monitor;          // what the run calls good: a value of its tests, as "accuracy"
  std::optional<double> best;   // of it so far
  std::optional<double> value;  // of the test before this checkpoint, if there was one since the one before
  std::map<std::string, std::string> callbacks;  // what each has to remember, by its name
  double seconds = 0;                            // of training so far
  double global_rates = 0;                       // sum of the epochs' rates, for their mean
  int64_t rated_epochs = 0;
  std::string config;
  std::string input;    // what the order of the samples depends on (data::WebDataset::state)
  int64_t skipped = 0;  // updates that were not made, of these steps
  int64_t tested = -1;  // the step of the last test; -1: none
  Due due;
};

// Parameters and buffers, by their qualified names.
NamedTensors module_tensors(const torch::nn::Module& model);
// Puts values into a model's parameters and buffers, on whatever device they are. `source` names the file in
// errors. The first tensor that is missing, too many, or of another shape is an error that names it.
base::Status load_module(torch::nn::Module& model, const NamedTensors& tensors, const std::string& source);

// The state of SGD, Adam, AdamW, RMSprop and Adagrad as tensors called "optimizer.PARAMETER.FIELD".
NamedTensors optimizer_tensors(torch::optim::Optimizer& optimizer, const torch::nn::Module& model);
// Gives the optimizer that of its own parameters. `source` names the checkpoint in errors: a state of another
// optimizer, or of another shape, or without a field that the optimizer's settings need.
base::Status load_optimizer(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
                            const NamedTensors& tensors, const std::string& source);
// See sluice::create_state; returns what was created, PARAMETER in its names being a number.
NamedTensors create_missing_state(torch::optim::Optimizer& optimizer);

// The values of a run at one moment; `more` stands beside the optimizers' state. Taking it does not wait for
// the device.
struct Snapshot {
  std::vector<std::pair<std::string, Pending>> model;
  std::vector<std::pair<std::string, Pending>> state;
  Progress progress;
  std::vector<std::pair<std::string, std::string>> files;  // names and contents, beside those
  std::set<std::string> may_be_infinite;  // tensors that are neither trained nor kept for what is
};
Snapshot take_snapshot(const Backend& backend, const torch::nn::Module& model,
                       const std::vector<torch::optim::Optimizer*>& optimizers, const Progress& progress,
                       const NamedTensors& more = {});

// Writes to `folder` (its parents are made). An existing checkpoint there is replaced at the end, or stays as
// it was: also where the values are none to go on with (check_finite, kOutOfRange).
base::Status write_checkpoint(const Snapshot& snapshot, const std::string& folder);

struct Checkpoint {
  NamedTensors model;
  NamedTensors state;
  Progress progress;
};
base::Result<Checkpoint> read_checkpoint(const std::string& folder);
base::Result<Progress> read_progress(const std::string& folder);
// The folder, or the one that a crash between two renames left in its place; "" when there is none.
std::string find_checkpoint(const std::string& folder);
// The same; a folder with some of a checkpoint's files and without the others is an error that names them.
base::Result<std::string> find_whole_checkpoint(const std::string& folder);
// Which of a checkpoint's files are none of these names.
std::vector<std::string> missing_files(const std::vector<std::string>& names);
// That all of its files are in a folder. `source` is what the error calls it; fails with kDataLoss.
base::Status check_whole(const std::string& folder, const std::string& source);
// Sets LibTorch's CPU generator to the checkpoint's.
void restore_random(const Checkpoint& checkpoint);

// Writes checkpoints on a thread of its own, one after the other. Threads: one at a time.
class CheckpointWriter {
 public:
  ~CheckpointWriter();
  // Waits for the one before; its error is returned here and this one is not written.
  base::Status write(Snapshot snapshot, std::vector<std::string> folders);
  base::Status wait();
  // Called on the writer's thread with the folders after they were written; its error is the writing's.
  void set_publish(std::function<base::Status(const std::vector<std::string>&)> publish) {
    publish_ = std::move(publish);
  }

 private:
  std::function<base::Status(const std::vector<std::string>&)> publish_;
  std::future<base::Status> running_;
};

}  // namespace sluice::sessions
