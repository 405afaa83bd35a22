// How ssh reaches the workers of a slice, as a configuration file for ssh -F and scp -F. Runs name the file,
// so that another terminal can attach to them.
#pragma once

#include <string>
#include <vector>

namespace sluice::provision {

struct WorkerAddress {
  std::string connect;  // what ssh connects to: the external address, else the internal one
  std::string alias;    // under which its host keys are kept (host_keys.h)
};

struct SshSettings {
  std::string slice;                   // its name
  std::vector<WorkerAddress> workers;  // in their order, of all nodes; at least one
  std::string user, key, known_hosts;  // paths are absolute
};

// The name by which ssh knows a worker in that file: "v4-w-0".
std::string host_name(const std::string& slice, int worker);

// Our settings come first and win; the user's own file follows (jump hosts, proxies), and the system's.
std::string ssh_config(const SshSettings& settings);

}  // namespace sluice::provision
