// A run's log folder: on this machine, or in a bucket with a local folder that stands for it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "sluice/base/files/file.h"
#include "sluice/train/checkpoints/remote_folder.h"
#include "sluice/train/options.h"

namespace sluice::train {

// Errors are thrown. Threads: one at a time, but see RemoteFolder.
class LogFolder {
 public:
  // Opens a folder in a bucket; `leader`: whether this process uploads. `options` lives longer.
  LogFolder(const TrainOptions& options, bool leader);
  // The folder of this machine that files are written to.
  const std::string& local() const { return remote_ ? remote_->local() : options_.logdir; }
  std::string path(const char* name) const { return base::join_path(local(), name); }
  // Returns the name in messages: in a bucket, the object's.
  std::string shown(const char* name) const { return base::join_path(options_.logdir, name); }
  // Held while a row is written (see RemoteFolder::rows()); null: nobody else reads the files.
  std::mutex* rows() const { return remote_ ? &remote_->rows() : nullptr; }
  RemoteFolder* remote() const { return remote_.get(); }  // null: a folder of this machine
  // Brings the event files of a folder in a bucket here, too.
  void fetch_events();
  // Uploads what has changed and ends the uploading.
  void finish();

 private:
  const TrainOptions& options_;
  std::unique_ptr<RemoteFolder> remote_;
};

}  // namespace sluice::train
