// The logs of a run in a bucket, while they grow: gs://BUCKET/PREFIX/RUN/worker-0.log and so on, each one
// object that is complete up to some seconds ago.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "sluice/cloud/storage.h"

namespace sluice::provision {

class LogBucket {
 public:
  // `folder` has the logs, *.log; `target` is a prefix of objects, without a slash at its end.
  LogBucket(const cloud::Store& store, std::string folder, cloud::ObjectName target)
      : store_(store),
        composing_(dynamic_cast<const cloud::Storage*>(&store)),
        folder_(std::move(folder)),
        target_(std::move(target)) {}

  // What has grown since the last call. In Cloud Storage a first piece is an object, a further one is sent on
  // its own and put behind it there, so that every byte goes up once. Other stores cannot do so: there the
  // whole log goes up again when it has grown by an eighth or five minutes later, and with `all` in any case.
  // Several may copy the same logs at once. The first error ends the call; the next one goes on from what the
  // bucket has.
  base::Status copy(bool all = true);

 private:
  struct Object {
    std::uint64_t size = 0;
    std::string generation = "0";
    bool is_known = false;  // as the bucket has it
    double replaced = 0;    // when it went up as a whole, on the monotonic clock
  };
  base::Status copy(const std::string& file, bool all);
  base::Status replace(const cloud::ObjectName& name, Object& object, const std::string& path,
                       std::uint64_t size);
  base::Status append(const cloud::ObjectName& name, Object& object, const std::string& piece);
  // Sets `object` to what the bucket has; whether that is more than was known.
  base::Result<bool> ask_for(const cloud::ObjectName& name, Object& object, const std::string& path);

  const cloud::Store& store_;
  const cloud::Storage* const composing_;  // the same, where it can put objects behind each other
  const std::string folder_;
  const cloud::ObjectName target_;
  std::map<std::string, Object> objects_;
};

// gs://, s3:// or az:// BUCKET/PREFIX of --log-bucket and the run's name.
base::Result<cloud::ObjectName> log_target(const std::string& url, const std::string& run);

// Writes TARGET/run.json (the run, its workers, when it began; neither its command nor its environment, which
// may hold secrets): so a bucket that cannot be written is found before anything starts.
base::Status begin_log_bucket(const std::string& url, const std::string& run, int workers);

// Copies the logs of a run every `seconds` until it is over, or has had no client for ten minutes, and once
// more then. What fails in between is said once and tried again; the last copy's error is returned.
base::Status copy_logs(const std::string& url, const std::string& run, double seconds);

}  // namespace sluice::provision
