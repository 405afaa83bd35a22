// How the processes of a run agree, once their devices are open, which device is which replica. This file
// knows no device itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::device {

// The devices of one process, as it reports them to the other processes.
struct Opened {
  std::string plugin;            // name and versions; they must be equal in all processes
  int process_index = 0;         // the number by which the plugin counts this process
  int processes = 1;             // the processes that share the plugin's devices; 1 if it knows of no other
  std::vector<int> devices;      // global numbers of this process's devices, in its replicas' order
  bool spans_processes = false;  // whether the plugin's programs have the replicas of all processes
  int slice = -1;                // the TPU slice of its devices by the plugin; -1: the plugin knows of none
  int told_slice = 0, told_slices = 1;  // its slice and their number, as the launcher says
  std::string kind = {};                // of its devices: "TPU v5p"
};
std::string to_text(const Opened& opened);
base::Result<Opened> opened_from(std::string_view text);

struct Agreement {
  int process_index = 0;     // among the replicas: this process's first is process_index × its replicas
  std::vector<int> devices;  // the devices of a program's replicas, in their order
  // [device] its slice and its process; empty for plugins whose programs do not span processes.
  std::vector<int64_t> slice_of = {}, process_of = {};
};

// Agrees for process `self`, counted as `launcher` ("sluice run", "Slurm" …) counts, from the reports of all
// processes in the launcher's order. If programs span processes, the plugin's numbers decide the replicas'
// order, slice by slice. All processes get the same error (kFailedPrecondition) if plugins differ, a count or
// a number differs from the launcher's, the processes have different numbers or kinds of devices, or two
// drive one device; and if the plugin's slices differ from the launcher's, or do not have the same number
// of processes.
base::Result<Agreement> agree(const std::vector<Opened>& all, int self, const std::string& launcher);

// The TPU slice of this process, and the number of slices, as the launcher says.
struct PeerSlices {
  int slice = 0, slices = 1;
};
// Sets them, before init(); without this call there is one slice.
void set_peer_slices(const PeerSlices& slices);

// Returns the devices with these numbers among this process's devices (`local`, global numbers), or the first
// `count` devices if `numbers` is empty. In a run of several processes, which all have the same command line,
// the numbers count within the process, from 0. Errors: kNotFound for a device that is not this process's;
// kInvalidArgument for a device that comes twice, or for more devices than there are.
base::Result<std::vector<int>> choose_devices(const std::vector<int>& local, const std::vector<int>& numbers,
                                              int count, bool several_processes);

}  // namespace sluice::device
