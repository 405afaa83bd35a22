// The process's device: options, the PJRT client, and the programs in flight.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/collectives/transport.h"
#include "sluice/device/device.h"
#include "sluice/device/program/value_checks.h"
#include "sluice/device/settings.h"
#include "sluice/device/value.h"
#include "sluice/mesh/mesh.h"
#include "sluice/pjrt/client.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::device {

class Trace;
struct Plan;
struct Program;
struct Scalars;

// The number of replicas that programs are lowered for, and what the device's programs can do.
struct World {
  int processes = 1;
  int local_replicas = 1;
  // Whether the plugin's programs span processes: they then have all replicas, else only the local ones.
  bool spans_processes = false;
  bool explicit_nan = true;  // the plugin's maximum and minimum lose NaN: spell them out (XLA's CPU plugin)
  stablehlo::Precision precision = stablehlo::Precision::kDefault;  // the precision of f32 products
  // The values that programs look for (value_checks.h): positions outside their dimension, and the first NaN.
  bool check_values = false, detect_anomaly = false;
  bool loops = false;             // turn many equal rounds in a row into one loop
  bool layer_loops = false;       // and equal layers
  int64_t attention_bytes = 0;    // bytes of scores that attention makes at once on a device; 0: all
  bool host_collectives = false;  // collectives are calls of the host's handlers (XLA's CPU plugin)
  // The mesh that the devices form; null: they are replicas. With a mesh there is one replica, whose devices
  // may belong to several processes: process 0 has the first ones, and so on.
  std::shared_ptr<const Mesh> mesh;
  const stablehlo::KernelLibrary* kernels =
      nullptr;            // the kernels for this machine's CPU; null: the compiler makes everything
  int process_index = 0;  // this process has local_replicas replicas, from process_index × local_replicas
  int mesh_devices = 1;   // the devices of the mesh in each process
  int first_replica() const { return mesh == nullptr ? process_index * local_replicas : 0; }
  int replicas() const { return mesh == nullptr ? processes * local_replicas : 1; }
  // Returns the number in the mesh of this process's first device.
  int first_device() const { return process_index * mesh_devices; }
  bool mesh_spans_processes() const { return mesh != nullptr && processes > 1; }
  // Returns whether programs have only the local replicas. The number of the process's first replica is then
  // passed with the run-time scalars.
  bool needs_base() const { return processes > 1 && !spans_processes; }
  ops::Replicas for_rows() const { return {replicas(), local_replicas, host_collectives}; }
};

struct Runtime {
  Settings options;
  World world;
  std::shared_ptr<pjrt::Client> client;
  std::vector<pjrt::Device*> devices;  // [local replica, or device of the mesh]
  std::vector<int> device_ids;  // [replica or partition of a program]: of all processes if programs span them

  // A launched program, until the host has seen it finish.
  struct Flight {
    std::vector<pjrt::Event> done;
    // The data that only this program still uses. Destroying a buffer that a running program took over waits
    // for the program (seen with XLA's CPU plugin), so they are released when the program has finished.
    std::vector<DataPtr> inputs;
    std::vector<pjrt::Buffer> replaced;
    std::vector<std::shared_ptr<std::vector<pjrt::Buffer>>> scalars;
    FoundValues found;
    std::string what;
    int64_t number = 0;
    std::shared_ptr<const Program> program;
  };
  std::deque<Flight> flights;
  std::atomic<bool> sync_batch_norm = false;
  uint64_t opening = 0;  // the number of this opening in the process: no program outlives one
  int64_t launches = 0;
  uint64_t launched_hash = 0;
  stablehlo::Flops launched_flops;  // on one replica

  // Set while programs are only lowered (ahead.h): takes the text of each program, its arguments' names, and
  // its FLOPs on one replica (with a mesh: on all devices together).
  std::function<void(std::string_view what, std::string text, std::vector<std::string> arguments,
                     double flops)>
      ahead;
};

// Returns the device that init() opened, or opens it with default options at its first use. Thread-safe. The
// flights belong to the trace's lock; the rest does not change until shutdown().
Runtime& runtime();
const Settings& runtime_options();
// Returns Runtime::opening of the open device; 0 if none is open.
uint64_t opening_now();
// Throws if the device that holds this value has been closed.
void check_opening(const Data& data);
int replicas_in_world();
// Returns whether batch normalization takes its statistics over all replicas.
bool sync_batch_norm();
// One launch of a process, for comparison with the other processes.
struct LaunchRecord {
  int64_t number = 0;         // the number of the launch
  uint64_t hash = 0;          // a hash of all launches up to this one: their programs and run-time scalars
  std::string_view boundary;  // the name of the cut
  bool fresh = false;         // the program is new in this process
  const Program* program = nullptr;
  const Plan* plan = nullptr;  // null when it was replayed (capture)
};
// The other processes of a run, as far as the device needs them.
struct Peers {
  std::string launcher;  // the program that started them: "sluice run", "Slurm" …
  // Returns the bytes that each process gives under a name, in the launcher's order; fails early if one
  // fails.
  std::function<base::Result<std::vector<std::string>>(const std::string& name, const std::string& bytes)>
      gather;
  // Returns an error once a process is lost. Any thread.
  std::function<base::Status()> status;
  // The store through which plugins find each other.
  std::shared_ptr<pjrt::KeyValueStore> store;
  // Makes the connection for collectives that are calls of the host's handlers.
  std::function<std::shared_ptr<collectives::Transport>()> transport;
};
// Sets the peers, before init(). Without members: this process is the only one.
void set_peers(Peers peers);
// Calls Peers::gather; throws its error.
std::vector<std::string> gather_from_peers(const std::string& name, const std::string& bytes);
// Sets a function that is called before each launch, under the trace's lock, and throws to refuse it. Empty:
// no check.
void set_launch_check(std::function<void(const LaunchRecord&)> check);

// One launch of a program, with its arguments.
struct Order {
  std::shared_ptr<const Program> program;
  std::string_view what;                  // the name of the boundary
  std::vector<const DataPtr*> arguments;  // [parameter]
  const std::vector<int32_t>& aliases;    // as in Plan
  const Scalars& scalars;
  const std::vector<ValueFacts>& facts;  // the facts of the results
  const Plan* plan = nullptr;            // the plan that was recorded; null in a replay
};
// Launches a program and returns the results. An argument without another owner gives its memory to its
// result, and its Data becomes the result's. The caller first waits for flights, moves data that nothing else
// owns into the flight's inputs, and adds the flight to the others. The caller holds the trace's lock.
std::pair<std::vector<DataPtr>, Runtime::Flight> launch_program(Runtime& rt, const Order& order);

// Throws if the program of this launch, or of an earlier one, found a value that is not allowed
// (value_checks.h). Call it for launches that have ended: it waits for their copies. The caller holds the
// trace's lock.
void check_found_values(int64_t launch);

// Waits until at most `in_flight` launched programs are left; throws the error of a program that failed.
// Releases nothing.
void wait_for_flights(size_t in_flight);

// Returns the FLOPs of all programs launched so far, on one replica. Takes the trace's lock.
stablehlo::Flops launched_flops();
// Calls `call` once, with the time on monotonic_seconds(), when the program that was launched last has
// finished: on one of the plugin's threads, or in this call if it has finished already. `call` must not
// block. Takes the trace's lock.
void at_end_of_launch(std::function<void(double)> call);

}  // namespace sluice::device
