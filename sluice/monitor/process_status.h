// The status that a training process writes once a second to a small file of its own, for `sluice top` and
// the leader's status port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::monitor {

// Identifies a process. A later process with the same id began at another time.
struct ProcessIdentity {
  int process = 0;         // its id
  std::string namespaces;  // the namespace in which the id is valid (/proc/self/ns/pid)
  int64_t began = 0;       // ticks since the machine started, as in /proc/PID/stat
  std::string program, host;
  std::string run;           // the run of `sluice run`; "": started without it
  int index = 0, count = 1;  // among the processes that train together
  int slice = -1;            // its TPU slice of several; -1: there is one, or none
  int replicas = 1;          // of this process
  std::string coordinator;   // the meeting place of the processes that train together; "": it trains alone
  std::string device;        // "xla:0", "cpu"
  std::string profiler;      // the address at which it takes profiles, "127.0.0.1:9012"; "": none
};
// Returns this process's identity, without what only a training knows: index, count, replicas and device.
ProcessIdentity own_identity();

// The shares (0 to 1) of the time between two records, as in the line at the end of an epoch (training.md).
struct TimeShares {
  double input = 0, trace = 0, device = 0;
};

struct ProcessStatus {
  ProcessIdentity identity;
  int64_t step = 0, epoch = 0;
  // The mean over the steps since the previous record; 0: there was no step.
  double step_ms = 0;
  double rate = 0;  // examples a second, of all replicas of this process
  std::optional<TimeShares> shares;
  // Quantiles of the same steps; nullopt if they are not known.
  std::optional<double> step_p50_ms, step_p95_ms;
  std::optional<double> tokens_per_second;            // of all replicas of all processes
  std::optional<double> flops_per_second;             // of one replica
  std::optional<double> mfu;                          // 0 to 1
  std::optional<int64_t> memory_in_use, memory_peak;  // bytes, of the fullest device of this process
  double time = 0;                                    // when this was written, in seconds since 1970
};

std::string text_of(const ProcessStatus& status);  // JSON
// kDataLoss for a text that is no such record.
base::Result<ProcessStatus> parse_status(const std::string& text);

// Returns $SLUICE_STATUS_DIR, else a folder of this user in /dev/shm (or in /tmp without it); nullopt if the
// variable is off.
std::optional<std::string> status_folder();

// The file of this process. It is removed when the process ends normally, and stays when the process is
// killed. Errors are ignored: the training continues without being observed. Threads: one.
class StatusFile {
 public:
  explicit StatusFile(std::optional<std::string> folder = status_folder());
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  bool is_on() const { return !path_.empty(); }
  // Writes the file completely or not at all, without waiting for the disk.
  void write(const ProcessStatus& status);

 private:
  std::string path_;  // "": nothing is written
};

struct SeenProcess {
  enum class State { kRunning, kSilent, kGone };
  ProcessStatus status;
  // kSilent: no record for 10 s, for example while a program compiles, or when the process hangs. kGone: the
  // process was killed, as it left its record behind.
  State state = State::kRunning;
  double age = 0;  // of the record, in seconds
};
const char* word_of(SeenProcess::State state);  // "running", "silent", "killed"

// Reads the records in a folder, ordered by run, index and id. Unreadable records are left out; records of
// processes that were killed more than ten minutes ago are removed. A missing folder has no records.
std::vector<SeenProcess> read_statuses(const std::string& folder, double now);

}  // namespace sluice::monitor
