// The process's device: options, the PJRT client, and the programs in flight.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/device/device.h"
#include "sluice/device/value.h"
#include "sluice/pjrt/client.h"
#include "sluice/pjrt/transport.h"

namespace sluice::device {

class Trace;
struct Plan;

// The replicas that a program is lowered for.
struct World {
  int processes = 1;
  int local_replicas = 1;
  // True where the plugin's programs span processes: they then have all replicas, else the local ones.
  bool spans_processes = false;
  bool explicit_nan = true;  // the plugin's maximum and minimum lose NaN: spell them out (XLA's CPU plugin)
  bool host_collectives = false;  // collectives are calls of the host's handlers (XLA's CPU plugin)
  const stablehlo::KernelLibrary* kernels =
      nullptr;  // of this machine's CPU; null: the compiler makes everything
  int process_index = 0;
  int replicas() const { return processes * local_replicas; }
  // Programs have the local replicas only; the number of the process's first one comes with their scalars.
  bool needs_base() const { return processes > 1 && !spans_processes; }
  ops::Replicas for_rows() const { return {replicas(), local_replicas, host_collectives}; }
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
    std::vector<std::shared_ptr<std::vector<pjrt::Buffer>>> scalars;
    std::string what;
    int64_t number = 0;
  };
  std::deque<Flight> flights;
  std::atomic<bool> sync_batch_norm = false;
  int64_t launches = 0;
  uint64_t launched_hash = 0;

  // Set while programs are only lowered (ahead.h): takes the text of each.
  std::function<void(std::string_view what, std::string text)> ahead;
};

// Opened by init(); opens itself with default options when the device is used first. Thread-safe; the flights
// belong to the trace's lock, the rest does not change until shutdown().
Runtime& runtime();
const DeviceOptions& runtime_options();
int replicas_in_world();
// Whether batch normalization takes its statistics over all replicas.
bool sync_batch_norm();
// What a process launches, for comparing it with the others.
struct LaunchRecord {
  int64_t number = 0;         // of the launch
  uint64_t hash = 0;          // of all launches up to this one: their programs and run-time scalars
  std::string_view boundary;  // what cut the graph
  bool fresh = false;         // the program is new in this process
  const Trace* trace = nullptr;
  const Plan* plan = nullptr;
};
// How collectives reach other processes where they are calls of the host's handlers: makes the transport when
// the device is opened for several processes. Set before init().
using MakeTransport = std::function<std::shared_ptr<pjrt::Transport>()>;
void set_transport(MakeTransport make);
// Called before each launch, under the trace's lock; throws to refuse it. Empty: no check.
void set_launch_check(std::function<void(const LaunchRecord&)> check);

// Waits until at most `in_flight` launched programs are left; throws the error of one that failed. Releases
// nothing.
void wait_for_flights(size_t in_flight);

}  // namespace sluice::device
