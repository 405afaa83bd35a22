// Collectives among the replicas of this process, and of several processes, on XLA's CPU plugin. The plugin's
// own ones are slow, end the process when a replica fails, and do not reach other processes.
//
// A program calls them as custom calls (api_version 4, has_side_effect), one call for any number of operands:
//   sluice_all_reduce  result i is the combination of all replicas' operand i, in its shape; it may take the
//                      operand's memory. Attributes: op = "sum" | "max" | "min"; optionally groups =
//                      array<i64> of global replica numbers in rows of group_size = i64, all replicas once.
//   sluice_all_gather  result i has one dimension more, in front: all replicas' operands i, in their order.
// With turn = i64, the last operand and the last result, s32 [], do not take part. Handed from call to call,
// they keep otherwise independent calls in order, which XLA would run at the same time.
// Both have: site = i64 (number of the collective within its program), program = i64 (hash of the program's
// text). A replica's global number is process_index × local replicas + its index among the local ones.
//
// All replicas get the same bits, in any timing of the threads: replicas are combined in their order, and
// processes as the transport does it. Within a process f16 and bf16 are summed in f32 and rounded once.
//
// A waiting call holds one of the plugin's threads; a client has one thread for each of its devices. The
// plugin also lets the 33rd launch in flight wait on such a thread. So if the replicas use all devices of a
// client, keep fewer than 32 launches in flight, or make the client with twice the number of devices.
//
// Every replica must make the same calls in the same order. The first error, of any kind, fails all calls of
// this process from then on with the same text, until reset() or configure(): nobody waits for replicas that
// do not come.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/collectives/collective.h"
#include "sluice/collectives/transport.h"
#include "sluice/pjrt/plugin.h"

namespace sluice::collectives {

struct HostCollectivesConfig {
  // The devices of this process's replicas, in the order of the replicas. All processes have the same number.
  std::vector<int> device_ids;
  int process_index = 0, processes = 1;
  // Needed if there are several processes.
  std::shared_ptr<Transport> transport = nullptr;
  // How long a replica waits for the others of its process before it warns, and before it gives up.
  std::chrono::milliseconds warn_after{30'000}, timeout{600'000};
};

// One for each process, because a plugin's handlers are registered once. Threads: any.
class HostCollectives {
 public:
  static HostCollectives& get();

  // Registers the handlers, before programs that call them are compiled or loaded. A second call does
  // nothing.
  base::Status install(const pjrt::Plugin& plugin);
  // Sets who takes part in the calls from now on, and forgets an earlier error. No program with such calls
  // may be running.
  base::Status configure(HostCollectivesConfig config);
  // Forgets an error; for one process only (several configure a new transport). No program with such calls
  // may be running.
  void reset();
  // Returns the error that all calls return, if there is one.
  base::Status status() const;

  // Does the work of a handler; for the handlers only.
  base::Status call(const pjrt::CustomCall& call, Contribution::Kind kind);

 private:
  // The calls that belong together, while replicas are missing.
  struct Meeting {
    std::vector<const Contribution*> replicas;  // null: not here yet
    size_t arrived = 0;
    std::unique_ptr<Collective> collective;  // set once all are here
    bool failed = false;
  };

  base::Status join(int device, const Contribution& mine);
  base::Status wait_for_others(std::unique_lock<std::mutex>& lock, const Meeting& meeting,
                               const Contribution& mine);
  void start_again();
  std::string missing(const Meeting& meeting) const;
  base::Status fail(std::unique_lock<std::mutex>& lock, const Error& error);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HostCollectivesConfig config_;
  std::vector<std::string> installed_;  // paths of plugins
  std::shared_ptr<Meeting> meeting_;    // the next meeting
  int64_t sequence_ = 0;
  std::optional<Error> error_;
};

}  // namespace sluice::collectives
