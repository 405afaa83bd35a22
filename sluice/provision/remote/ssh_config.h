// A configuration file for ssh -F and scp -F with which they reach the workers of a slice. Runs name the
// file, so that another terminal can attach to them.
#pragma once

#include <string>
#include <vector>

namespace sluice::provision {

struct WorkerAddress {
  std::string connect;  // the address for ssh: the external one, else the internal one
  std::string alias;    // the name of its host keys (host_keys.h)
};

struct SshSettings {
  std::string slice;                   // the slice's name
  std::vector<WorkerAddress> workers;  // of all nodes, in order; at least one
  std::string user, key, known_hosts;  // paths are absolute
};

// Returns the name of a worker in that file: "v4-w-0".
std::string host_name(const std::string& slice, int worker);

// Our settings come first and win; the user's own file follows (jump hosts, proxies), then the system's.
std::string ssh_config(const std::vector<SshSettings>& slices);

}  // namespace sluice::provision
