#include "sluice/train/checkpoints/checkpoint_keeper.h"

#include <optional>
#include <string_view>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::train {

CheckpointKeeper::CheckpointKeeper(const RunSetup& given, RunState& state, LogFolder& folder,
                                   const CallbackList& callbacks, const OptimizerSet& optimizers)
    : given_(given), state_(state), folder_(folder), callbacks_(callbacks), optimizers_(optimizers) {
  if (folder.remote() != nullptr) writer_.set_copy(folder.remote()->copy());
  if (given.session.backend().spans_processes()) writer_.set_peers(given_.session.save_peers());
}

void CheckpointKeeper::open_top() {
  const TrainOptions& options = given_.options;
  if (options.save_top_k == 0 || !given_.session.is_leader()) return;
  const sessions::Progress& progress = state_.progress;
  top_ = std::make_unique<TopCheckpoints>(base::value_or_throw(TopCheckpoints::open(
      folder_.remote() ? folder_.remote()->top() : top_in_folder(options.logdir), options.save_top_k,
      given_.steps.monitor, progress.step, progress.due.test && given_.test != nullptr)));
}

void CheckpointKeeper::save(bool best) {
  callbacks_.call("before_reading", &Callback::before_reading);
  write(best);
  callbacks_.call("after_reading", &Callback::after_reading);
}

// With a mesh over several processes, each of them writes what its devices hold.
void CheckpointKeeper::write(bool best) {
  Session& session = given_.session;
  session.sync("checkpoint");  // all processes launch what is read
  if (!session.is_leader() && !session.backend().spans_processes()) return;
  if (session.is_leader()) note_progress();
  await();  // so that there is one snapshot at a time
  sessions::Snapshot snapshot = sessions::take_snapshot(session.backend(), given_.module, optimizers_.all(),
                                                        state_.progress, callbacks_.tensors());
  snapshot.files = given_.steps.files;
  std::vector<std::string> folders = folders_of(best);
  writing_ = folders;
  state_.progress.value.reset();
  base::value_or_throw(writer_.write(std::move(snapshot), std::move(folders)));
}

void CheckpointKeeper::note_progress() {
  sessions::Progress& progress = state_.progress;
  progress.seconds = state_.seconds();
  callbacks_.put_states(progress.callbacks);
  progress.due.stop = state_.ends_here ? "" : state_.stop_reason;
  progress.input = given_.train.state(given_.session, state_.data_epoch(), state_.batches_done());
}

std::vector<std::string> CheckpointKeeper::folders_of(bool best) {
  std::vector<std::string> folders;
  // A run that continues from `last` has all the others.
  if (best && given_.session.is_leader()) folders.push_back(folder_.path("best"));
  if (top_ && state_.progress.value) {
    // A displaced checkpoint is removed once the better one is on the disk.
    base::value_or_throw(top_->remove_displaced());
    if (const auto top = top_->add(*state_.progress.value, state_.progress.step))
      folders.push_back(folder_.path(top->c_str()));
  }
  folders.push_back(folder_.path("last"));
  return folders;
}

void CheckpointKeeper::await() {
  const std::vector<std::string> folders = std::exchange(writing_, {});
  const base::Status written = writer_.wait();
  if (written) {
    saved_.insert(folders.begin(), folders.end());
    return;
  }
  if (written.error().code() != Code::kOutOfRange) throw_error(written.error());
  throw_error(Code::kOutOfRange, base::str(written.error().what(),
                                           ". Try a smaller --lr, --warmup-epochs, --clip-norm or --on-nan ",
                                           "skip. ", last_good()));
}

void CheckpointKeeper::remove_displaced() {
  if (top_) base::value_or_throw(top_->remove_displaced());
}

std::string CheckpointKeeper::last_good() {
  if (!writing_.empty()) {
    // The first checkpoint may still be on its way.
    const std::vector<std::string> folders = std::exchange(writing_, {});
    if (writer_.wait()) saved_.insert(folders.begin(), folders.end());
  }
  if (has("last")) return base::str("The last good checkpoint is ", folder_.shown("last"), ".");
  return given_.session.is_leader() ? "There is no checkpoint yet." : "Process 0 has the checkpoints.";
}

bool CheckpointKeeper::has(const char* name) const {
  if (saved_.count(folder_.path(name)) > 0) return true;
  if (folder_.remote() == nullptr) return !sessions::find_checkpoint(folder_.path(name)).empty();
  return state_.restored_from == given_.options.logdir && std::string_view(name) == "last";
}

}  // namespace sluice::train
