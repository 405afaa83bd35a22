#include "sluice/train/checkpoints/log_folder.h"

namespace sluice::train {

LogFolder::LogFolder(const TrainOptions& options, bool leader) : options_(options) {
  if (RemoteFolder::is_remote(options.logdir))
    remote_ = base::value_or_throw(RemoteFolder::open(options.logdir, leader));
}

void LogFolder::fetch_events() {
  if (remote_) base::value_or_throw(remote_->fetch_events());
}

void LogFolder::finish() {
  if (remote_) base::value_or_throw(remote_->finish());
}

}  // namespace sluice::train
