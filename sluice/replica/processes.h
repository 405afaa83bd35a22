// The processes of a run: their places, and small messages between their hosts.
//
// They meet at a store that process 0 keeps, as often as they want (meeting.h); only processes with the run's
// key can use it (run_key.h). Every call that takes a name must be made by all processes, in the same order
// for one name. Threads: any; a second call that waits waits for the first. Waiting calls end early if a
// process reports by fail() that it stops, or is lost: it was killed or stopped, or its machine is gone
// (pulse.h).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/replica/placement.h"
#include "sluice/replica/pulse.h"

namespace sluice::replica {

class StoreClient;

// Advice for processes that no longer do the same.
constexpr const char* kDoTheSame =
    ". All processes must run the same operations: no .item(), printing or saving of device tensors by one "
    "alone "
    "(session.print, session.log_every and the trainer's checkpoints are safe)";

// Returns SLUICE_JOIN_TIMEOUT in seconds, or 300.
std::chrono::seconds join_within();

class Processes {
 public:
  struct Timeouts {
    std::chrono::seconds join = join_within();      // until all have come; machines start at different times
    std::chrono::seconds wait{1800};                // for one call: others may compile, or write a checkpoint
    std::chrono::milliseconds lost = lost_after();  // without a sign of life
    std::chrono::milliseconds tell{15'000};         // until process 0 names processes that have not come
  };

  // Waits until all processes are there. Errors name processes that did not come (and their hosts if the
  // launcher reports them), two processes with one number, a count, a version or a build (base/build_id.h)
  // that differs from the others', and an address that cannot be reached or is taken. SLUICE_SAME_BUILD=0
  // compares only versions, for hosts that each build their own. From now on SIGPIPE is ignored, unless the
  // program has a handler for it. With several TPU slices, the errors name slices and workers; slices that do
  // not fit together (count, coordinator, type, number) are an error in all processes, without waiting for
  // those that are missing. After Timeouts::tell, process 0 warns of processes that have not come yet.
  static base::Result<std::shared_ptr<Processes>> join(const Placement& placement, const Timeouts& timeouts);
  static base::Result<std::shared_ptr<Processes>> join(const Placement& placement) {
    return join(placement, {});
  }
  // Process 0 keeps the store until the others have left too, or for some seconds.
  ~Processes();

  int index() const { return placement_.process_id; }
  int count() const { return placement_.processes; }
  const Placement& placement() const { return placement_; }

  struct Waiting {
    std::string note;                    // shown with the name in messages
    std::function<base::Status()> look;  // called once a second; an error ends the wait
  };
  // Returns the bytes of each process, in the order of the processes; the same list in all. Processes that
  // wait for each other in different calls fail with kFailedPrecondition, which names them.
  base::Result<std::vector<std::string>> gather(const std::string& name, const std::string& bytes,
                                                const Waiting& waiting);
  base::Result<std::vector<std::string>> gather(const std::string& name, const std::string& bytes) {
    return gather(name, bytes, {"", {}});
  }
  // A gather in two halves, for callers with other work meanwhile: offer() gives the bytes of this process,
  // try_collect() later returns the bytes of all, or nothing while one is missing.
  struct Offer {
    std::string name;
    int64_t number = 0;  // number of earlier calls of that name
  };
  base::Result<Offer> offer(const std::string& name, const std::string& bytes);
  base::Result<std::optional<std::vector<std::string>>> try_collect(const Offer& offer);
  // Waits like gather().
  base::Result<std::vector<std::string>> collect(const Offer& offer);
  // Returns process 0's bytes.
  base::Result<std::string> broadcast(const std::string& name, const std::string& bytes);
  base::Status barrier(const std::string& name);

  // Values under a key that all processes see; put_first keeps an existing value and returns it.
  base::Status put(const std::string& key, const std::string& value);
  base::Result<std::string> put_first(const std::string& key, const std::string& value);
  base::Result<std::optional<std::string>> try_get(const std::string& key);

  // Reports to the others that this process stops: the calls that they wait in fail with this reason.
  void fail(const std::string& reason) noexcept;
  // Ends the run for all with a reason from lost_text(); returns the first reason that any process gave.
  Error end(const std::string& reason);
  // Returns an error with the reason once a process has failed or was lost. Costs a lock.
  base::Status status() const { return pulse_ ? pulse_->status() : base::Status(); }

  // The secret that the run's processes share; "": there is no secret.
  const std::string& key() const { return key_; }

 private:
  Processes(Placement placement, const Timeouts& timeouts);
  struct Call {
    std::string prefix;   // of its keys
    std::string waiting;  // what the others read about a waiting process: name and note
    std::string name;
    std::chrono::seconds timeout;
    std::function<base::Status()> look;
  };
  base::Result<std::vector<std::string>> collect_within(const Offer& offer, const Waiting& waiting,
                                                        std::chrono::seconds timeout);
  // Returns what all have offered, once all have.
  base::Result<std::vector<std::string>> take(const std::string& prefix);
  base::Status wait_for(int process, const Call& call, double since);
  base::Status look_for_deadlock(int process, const Call& call);
  base::Result<std::vector<int>> missing(const std::string& prefix);
  std::string description() const;
  base::Result<std::vector<std::string>> parts_of(int process, const std::string& text) const;
  base::Status check_slices_so_far(const std::string& prefix);
  base::Status look_at_join(const std::string& prefix, double since, bool& told);
  base::Status compare_programs();
  base::Status connect(const std::string& host, uint16_t port);
  Error not_met(const Error& why, uint16_t port) const;
  void start_pulse();

  const Placement placement_;
  const Timeouts timeouts_;
  std::string key_;
  std::unique_ptr<StoreClient> store_;    // for calls that wait
  std::unique_ptr<StoreClient> at_once_;  // for calls that do not wait: no other thread's wait delays them
  std::mutex mutex_;                      // for calls that wait
  std::map<std::string, int64_t> calls_;  // so far, by name
  bool met_ = false;                      // all processes were there
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace sluice::replica
