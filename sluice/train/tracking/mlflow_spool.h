// What a run has for MLflow, on its disk until the server has it: LOGDIR/mlflow.jsonl, a line for each row,
// and LOGDIR/mlflow.json, which says whose run it is and how many lines have arrived.
//
// A line is an object with its number "n" and one of
//   {"metrics": {NAME: number, "NaN", "Infinity" or "-Infinity"}, "step", "time" in milliseconds since 1970},
//   {"params": {NAME: text}}, {"tags": {NAME: text}}, {"status": "FINISHED", "time"}.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sluice/base/folder_lock.h"
#include "sluice/base/result.h"

namespace sluice::train {

// Where the lines go. Each change is on the disk before the next request.
struct MlflowPlace {
  std::string uri, experiment, run_name;
  std::string key;     // a tag of the run by which it is found when the answer to its creation was lost
  int64_t began = 0;   // milliseconds since 1970
  bool asked = false;  // the server was asked for a run
  std::string run_id;  // "": not there yet
  std::map<std::string, std::string> parameters;  // that the run has, or will have
};

// One at a time has a folder's; another one is kFailedPrecondition.
// Threads: append() and left() from any; the rest from one at a time.
class MlflowSpool {
 public:
  // Of a folder that has one; kNotFound otherwise. A line cut off in the middle goes, those that have arrived
  // too, and metrics of steps after `last_step` that have not.
  static base::Result<std::unique_ptr<MlflowSpool>> open(const std::string& folder, int64_t last_step);
  // An empty one, in the place of whatever the folder has.
  static base::Result<std::unique_ptr<MlflowSpool>> create(const std::string& folder,
                                                           const MlflowPlace& place);
  // How many lines of a folder's spool have not arrived; 0 where there is none.
  static int64_t left_in(const std::string& folder);

  const MlflowPlace& place() const { return place_; }
  base::Status set_place(MlflowPlace place);

  // Adds a line; it gets the next number.
  base::Status append(nlohmann::json line);
  int64_t left() const;
  // The first line that has not arrived, or further ones behind it; null when there are no more. It stays
  // where it is until the next arrived().
  base::Result<const nlohmann::json*> peek(std::size_t index);
  // The first `count` lines that were peeked at are with the server.
  base::Status arrived(std::size_t count);
  // The first line is refused for good: it goes to LOGDIR/mlflow-refused.jsonl.
  base::Status refuse_first();

  // Others may have the folder's spool from now on; of this one only left() is asked.
  void close() { lock_.reset(); }

  std::string lines_path() const;
  std::string refused_path() const;

 private:
  explicit MlflowSpool(std::string folder) : folder_(std::move(folder)) {}
  base::Status lock();
  base::Status load(int64_t last_step);
  base::Status save() const;
  const std::string folder_;
  std::optional<base::FolderLock> lock_;
  MlflowPlace place_;
  int64_t sent_ = 0;   // the number of the last line that has arrived
  uint64_t read_ = 0;  // bytes of the file that were read ahead
  std::deque<nlohmann::json> ahead_;
  mutable std::mutex mutex_;
  int64_t last_ = 0;  // the number of the last line
  int64_t left_ = 0;  // lines that have not arrived
};

}  // namespace sluice::train
