// Finds the processes on a worker's host that hold its chips, and the runs there.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

struct Holder {
  int process = 0;
  bool own = false;  // belongs to the user that looked
  std::string user;
  double started = 0;                // seconds since 1970, by the host's clock
  std::vector<std::string> devices;  // "/dev/accel0"; "/tmp/libtpu_lockfile" means all chips
  std::string command;               // the first 300 bytes
};

// A worker of `sluice run` with its supervisor.
struct SupervisedWorker {
  std::string run, place;  // "1121-140359-k3xa", "0-2": attempt 0, worker 2
};

struct HostUse {
  std::vector<Holder> holders;
  std::vector<SupervisedWorker> workers;
  bool sees_all = true;  // false: neither root nor sudo, so that other users' processes are not visible
};

// Returns the script for sh on the host; parse_host_use reads its output.
std::string look_for_holders_script();
base::Result<HostUse> parse_host_use(const std::string& output);

// Returns a script that ends these processes if they still belong to the user and hold a chip: SIGINT,
// SIGTERM after two thirds of `grace` seconds, then SIGKILL. It writes a line "left PROCESS" for each that
// stays.
std::string end_holders_script(const std::vector<int>& processes, int grace);

}  // namespace sluice::provision
