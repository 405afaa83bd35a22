// The processes of a run: who they are, and small messages between their hosts.
//
// They meet at a store that process 0 keeps, as often as they want (meeting.h), and which only those can use
// that have the run's key (run_key.h). Every call that takes a name must be made by all processes, in the
// same order for one name. Threads: any; a second call that waits waits for the first. The waiting calls end
// early when a process says by fail() that it goes on no more, or is lost: it was killed or stopped, or its
// machine is gone (pulse.h).
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

// What is said to processes that part ways.
constexpr const char* kDoTheSame =
    ". All processes must run the same operations: no .item(), printing or saving of device tensors by one "
    "alone "
    "(session.print, session.log_every and the trainer's checkpoints are safe)";

// SLUICE_JOIN_TIMEOUT in seconds, or 300.
std::chrono::seconds join_within();

class Processes {
 public:
  struct Timeouts {
    std::chrono::seconds join = join_within();      // until all have come; machines start at different times
    std::chrono::seconds wait{1800};                // of one call: others may compile, or write a checkpoint
    std::chrono::milliseconds lost = lost_after();  // without a sign of life
  };

  // Waits until all processes are there. Errors name those that did not come (and their hosts where the
  // launcher says them), two processes with one number, a count, a version or a build (base/build_id.h) that
  // is not the others', an address that cannot be reached or is taken. SLUICE_SAME_BUILD=0: only versions are
  // compared, for hosts that each build their own. Ignores SIGPIPE from now on, unless the program has a
  // handler for it.
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
    std::string note;                    // said with the name in messages
    std::function<base::Status()> look;  // asked once a second; an error ends the wait
  };
  // What each process gives, in the order of the processes; the same list in all. Processes that wait for
  // each other in different calls fail with kFailedPrecondition and name them.
  base::Result<std::vector<std::string>> gather(const std::string& name, const std::string& bytes,
                                                const Waiting& waiting);
  base::Result<std::vector<std::string>> gather(const std::string& name, const std::string& bytes) {
    return gather(name, bytes, {"", {}});
  }
  // The same in two halves, for those that have something to do meanwhile: the bytes of this process, and
  // later those of all, nothing as long as one is missing.
  struct Offer {
    std::string name;
    int64_t number = 0;  // of the calls of that name before
  };
  base::Result<Offer> offer(const std::string& name, const std::string& bytes);
  base::Result<std::optional<std::vector<std::string>>> try_collect(const Offer& offer);
  // Waits as gather() does.
  base::Result<std::vector<std::string>> collect(const Offer& offer);
  // Process 0's bytes.
  base::Result<std::string> broadcast(const std::string& name, const std::string& bytes);
  base::Status barrier(const std::string& name);

  // A value that all see under a key; put_first keeps the value that is there already, and returns it.
  base::Status put(const std::string& key, const std::string& value);
  base::Result<std::string> put_first(const std::string& key, const std::string& value);
  base::Result<std::optional<std::string>> try_get(const std::string& key);

  // Tells the others that this process goes on no more: what they wait for fails with this reason.
  void fail(const std::string& reason) noexcept;
  // Ends the run for all with a reason that lost_text() made; returns the first that anybody gave.
  Error end(const std::string& reason);
  // An error that says why, once a process has failed or was lost. It costs a lock.
  base::Status status() const { return pulse_ ? pulse_->status() : base::Status(); }

  // The secret that the run's processes share; "": they have none.
  const std::string& key() const { return key_; }

 private:
  Processes(Placement placement, const Timeouts& timeouts);
  struct Call {
    std::string prefix;   // of its keys
    std::string waiting;  // what the others read about a process that waits: name and note
    std::string name;
    std::chrono::seconds timeout;
    std::function<base::Status()> look;
  };
  base::Result<std::vector<std::string>> collect_within(const Offer& offer, const Waiting& waiting,
                                                        std::chrono::seconds timeout);
  // What all have given, once all have.
  base::Result<std::vector<std::string>> take(const std::string& prefix);
  base::Status wait_for(int process, const Call& call, double since);
  base::Status look_for_deadlock(int process, const Call& call);
  base::Result<std::string> missing(const std::string& prefix);
  std::string name_of(int process) const;
  base::Status compare_programs();
  base::Status connect(const std::string& host, uint16_t port);
  Error not_met(const Error& why, uint16_t port) const;
  void start_pulse();

  const Placement placement_;
  const Timeouts timeouts_;
  std::string key_;
  std::unique_ptr<StoreClient> store_;    // of the calls that wait
  std::unique_ptr<StoreClient> at_once_;  // of those that do not: another thread's wait does not hold them up
  std::mutex mutex_;                      // of the calls that wait
  std::map<std::string, int64_t> calls_;  // so far, by name
  bool met_ = false;                      // all were there
  std::unique_ptr<Pulse> pulse_;
};

}  // namespace sluice::replica
