// What the processes of a run tell each other when their devices are open, and what follows from it: which
// device is which replica. Knows no device itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::device {

// What one process found.
struct Opened {
  std::string plugin;        // name and versions: the same everywhere, or the processes do not fit together
  int process_index = 0;     // as the plugin counts
  int processes = 1;         // whose devices the plugin knows; 1 where it knows nothing of other processes
  std::vector<int> devices;  // the global numbers of those that this process drives, in its replicas' order
  bool spans_processes = false;  // whether the plugin's programs have the replicas of all processes
};
std::string to_text(const Opened& opened);
base::Result<Opened> opened_from(std::string_view text);

struct Agreement {
  int process_index = 0;     // of this process among the replicas: its first is process_index × its replicas
  std::vector<int> devices;  // of the replicas of a program, in their order
};

// Of process `self` as `launcher` ("sluice run", "Slurm" …) counts, from what all found, in the launcher's
// order. Where programs span processes, the plugin's numbers decide the replicas' order. All processes get
// the same error (kFailedPrecondition): plugins that differ, a count or a number that is not the launcher's,
// devices that are not equally many, or driven twice.
base::Result<Agreement> agree(const std::vector<Opened>& all, int self, const std::string& launcher);

// The devices with these numbers among those of this process (`local`, global numbers), or the first `count`
// of them when there are none. In a run of several processes, which all have the same command line, the
// numbers count within the process, from 0. Errors: kNotFound for a device that is not this process's,
// kInvalidArgument for one that comes twice, or for more than there are.
base::Result<std::vector<int>> choose_devices(const std::vector<int>& local, const std::vector<int>& numbers,
                                              int count, bool several_processes);

}  // namespace sluice::device
