// What the client knows of a run, kept in a folder under the user's state folder, so that any terminal finds
// it:
//   run.json       the job and how far it is; always complete, it is written atomically
//   lock           locked by the client that looks after the run; its time is the client's last sign of life
//   worker-N.log   the output of worker N, byte for byte; after a restart worker-N.restart-1.log and so on
//   setup-N.log    the output of --setup
//   merged.log     the lines of all workers as they came
//   client.log     the client's own messages when it runs in the background
//   reserve        room for the last run.json, should the disk be full by then
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pod/job.h"

namespace sluice::pod {

// How one worker of the present attempt ended.
struct Ending {
  int status = 0;      // as sh has it: 128 + n for signal n
  double time = 0;     // seconds since 1970, by the host's clock, or by the client's if they differ
  std::string reason;  // exited, stopped, heartbeat, lease, unwatched, lost, unreachable
  std::string detail;  // of lost and unreachable
};

struct RunRecord {
  Job job;
  std::string state = "starting";  // starting, running, succeeded, failed, stopped
  int attempt = 0;
  int port = 0;
  double started = 0, ended = 0;  // seconds since 1970; 0: not yet
  int exit_status = 0;            // once it has ended
  std::string cause;              // why it failed or was stopped
  int client = 0;                 // process id of the client on client_host, valid while the lock is held
  std::string client_host;
  std::vector<std::optional<Ending>> endings;  // [worker], of the present attempt

  bool is_over() const { return state == "succeeded" || state == "failed" || state == "stopped"; }
};

// ${XDG_STATE_HOME:-~/.local/state}/sluice/runs, or the folder of a run in it.
std::string runs_folder();
std::string run_folder(const std::string& id);
// The log of a worker in an attempt.
std::string worker_log(const std::string& id, int worker, int attempt);

// Where the disk is full it takes the room that reserve_space() has kept, of which is nothing left after the
// record of a run that is over.
base::Status save(const RunRecord& record);
base::Status reserve_space(const std::string& id);
base::Result<RunRecord> load(const std::string& id);
// All runs, the latest first; folders without a readable run.json are left out.
std::vector<RunRecord> list_runs();
// The run of this name or with this beginning of a name; the latest for "". Errors say which runs there are.
base::Result<RunRecord> find_run(const std::string& name);

// The right to look after a run: one client at a time holds it, and it ends with the process.
class RunLock {
 public:
  // Nothing when another client has it.
  static base::Result<std::optional<RunLock>> take(const std::string& id);
  // A sign of life: the time of the file is the present one.
  void touch() const;
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Whether some client looks after the run at this moment.
bool is_attended(const std::string& id);
// When one last gave a sign of life, in seconds since 1970; 0: never.
double last_attended(const std::string& id);

}  // namespace sluice::pod
