// Files that many hosts need, sent from here once: they go to a bucket, and the hosts read them from there.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/cloud/store.h"
#include "sluice/pod/job.h"
#include "sluice/pod/signals.h"

namespace sluice::pod {

// An object that a host reads.
struct SharedFile {
  std::string address;  // the URL of its bytes, with the generation
  std::string sha256;   // of its bytes, in hexadecimal digits
};

// Returns nothing if --sync-bucket has this URL's form: gs://BUCKET/PREFIX.
base::Status check_sync_bucket(const std::string& url);

// The objects of one run below job.sync_bucket, which are removed with this. Threads: one at a time.
class SyncBucket {
 public:
  // `signals` must live longer.
  SyncBucket(const Job& job, Signals& signals) : job_(job), signals_(signals) {}
  ~SyncBucket();
  SyncBucket(const SyncBucket&) = delete;

  // Returns whether a file for this number of hosts is sent once: there is a bucket, there are two hosts or
  // more, and the file is larger than 64 KiB. A smaller one arrives sooner over ssh.
  bool serves(const std::string& path, std::ptrdiff_t hosts) const;
  // Uploads a file, at the first call with this path. A signal cancels.
  base::Result<SharedFile> share(const std::string& path);

 private:
  base::Status upload(const std::string& path, const cloud::ObjectName& name);

  const Job& job_;
  Signals& signals_;
  std::map<std::string, SharedFile> shared_;  // by their paths
  std::vector<cloud::ObjectName> objects_;
};

}  // namespace sluice::pod
