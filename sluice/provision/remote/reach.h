// Finds the hosts of a slice and how ssh reaches them, as gcloud does: key, user, addresses and host keys.
#pragma once

#include <string>
#include <vector>

#include "sluice/pod/job.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

struct ReachOptions {
  std::string zone;              // "": searched in all
  std::string user;              // "": this terminal's user, as gcloud does
  std::string key;               // "": default_key_path()
  std::vector<int> slices = {};  // the numbers of the slices to reach; empty: all
};

// A slice whose workers can be connected to.
struct ReachedSlice {
  Slice slice;
  std::string ssh_config;              // for ssh -F and scp -F (ssh_config.h)
  std::vector<std::string> hosts;      // the workers' names in that file, in order
  std::vector<std::string> addresses;  // the workers' addresses for each other
  std::vector<int> slice_of = {};      // [worker] the place of its slice among the reached slices
  int slices = 1;                      // that are reached
};

// Reads the slice and refuses one that is not up. Finds or creates the key; if neither the node's metadata
// (for a group: each machine's) nor the project's have it, writes the node's (all of them, with ssh-keys
// extended). Takes host keys that are not known here from the guest attributes, and refuses a worker that has
// published none.
google::Outcome<ReachedSlice> reach_slice(Cloud& cloud, const std::string& name, const ReachOptions& options);

// Reaches several slices of these names as one, the workers of the first name first. kInvalid: a name comes
// twice, or the slices differ in type or zone.
google::Outcome<ReachedSlice> reach_slices(Cloud& cloud, const std::vector<std::string>& names,
                                           const ReachOptions& options);

// Adds the workers with the numbers in `chosen`, `per_host` processes each, and how ssh reaches them;
// Job::slices is the number of slices that they belong to.
void fill_job(pod::Job& job, const ReachedSlice& reached, const std::vector<int>& chosen, int per_host);

// Returns the folder of files that are needed to reach slices: ${XDG_STATE_HOME:-~/.local/state}/sluice/tpu.
std::string reach_folder();
// Returns whether a run's ssh configuration has a slice of that name.
bool is_config_of(const std::string& ssh_config, const std::string& name);

}  // namespace sluice::provision
