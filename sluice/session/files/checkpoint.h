// Checkpoints: weights in safetensors, and the rest of a run's state next to them.
//
// A checkpoint is a folder with model.safetensors (parameters and buffers by their names), state.safetensors
// (optimizer and random generator), state.json (epoch, step, …) and the files that a task adds. Several
// processes that share one model write each of the two as several files with an index
// (pieces/shared_checkpoint.h). It is written under a temporary name and takes its place at once: a reader
// sees either the old one or the new one, complete.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/session/backend.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/pieces/piece_index.h"

namespace sluice::sessions {

// The work that was due but not yet done when the checkpoint was taken: a run that continues from it does
// this first.
struct Due {
  bool test = false;          // a test, with the checkpoint, `best` and the callbacks' work after it
  bool within_epoch = false;  // due after an update, not at the end of the epoch or of the run
  std::string stop;           // why a callback has ended the run; "": none has
};

// The position of a run: the next batch to train is `batch` of `epoch`.
struct Progress {
  std::string model;
  int64_t epoch = 0;
  int64_t batch = 0;
  int64_t step = 0;             // optimizer updates so far
  std::string monitor;          // the value of its tests that the run is judged by, such as "accuracy"
  std::optional<double> best;   // the best value of `monitor` so far
  std::optional<double> value;  // of the last test, if there was one since the checkpoint before this one
  std::map<std::string, std::string> callbacks;  // what each callback has to remember, by its name
  double seconds = 0;                            // time spent training so far
  double global_rates = 0;                       // sum of the epochs' rates, for their mean
  int64_t rated_epochs = 0;
  std::string config;
  std::string input;    // what the order of the samples depends on (data::WebDataset::state)
  int64_t skipped = 0;  // the updates among `step` that were not made
  int64_t tested = -1;  // the step of the last test; -1: none
  Due due;
};

// Returns the state of SGD, Adam, AdamW, RMSprop or Adagrad as tensors called "optimizer.PARAMETER.FIELD".
NamedTensors optimizer_tensors(torch::optim::Optimizer& optimizer, const torch::nn::Module& model);
// Loads the state of the optimizer's own parameters. `source` names the checkpoint in errors: a state of
// another optimizer, of another shape, or without a field that the optimizer's settings need.
base::Status load_optimizer(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
                            const NamedTensors& tensors, const std::string& source);
// Does what sluice::create_state does; returns what it created. PARAMETER in the names is a number.
NamedTensors create_missing_state(torch::optim::Optimizer& optimizer);

// The values of a run at one moment. Taking them does not wait for the device; take_snapshot stores `more`
// next to the optimizers' state.
struct Snapshot {
  std::vector<std::pair<std::string, Pending>> model;
  std::vector<std::pair<std::string, Pending>> state;
  Progress progress;
  std::vector<std::pair<std::string, std::string>> files;  // names and contents of further files
  std::set<std::string> may_be_infinite;  // tensors that are neither trained nor kept for a trained one
  // If the devices of several processes share the model: the pieces of all processes. `model` and `state`
  // then have the pieces that this process writes, and no process has a tensor that lies in blocks whole.
  std::optional<CheckpointPieces> pieces = {};
};
// With a mesh over several processes all of them take a snapshot of the same tensors.
Snapshot take_snapshot(const Backend& backend, const torch::nn::Module& model,
                       const std::vector<torch::optim::Optimizer*>& optimizers, const Progress& progress,
                       const NamedTensors& more = {});

// Waits until the values are on the host, and lets go of each value's buffers on the devices when it is
// there. Then a snapshot is one copy of the values.
void settle(Snapshot& snapshot);

// Writes to `folder`, whose parents are created. An existing checkpoint there is replaced at the end, or
// stays as it was; it also stays if a run could not continue with the values (check_finite, kOutOfRange).
base::Status write_checkpoint(const Snapshot& snapshot, const std::string& folder);
// Writes one checkpoint under several names, which are replaced in this order. The values are written once:
// the other folders get hard links to these files, or copies where the file system refuses links.
// So no program may write into a checkpoint's files; it replaces them (base::AtomicFile).
base::Status write_checkpoints(const Snapshot& snapshot, const std::vector<std::string>& folders);
// Writes Snapshot::files, and at the end state.json: the files without which a folder is no checkpoint.
base::Status write_progress(const Snapshot& snapshot, const std::string& folder);

struct Checkpoint {
  NamedTensors model;
  NamedTensors state;
  Progress progress;
};
base::Result<Checkpoint> read_checkpoint(const std::string& folder);
base::Result<Progress> read_progress(const std::string& folder);
// Returns the weights of a checkpoint in either form.
base::Result<NamedTensors> read_model(const std::string& folder);
// Returns the folder, or the one that a crash between two renames left instead; "" if there is none.
std::string find_checkpoint(const std::string& folder);
// Does the same as find_checkpoint; a folder with only some of a checkpoint's files is an error that names
// them.
base::Result<std::string> find_whole_checkpoint(const std::string& folder);
// Returns which of a checkpoint's files are not among `names`, the files of its folder.
std::vector<std::string> missing_files(const std::vector<std::string>& names);
// Checks that a folder has all of a checkpoint's files, or fails with kDataLoss. Errors call it `source`.
base::Status check_whole(const std::string& folder, const std::string& source);
// Sets LibTorch's CPU generator to the checkpoint's.
void restore_random(const Checkpoint& checkpoint);

}  // namespace sluice::sessions
