// A run's log folder in a bucket: --logdir gs://bucket/run, --resume s3://bucket/run, of any store that is
// written.
//
// The run writes to a folder of this machine. Its files (metrics, TensorBoard events) are uploaded every 30 s
// when they changed, with each checkpoint before it counts, and at the end. A checkpoint becomes a folder of
// its own beside the old one, gs://bucket/run/checkpoint-TIME-NUMBER/; when all of its files are there and
// they were compared, the object gs://bucket/run/last (and best, top-STEP) gets its name, and folders that
// none of these names are removed. So a reader that follows `last` finds a whole checkpoint at any time, and
// the rows of all of its steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/file.h"
#include "sluice/base/result.h"
#include "sluice/train/top_checkpoints.h"

namespace sluice::train {

// Threads: publish() from the thread that writes checkpoints, the rest from one other; what top() gives, not
// while publish() runs.
class RemoteFolder {
 public:
  static bool is_remote(const std::string& url);
  // Fetches the metrics that are there, so that a resumed run appends to them. Only the leader of many
  // processes uploads.
  static base::Result<std::unique_ptr<RemoteFolder>> open(const std::string& url, bool leader);
  ~RemoteFolder();

  // The folder of this machine that stands for it, removed at the end.
  const std::string& local() const { return local_.path(); }
  // Whether the bucket has a checkpoint of this run.
  base::Result<bool> has_checkpoint() const;
  // From which URL --resume goes on: this folder, where it has `last`. A run that was killed before it wrote
  // its first `last` leaves folders of checkpoints without it: then the newest whole one, and "" (a fresh
  // start) where none is, both with a warning. kDataLoss where there is `best`, which a run writes behind a
  // whole checkpoint, and none is whole.
  base::Result<std::string> find_start() const;
  // Uploads what has changed, and a checkpoint that was written to these folders (…/last, …/best, …/top-STEP,
  // with equal content), whose local top-STEP is removed.
  base::Status publish(const std::vector<std::string>& folders);
  // The bucket's top-STEP. It must not outlive this.
  std::unique_ptr<TopPlace> top();
  // Uploads what has changed and ends the uploading.
  base::Status finish();

 private:
  class Top;
  RemoteFolder(std::string url, base::TemporaryDirectory local)
      : url_(std::move(url)), local_(std::move(local)) {}
  void work();
  void stop();
  base::Status upload_changes();
  // Those that no object names.
  base::Status remove_old_checkpoints() const;

  const std::string url_;  // without a slash at its end
  const base::TemporaryDirectory local_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::mutex uploading_;  // held by who uploads files
  // Bytes and time of change of each file when it was uploaded.
  std::map<std::string, std::pair<std::uint64_t, std::filesystem::file_time_type>> uploaded_;
  std::thread thread_;
};

}  // namespace sluice::train
