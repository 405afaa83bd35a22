// The record of a run, in a folder under the user's state folder, so that any terminal finds it:
//   run.json       the job and its state; always complete, as it is written atomically
//   lock           locked by the client that controls the run; its time is the client's last sign of life
//   worker-N.log   the output of worker N, byte for byte; after a restart worker-N.restart-1.log and so on
//   setup-N.log    the output of --setup
//   worker-N.from-P.log   the output from byte P on, after a log has reached a quarter of --log-size (log.h)
//   merged.log     the lines of all workers in the order of their arrival
//   client.log     the client's own messages when it runs in the background
//   reserve        room for the last run.json if the disk becomes full
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// The ending of one worker of the present attempt.
struct Ending {
  int status = 0;      // as in sh: 128 + n for signal n
  double time = 0;     // seconds since 1970, by the host's clock, or by the client's if they differ
  std::string reason;  // exited, stopped, heartbeat, lease, unwatched, lost, unreachable
  std::string detail;  // for lost and unreachable
};

struct RunRecord {
  Job job;
  std::string state = "starting";  // starting, running, succeeded, failed, stopped
  int attempt = 0;
  int port = 0;
  double started = 0, ended = 0;  // seconds since 1970; 0: not yet
  int exit_status = 0;            // after the end
  std::string cause;              // the reason for a failure or a stop
  int client = 0;                 // process id of the client on client_host, valid while the lock is held
  std::string client_host;
  std::vector<std::optional<Ending>> endings;  // [worker], of the present attempt

  bool is_over() const { return state == "succeeded" || state == "failed" || state == "stopped"; }
};

// Return ${XDG_STATE_HOME:-~/.local/state}/sluice/runs, or the folder of a run in it.
std::string runs_folder();
std::string run_folder(const std::string& id);
// Returns the path of a worker's log in an attempt.
std::string worker_log(const std::string& id, int worker, int attempt);

// If the disk is full, save() uses the room that reserve_space() has kept; after the record of a finished
// run, no room is kept.
base::Status save(const RunRecord& record);
base::Status reserve_space(const std::string& id);
base::Result<RunRecord> load(const std::string& id);
// Returns all runs, the latest first; omits folders without a readable run.json.
std::vector<RunRecord> list_runs();
// Returns the run with this name or with this beginning of a name; the latest for "". Errors list the runs.
base::Result<RunRecord> find_run(const std::string& name);

// The right to control a run: one client at a time holds it, and it ends with the process.
class RunLock {
 public:
  // Returns nothing if another client has it.
  static base::Result<std::optional<RunLock>> take(const std::string& id);
  // Gives a sign of life: sets the file's time to now.
  void touch() const;
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Returns whether a client controls the run now.
bool is_attended(const std::string& id);
// Returns when a client last gave a sign of life, in seconds since 1970; 0: never.
double last_attended(const std::string& id);

}  // namespace sluice::pod
