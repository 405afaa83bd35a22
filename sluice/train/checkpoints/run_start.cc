#include "sluice/train/checkpoints/run_start.h"

#include <utility>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/files/weights.h"
#include "sluice/train/optimizers/optimizers.h"

namespace sluice::train {

std::string RunStart::find() {
  const Resume& resume = given_.options.resume;
  std::string from = resume.folder;
  if (resume.from_last && folder_.remote() != nullptr) {
    from = base::value_or_throw(folder_.remote()->find_start());
  } else if (resume.from_last) {
    from = base::value_or_throw(sessions::find_whole_checkpoint(folder_.path("last")));
  }
  if (!RemoteFolder::is_remote(from)) return from;
  if (given_.session.backend().spans_processes())
    return base::value_or_throw(sessions::checkpoint_folder(from));
  fetched_ = base::value_or_throw(base::TemporaryDirectory::create("sluice-resume"));
  base::value_or_throw(sessions::fetch_checkpoint(from, fetched_->path()));
  base::value_or_throw(sessions::check_whole(fetched_->path(), from));
  return fetched_->path();
}

sessions::Progress RunStart::load(const std::string& from) {
  const std::string& shown = state_.restored_from;
  if (given_.session.backend().spans_processes()) {
    source_ = base::value_or_throw(sessions::CheckpointSource::open(from));
    base::value_or_throw(source_->load_model(given_.module, shown));
    return source_->progress();
  }
  restored_ = base::value_or_throw(sessions::read_checkpoint(from));
  base::value_or_throw(sessions::load_module(given_.module, restored_->model, shown));
  return restored_->progress;
}

void RunStart::restore() {
  const TrainOptions& options = given_.options;
  sessions::Progress& progress = state_.progress;
  const std::string from = find();
  if (!from.empty()) {
    const Resume& resume = options.resume;
    const bool elsewhere = fetched_ || RemoteFolder::is_remote(from);
    state_.restored_from = !elsewhere ? from : resume.from_last ? options.logdir : resume.folder;
    const sessions::Progress restored = load(from);
    sessions::Progress own = std::move(progress);
    progress = restored;
    progress.model = std::move(own.model);
    progress.config = std::move(own.config);
    if (progress.monitor != own.monitor) progress.best.reset();  // `best` was of another value
    progress.monitor = std::move(own.monitor);
    progress.value.reset();  // of a test before this part of the run
    state_.earlier_seconds = progress.seconds;
    console_.line(base::str("Going on from ", state_.restored_from, ": epoch ", progress.epoch + 1, ", step ",
                            progress.step));
    return;
  }
  if (folder_.remote() != nullptr ? base::value_or_throw(folder_.remote()->has_checkpoint())
                                  : !sessions::find_checkpoint(folder_.path("last")).empty())
    base::warn(folder_.shown("last"),
               " is a checkpoint of an earlier run and will be replaced: --resume would continue from it");
  if (!options.weights.empty() && !given_.session.backend().mesh().empty()) {
    base::value_or_throw(sessions::load_over_mesh(given_.module, options.weights));
  } else if (!options.weights.empty()) {
    base::value_or_throw(sessions::load_module(
        given_.module, base::value_or_throw(sessions::read_weights(options.weights)), options.weights));
  }
}

void RunStart::prepare(const CallbackList& callbacks, OptimizerSet& optimizers) {
  torch::nn::Module& module = given_.module;
  given_.session.place(module);
  callbacks.call("before_optimizers", &Callback::before_optimizers);
  std::vector<OptimizerSetup> setups;
  const Steps& steps = given_.steps;
  if (steps.configure_optimizers) setups = steps.configure_optimizers();
  if (!steps.configure_optimizers)
    setups.push_back({make_optimizer(given_.options, module.parameters()), {}});
  optimizers.take(std::move(setups), module);
  if (source_) {
    restored_.emplace();
    restored_->state = base::value_or_throw(source_->load_state(module));
    source_.reset();
  }
  if (restored_) {
    for (auto* optimizer : optimizers.all())
      base::value_or_throw(
          sessions::load_optimizer(*optimizer, module, restored_->state, state_.restored_from));
    sessions::restore_random(*restored_);
    for (auto& [name, tensor] : restored_->state)
      if (base::starts_with(name, CallbackList::kPrefix)) tensors_.emplace_back(name, tensor);
    restored_.reset();
    fetched_.reset();
  }
  given_.session.prepare(module, optimizers.all());
}

void RunStart::load_callbacks(const CallbackList& callbacks) {
  callbacks.load(state_.progress.callbacks, tensors_);
  state_.progress.callbacks.clear();
  tensors_.clear();
}

}  // namespace sluice::train
