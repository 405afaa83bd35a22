// Which processes of a worker's host hold its chips, and which runs are there.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::provision {

struct Holder {
  int process = 0;
  bool own = false;  // of the user that looked
  std::string user;
  double started = 0;                // seconds since 1970, by the host's clock
  std::vector<std::string> devices;  // "/dev/accel0"; "/tmp/libtpu_lockfile" stands for all chips
  std::string command;               // the first 300 bytes
};

// A worker of `sluice run` with its supervisor.
struct SupervisedWorker {
  std::string run, place;  // "1121-140359-k3xa", "0-2": attempt 0, worker 2
};

struct HostUse {
  std::vector<Holder> holders;
  std::vector<SupervisedWorker> workers;
  bool sees_all = true;  // false: neither root nor sudo, so that other users' processes stay unseen
};

// For sh on the host, and what it has answered.
std::string look_for_holders_script();
base::Result<HostUse> parse_host_use(const std::string& output);

// Ends these processes if they still are the user's own and hold a chip: SIGINT, SIGTERM after two thirds of
// `grace` seconds, then SIGKILL. Writes a line "left PROCESS" for each that stays.
std::string end_holders_script(const std::vector<int>& processes, int grace);

}  // namespace sluice::provision
