// Copies the logs of a run to a bucket while they grow: gs://BUCKET/PREFIX/RUN/worker-0.log and so on, each
// file one object that is complete up to some seconds ago. The bucket keeps files that --log-size removes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sluice/cloud/stores/growing_object.h"

namespace sluice::provision {

class LogBucket {
 public:
  // `folder` has the logs, *.log; `target` is a prefix of objects, without a slash at its end.
  LogBucket(const cloud::Store& store, std::string folder, cloud::ObjectName target)
      : store_(store), folder_(std::move(folder)), target_(std::move(target)) {}

  // Copies what was appended since the last call, so that every byte is sent about once
  // (cloud::GrowingObject). A log that its store can only take whole may wait; not with `all`, and not once
  // the run writes to the log's next file (pod::log_parts). Several programs may copy the same logs at once.
  // The first error ends the call; the next call continues from what the bucket has.
  base::Status copy(bool all = true);

 private:
  struct Log {
    cloud::GrowingObject object;
    std::uint64_t seen = 0, copied = 0;  // bytes of the file
  };
  base::Status copy(const std::string& file, bool all);
  static base::Status send(Log& log, const std::string& path, bool all);
  void forget_removed(const std::vector<std::string>& files);

  const cloud::Store& store_;
  const std::string folder_;
  const cloud::ObjectName target_;
  std::map<std::string, Log> logs_;  // by the file's name
};

// Returns the target of gs://, s3:// or az:// BUCKET/PREFIX of --log-bucket and the run's name.
base::Result<cloud::ObjectName> log_target(const std::string& url, const std::string& run);

// Writes TARGET/run.json: the run, its workers and when it began, but not its command and environment, which
// may hold secrets. So a bucket that cannot be written is found before anything starts.
base::Status begin_log_bucket(const std::string& url, const std::string& run, int workers);

// Copies the logs of a run every `seconds` until it is over or has had no client for ten minutes, then one
// last time. Errors in between are reported once and tried again; returns the last copy's error.
base::Status copy_logs(const std::string& url, const std::string& run, double seconds);

}  // namespace sluice::provision
