// The rows that a run has for MLflow, on disk until the server has them: LOGDIR/mlflow.jsonl has a line for
// each row, and LOGDIR/mlflow.json names the run and the number of lines that have arrived.
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

#include "sluice/base/files/folder_lock.h"
#include "sluice/base/result.h"

namespace sluice::train {

// The destination of the lines. Each change is on the disk before the next request.
struct MlflowPlace {
  std::string uri, experiment, run_name;
  std::string key;     // a tag that finds the run if the answer to its creation was lost
  int64_t began = 0;   // milliseconds since 1970
  bool asked = false;  // whether the server was asked for a run
  std::string run_id;  // "": not yet known
  std::map<std::string, std::string> parameters;  // the parameters that the run has, or will have
};

// Only one MlflowSpool at a time may have a folder's spool; a second one fails with kFailedPrecondition.
// Threads: append() and left() from any; the rest from one at a time.
class MlflowSpool {
 public:
  // Opens a folder's spool; fails with kNotFound if it has none. Drops a line cut off in the middle, the
  // lines that have arrived, and metrics of steps after `last_step` that have not.
  static base::Result<std::unique_ptr<MlflowSpool>> open(const std::string& folder, int64_t last_step);
  // Creates an empty spool; it replaces the folder's spool, if any.
  static base::Result<std::unique_ptr<MlflowSpool>> create(const std::string& folder,
                                                           const MlflowPlace& place);
  // Returns the number of lines of a folder's spool that have not arrived; 0 if there is no spool.
  static int64_t left_in(const std::string& folder);

  const MlflowPlace& place() const { return place_; }
  base::Status set_place(MlflowPlace place);

  // Adds a line; it gets the next number.
  base::Status append(nlohmann::json line);
  int64_t left() const;
  // Returns the first line that has not arrived (`index` 0), or a later one; null if there are no more. It
  // stays valid until the next arrived().
  base::Result<const nlohmann::json*> peek(std::size_t index);
  // Call it when the server has the first `count` lines that were peeked at.
  base::Status arrived(std::size_t count);
  // The server refuses the first line for good: moves it to LOGDIR/mlflow-refused.jsonl.
  base::Status refuse_first();

  // Lets others take the folder's spool; after it, only left() may be called.
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
