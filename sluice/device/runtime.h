// The process's device: options, the PJRT client, and the programs in flight.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/value.h"
#include "sluice/pjrt/client.h"

namespace sluice::device {

// The replicas that a program is lowered for.
struct World {
  int processes = 1;
  int local_replicas = 1;
  // True where the plugin's programs span processes: they then have all replicas, else the local ones.
  bool spans_processes = false;
  bool explicit_nan = true;  // the plugin's maximum and minimum lose NaN: spell them out (XLA's CPU plugin)
  int process_base = 0;      // global number of this process's first replica
  int replicas() const { return processes * local_replicas; }
};

struct Runtime {
  DeviceOptions options;
  World world;
  std::shared_ptr<pjrt::Client> client;
  std::vector<pjrt::Device*> devices;  // [replica]
  std::vector<int> device_ids;         // [replica]

  // A launched program, until the host has seen it finish.
  struct Flight {
    std::vector<pjrt::Event> done;
    // What only this program still used. Destroying a buffer that a running program took over waits for the
    // program (seen with XLA's CPU plugin), so they go when it has finished.
    std::vector<DataPtr> inputs;
    std::vector<std::vector<pjrt::Buffer>> scalars;
    std::string what;
    int64_t number = 0;
  };
  std::deque<Flight> flights;
  int64_t launches = 0;

  // Set while programs are only lowered (ahead.h): takes the text of each.
  std::function<void(std::string_view what, std::string text)> ahead;
};

// Opened by init(); opens itself with default options when the device is used first. Thread-safe; the flights
// belong to the trace's lock, the rest does not change until shutdown().
Runtime& runtime();
const DeviceOptions& runtime_options();
int replicas_in_world();
// Waits until at most `in_flight` launched programs are left; throws the error of one that failed. Releases
// nothing.
void wait_for_flights(size_t in_flight);

}  // namespace sluice::device
