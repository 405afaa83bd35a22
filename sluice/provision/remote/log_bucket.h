// Copies the logs of a run to a bucket while they grow: gs://BUCKET/PREFIX/RUN/worker-0.log and so on, each
// one object that is complete up to some seconds ago.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "sluice/cloud/store.h"

namespace sluice::provision {

class LogBucket {
 public:
  // `folder` has the logs, *.log; `target` is a prefix of objects, without a slash at its end.
  LogBucket(const cloud::Store& store, std::string folder, cloud::ObjectName target)
      : store_(store), folder_(std::move(folder)), target_(std::move(target)) {}

  // Copies what was appended since the last call. The first piece is an object; each further piece is sent by
  // itself and appended there, so that every byte is sent once. Where the store cannot append (S3: to less
  // than 5 MiB), the whole log is sent again when it has grown enough (cloud::has_grown_enough), five minutes
  // after the last time, or with `all`. Several programs may copy the same logs at once. The first error ends
  // the call; the next call continues from what the bucket has.
  base::Status copy(bool all = true);

 private:
  struct Object {
    cloud::ObjectFacts facts{.generation = "0"};
    bool is_known = false;  // the facts match the bucket
    bool refuses = false;   // the store would not append to it
    double replaced = 0;    // when it was sent as a whole, on the monotonic clock
  };
  base::Status copy(const std::string& file, bool all);
  base::Status replace(const cloud::ObjectName& name, Object& object, const std::string& path,
                       std::uint64_t size);
  bool can_append(const Object& object) const;
  // Sets `object` to what the bucket has; returns whether that is more than was known.
  base::Result<bool> ask_for(const cloud::ObjectName& name, Object& object, const std::string& path);

  const cloud::Store& store_;
  const std::string folder_;
  const cloud::ObjectName target_;
  std::map<std::string, Object> objects_;
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
