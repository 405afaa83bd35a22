// What the emulated pod is: read from the environment and the client's options, checked as the real plugins
// check it.
//
// EMULATED_POD_PLATFORM       tpu (the default) or cuda
// EMULATED_POD_DEVICES        devices of each process (8); with one process per chip: see tpu_environment.cc
// EMULATED_POD_CORES_PER_CHIP devices of a chip in a process per chip (1)
// EMULATED_POD_DIR            folder where the processes meet; needed when there are several
// EMULATED_POD_MEMORY         bytes of each device (0: no limit)
// EMULATED_POD_TIMEOUT        seconds that a late worker is waited for (300)
// EMULATED_POD_PROCESS_INDEX, EMULATED_POD_PROCESSES  what the platform's own settings say is not asked
// EMULATED_POD_KV_TRY_GET     0: a CUDA plugin that does not know the callback kv_try_get
// MEGASCALE_NUM_SLICES, MEGASCALE_SLICE_ID, MEGASCALE_COORDINATOR_ADDRESS: several slices, as to libtpu; its
//                             other variables then describe one slice
// EMULATED_POD_PROFILER       bytes of the table of a profiler's extension that is there then
// EMULATED_POD_CPU_PLUGIN     XLA's CPU plugin; else the one that Sluice finds
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/pjrt/c_api.h"
#include "tests/pjrt/pod/wire.h"

namespace emulated_pod {

namespace c = sluice::pjrt::c;

struct Settings {
  std::string platform = "tpu";
  int worker = 0, workers = 1;    // of all slices
  int slices = 1;                 // each with the same number of workers
  int devices = 8;                // of this process
  int cores = 0;                  // on a chip; 0: two where the devices are even in number
  std::vector<int> hardware_ids;  // of this process's devices; empty: 0, 1 …
  std::string directory;
  int64_t memory = 0;
  double timeout = 300;

  std::string kind() const { return platform == "tpu" ? "TPU v3" : "Emulated GPU"; }
  int cores_per_chip(int devices_of_process) const {
    return cores > 0 ? cores : devices_of_process % 2 == 0 ? 2 : 1;
  }
  std::string socket() const { return directory + "/pod.sock"; }
};

// Reads all of it for a client that is made with these arguments. kInvalidArgument says what does not fit
// together.
Result<Settings> read_settings(const c::PJRT_Client_Create_Args& args);

// A whole number in the environment; nothing when the variable is unset.
Result<std::optional<int64_t>> environment_number(const char* name, int64_t least, int64_t most);

// The worker, the workers and the devices as libtpu reads them.
Status read_tpu(Settings& settings);
// No option but those that libtpu knows.
Status check_tpu_options(const c::PJRT_Client_Create_Args& args);
// The same from a CUDA plugin's options.
Status read_cuda(const c::PJRT_Client_Create_Args& args, Settings& settings);
// Each node says over the key-value store how many devices it has and waits for all others.
Status meet_over_store(const c::PJRT_Client_Create_Args& args, const Settings& settings);

}  // namespace emulated_pod
