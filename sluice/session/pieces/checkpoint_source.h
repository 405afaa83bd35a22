// A checkpoint from which a run over several processes continues: each of them reads what its devices hold.
#pragma once

#include <memory>
#include <string>

#include "sluice/base/result.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {

// A checkpoint in either form, in a folder of this machine or in a bucket. Threads: one at a time.
class CheckpointSource {
 public:
  // `from` is what find_whole_checkpoint() or checkpoint_folder() returns. Reads state.json and the headers
  // of the files, and checks them.
  static base::Result<CheckpointSource> open(const std::string& from);

  const Progress& progress() const { return progress_; }
  // Gives the module the checkpoint's weights, over the open device's mesh (load_stored). `source` names the
  // checkpoint in errors.
  base::Status load_model(torch::nn::Module& model, const std::string& source);
  // Returns the state for load_optimizer(), restore_random() and callbacks. A tensor that is kept for a
  // parameter and has its shape is on the devices and lies like the parameter; all others are on the host.
  base::Result<NamedTensors> load_state(const torch::nn::Module& model);
  // What has been read of the tensors so far.
  StoredReads reads() const { return reader_->reads(); }

 private:
  std::unique_ptr<StoredReader> reader_ = std::make_unique<StoredReader>();
  Progress progress_;
  StoredTensors model_, state_;
};

}  // namespace sluice::sessions
