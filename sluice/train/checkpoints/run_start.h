// The start of a run: fresh, or from a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/pieces/checkpoint_source.h"
#include "sluice/train/checkpoints/log_folder.h"
#include "sluice/train/log/console.h"
#include "sluice/train/optimizers/optimizer_set.h"
#include "sluice/train/run/callback_list.h"
#include "sluice/train/run/run_setup.h"
#include "sluice/train/run/run_state.h"

namespace sluice::train {

// Call the functions once each, in this order. Errors are thrown. Threads: the session's.
class RunStart {
 public:
  // All of them live longer.
  RunStart(const RunSetup& given, RunState& state, const LogFolder& folder, Console& console)
      : given_(given), state_(state), folder_(folder), console_(console) {}
  // Puts the weights of the checkpoint or of --weights into the module, which is not on the device yet; sets
  // the state.
  void restore();
  // Moves the module to the device, makes the optimizers and restores their state.
  void prepare(const CallbackList& callbacks, OptimizerSet& optimizers);
  void load_callbacks(const CallbackList& callbacks);

 private:
  // Returns a local folder with the checkpoint of --resume; "" for a fresh start. Several processes that
  // share the model read what they need of a bucket's: then it is the folder's URL.
  std::string find();
  // Loads the checkpoint's weights; returns where its run stands.
  sessions::Progress load(const std::string& from);

  const RunSetup& given_;
  RunState& state_;
  const LogFolder& folder_;
  Console& console_;
  std::optional<base::TemporaryDirectory> fetched_;   // the checkpoint of --resume gs://…
  std::optional<sessions::CheckpointSource> source_;  // if several processes share the model
  std::optional<sessions::Checkpoint> restored_;
  NamedValues tensors_;  // of the callbacks
};

}  // namespace sluice::train
