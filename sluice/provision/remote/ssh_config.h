// How ssh reaches the workers of a slice, as a configuration file for ssh -F and scp -F. Runs name the file,
// so that another terminal can attach to them.
#pragma once

#include <string>
#include <vector>

namespace sluice::provision {

struct WorkerAddress {
  std::string connect;   // what ssh connects to: the external address, else the internal one
  std::string internal;  // by which the workers reach each other
};

// Of one node; a slice of several has one after the other.
struct SshSettings {
  std::string node, node_id;  // the slice's name, and the number that the service gave the node
  int first = 0;              // the slice's number of this node's worker 0
  std::vector<WorkerAddress> workers;
  std::string user, key, known_hosts;  // paths are absolute
};

// The name by which ssh knows a worker in that file: "v4-w-0".
std::string host_name(const std::string& node, int worker);

// `nodes`: at least one. Our settings come first and win; the user's own file follows (jump hosts, proxies),
// and the system's.
std::string ssh_config(const std::vector<SshSettings>& nodes);

}  // namespace sluice::provision
