// From a slice's name to hosts that ssh reaches, as gcloud does it: key, user, addresses and host keys.
#pragma once

#include <string>
#include <vector>

#include "sluice/pod/job.h"
#include "sluice/provision/slices.h"

namespace sluice::provision {

struct ReachOptions {
  std::string zone;  // "": looked for in all
  std::string user;  // "": this terminal's, as gcloud takes it
  std::string key;   // "": default_key_path()
};

// A slice whose workers can be connected to.
struct ReachedSlice {
  Slice slice;
  std::string ssh_config;              // for ssh -F and scp -F (ssh_config.h)
  std::vector<std::string> hosts;      // by which that file knows the workers, in their order
  std::vector<std::string> addresses;  // by which they reach each other
};

// GETs the slice and refuses one that is not up; finds or makes the key, and where neither the node's (of a
// group of machines: each machine's) nor the project's metadata has it, writes the node's (all of it, with
// ssh-keys extended); takes host keys that are not known here from the guest attributes, and refuses a worker
// that has published none.
google::Outcome<ReachedSlice> reach_slice(Cloud& cloud, const std::string& name, const ReachOptions& options);

// `chosen` workers of it (their numbers), `per_host` processes each, and how ssh gets there.
void fill_job(pod::Job& job, const ReachedSlice& reached, const std::vector<int>& chosen, int per_host);

// What this program keeps of slices to reach them: ${XDG_STATE_HOME:-~/.local/state}/sluice/tpu.
std::string reach_folder();
// Whether a run's ssh configuration is one of a slice of that name.
bool is_config_of(const std::string& ssh_config, const std::string& name);

}  // namespace sluice::provision
