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
#include "sluice/device/settings.h"
#include "sluice/device/value.h"
#include "sluice/device/value_checks.h"
#include "sluice/pjrt/client.h"
#include "sluice/stablehlo/flops.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::device {

class Trace;
struct Plan;
struct Program;
struct Scalars;

// The replicas that a program is lowered for.
struct World {
  int processes = 1;
  int local_replicas = 1;
  // True where the plugin's programs span processes: they then have all replicas, else the local ones.
  bool spans_processes = false;
  bool explicit_nan = true;  // the plugin's maximum and minimum lose NaN: spell them out (XLA's CPU plugin)
  stablehlo::Precision precision = stablehlo::Precision::kDefault;  // of f32 products
  // What programs look for (value_checks.h): positions outside their dimension, and the first NaN.
  bool check_values = false, detect_anomaly = false;
  bool loops = false;             // many equal rounds in a row are one loop
  bool host_collectives = false;  // collectives are calls of the host's handlers (XLA's CPU plugin)
  const stablehlo::KernelLibrary* kernels =
      nullptr;            // of this machine's CPU; null: the compiler makes everything
  int process_index = 0;  // its replicas are process_index × local_replicas and those behind it
  int first_replica() const { return process_index * local_replicas; }
  int replicas() const { return processes * local_replicas; }
  // Programs have the local replicas only; the number of the process's first one comes with their scalars.
  bool needs_base() const { return processes > 1 && !spans_processes; }
  ops::Replicas for_rows() const { return {replicas(), local_replicas, host_collectives}; }
};

struct Runtime {
  Settings options;
  World world;
  std::shared_ptr<pjrt::Client> client;
  std::vector<pjrt::Device*> devices;  // [local replica]
  std::vector<int> device_ids;         // [replica of a program]: of all processes where programs span them

  // A launched program, until the host has seen it finish.
  struct Flight {
    std::vector<pjrt::Event> done;
    // What only this program still used. Destroying a buffer that a running program took over waits for the
    // program (seen with XLA's CPU plugin), so they go when it has finished.
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
  uint64_t opening = 0;  // which one of the process's it is: no program outlives one
  int64_t launches = 0;
  uint64_t launched_hash = 0;
  stablehlo::Flops launched_flops;  // on one replica

  // Set while programs are only lowered (ahead.h): takes the text of each.
  std::function<void(std::string_view what, std::string text)> ahead;
};

// Opened by init(); opens itself with default options when the device is used first. Thread-safe; the flights
// belong to the trace's lock, the rest does not change until shutdown().
Runtime& runtime();
const Settings& runtime_options();
// Runtime::opening of the device that is open; 0 where none is.
uint64_t opening_now();
// Throws when the device that holds this value was closed since.
void check_opening(const Data& data);
int replicas_in_world();
// Whether batch normalization takes its statistics over all replicas.
bool sync_batch_norm();
// What a process launches, for comparing it with the others.
struct LaunchRecord {
  int64_t number = 0;         // of the launch
  uint64_t hash = 0;          // of all launches up to this one: their programs and run-time scalars
  std::string_view boundary;  // what cut the graph
  bool fresh = false;         // the program is new in this process
  const Program* program = nullptr;
  const Plan* plan = nullptr;  // null when it was replayed (capture)
};
// The other processes of a run, as far as the device needs them.
struct Peers {
  std::string launcher;  // who started them: "sluice run", "Slurm" …
  // What each process gives under a name, in the launcher's order; ends early when one of them fails.
  std::function<base::Result<std::vector<std::string>>(const std::string& name, const std::string& bytes)>
      gather;
  // An error once a process is lost. Any thread.
  std::function<base::Status()> status;
  // Over which plugins find each other.
  std::shared_ptr<pjrt::KeyValueStore> store;
  // How collectives reach them where these are calls of the host's handlers.
  std::function<std::shared_ptr<collectives::Transport>()> transport;
};
// Set before init(); without members: this process is alone.
void set_peers(Peers peers);
// Called before each launch, under the trace's lock; throws to refuse it. Empty: no check.
void set_launch_check(std::function<void(const LaunchRecord&)> check);

// A program and what one launch of it works on.
struct Order {
  std::shared_ptr<const Program> program;
  std::string_view what;                  // the boundary
  std::vector<const DataPtr*> arguments;  // [parameter]
  const std::vector<int32_t>& aliases;    // as in Plan
  const Scalars& scalars;
  const std::vector<ValueFacts>& facts;  // of the results
  const Plan* plan = nullptr;            // by which it was recorded; null when it is replayed
};
// Launches it and gives the results. An argument that is owned by nobody else gives its memory to its result,
// and its Data becomes that. The caller waits for flights before, puts what nobody else owns into the
// flight's inputs, and the flight among the others. The caller holds the trace's lock.
std::pair<std::vector<DataPtr>, Runtime::Flight> launch_program(Runtime& rt, const Order& order);

// Throws when the program of this launch, or of one before it, found a value that may not be
// (value_checks.h). For launches that have ended: it waits for their copies. The caller holds the trace's
// lock.
void check_found_values(int64_t launch);

// Waits until at most `in_flight` launched programs are left; throws the error of one that failed. Releases
// nothing.
void wait_for_flights(size_t in_flight);

// Of all programs launched so far, on one replica. Takes the trace's lock.
stablehlo::Flops launched_flops();
// Calls once, with the moment on monotonic_seconds(), when the program that was launched last is over: on one
// of the plugin's threads, or here when it is over already. It must not block. Takes the trace's lock.
void at_end_of_launch(std::function<void(double)> call);

}  // namespace sluice::device
