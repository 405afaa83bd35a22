// A run's log folder in a bucket: --logdir gs://bucket/run, --resume s3://bucket/run, of any store that
// Sluice can write to.
//
// The run writes to a folder of this machine. Its files (metrics, TensorBoard events) are uploaded every 30 s
// if they have changed, with each checkpoint before it counts, and at the end; of a file that has only grown,
// the new bytes are sent (cloud/stores/growing_object.h says where not). A checkpoint becomes a new
// folder next to the old one, gs://bucket/run/checkpoint-TIME-NUMBER/. When all of its files are there and
// have been compared, the object gs://bucket/run/last (and best, top-STEP) gets its name, and folders that no
// such object names are removed. So a reader that follows `last` finds a whole checkpoint at any time, and
// the rows of all of its steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/result.h"
#include "sluice/cloud/stores/growing_object.h"
#include "sluice/session/pieces/shared_checkpoint.h"
#include "sluice/train/checkpoints/top_checkpoints.h"

namespace sluice::train {

// The upload of one checkpoint after the other into a folder of its own.
class CheckpointUpload {
 public:
  explicit CheckpointUpload(std::string url) : url_(std::move(url)) {}
  // Returns the name of a new checkpoint's folder.
  std::string begin();
  // Uploads the files of a local folder that this checkpoint has not got yet, state.json as the last one.
  base::Status send(const std::string& checkpoint, const std::string& folder);

 private:
  const std::string url_;
  std::string current_;         // the checkpoint's folder
  std::set<std::string> sent_;  // the files that it has
};

// Threads: publish() from the thread that writes checkpoints, the rest from one other thread; the result of
// top() must not be used while publish() runs.
class RemoteFolder {
 public:
  static bool is_remote(const std::string& url);
  // Fetches the existing metrics, so that a resumed run appends to them. With several processes, only
  // the leader uploads.
  static base::Result<std::unique_ptr<RemoteFolder>> open(const std::string& url, bool leader);
  ~RemoteFolder();

  // Fetches the existing event files too, which a run only needs if rows of its step are due (RowsDue).
  base::Status fetch_events();

  // The folder of this machine that stands for the bucket's folder; removed at the end.
  const std::string& local() const { return local_.path(); }
  // Whether the bucket has a checkpoint of this run.
  base::Result<bool> has_checkpoint() const;
  // Returns the URL that --resume continues from: this folder, if it has `last`. A run that was killed before
  // it wrote its first `last` leaves folders of checkpoints without it: then the newest whole one, whose
  // names are written now, or "" (a fresh start) if none is whole, both with a warning. Fails with kDataLoss
  // if none is whole but there is `best`, which a run only writes after a whole checkpoint.
  base::Result<std::string> find_start() const;
  // Returns what makes a checkpoint's copy here; it must not outlive this folder. Its local folders are
  // …/last, …/best and …/top-STEP, with equal content; finish() also uploads changed files, and removes the
  // local top-STEP.
  sessions::CheckpointCopy copy();
  // Returns the bucket's top-STEP; it must not outlive this folder.
  std::unique_ptr<TopPlace> top();
  // Uploads changed files and ends the uploading.
  base::Status finish();
  // Hold it while a row is written to several files: an upload takes none of them or all.
  std::mutex& rows() { return rows_; }

 private:
  class Top;
  RemoteFolder(std::string url, base::TemporaryDirectory local)
      : url_(std::move(url)), local_(std::move(local)), upload_(url_) {}
  void work();
  void stop();
  // Uploads the files that have changed, all as they are between two rows. Without
  // `all`, no file is uploaded while GrowingObject lets one wait: readers expect the rows of one moment.
  base::Status upload_changes(bool all);
  // Fetches a file from the bucket; kNotFound if it is not there.
  base::Status fetch(const std::string& name);
  // Returns the object that stands for a file of this name.
  base::Result<cloud::GrowingObject*> object_of(const std::string& name);
  // A file that has another one of these was changed.
  struct FileState {
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type changed;
    bool operator==(const FileState&) const = default;
    static base::Result<FileState> of(const std::string& path);
  };
  struct Change;  // an open file that is to be uploaded
  // Opens the files that have changed, between two rows.
  base::Result<std::vector<Change>> open_changes();
  base::Status publish(const std::string& checkpoint, const std::vector<std::string>& folders);
  // Removes the checkpoints that no object names.
  base::Status remove_old_checkpoints() const;

  const std::string url_;  // without a slash at its end
  const base::TemporaryDirectory local_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::mutex rows_;
  std::mutex uploading_;  // held by the thread that uploads files
  std::map<std::string, FileState> uploaded_;
  std::map<std::string, cloud::GrowingObject> objects_;  // of the files
  CheckpointUpload upload_;
  std::thread thread_;
};

}  // namespace sluice::train
