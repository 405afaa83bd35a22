// What a training process says of itself, once a second: a small file of its own, which `sluice top` and the
// leader's status port read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::monitor {

// Which process it is. Another one that was given the same id later has begun at another time.
struct ProcessIdentity {
  int process = 0;         // its id
  std::string namespaces;  // in which that id means something (/proc/self/ns/pid)
  int64_t began = 0;       // ticks since the machine started, as /proc/PID/stat has it
  std::string program, host;
  std::string run;           // of `sluice run`; "": started without it
  int index = 0, count = 1;  // among the processes that train together
  int replicas = 1;          // of this process
  std::string coordinator;   // where the processes that train together have met; "": it trains alone
  std::string device;        // "xla:0", "cpu"
  std::string profiler;      // where it takes profiles, "127.0.0.1:9012"; "": nowhere
};
// Of this process, without what only a training knows: index, count, replicas and device.
ProcessIdentity own_identity();

// Where the time between two records went, as in the line at the end of an epoch (training.md): parts of 1.
struct TimeShares {
  double input = 0, trace = 0, device = 0;
};

struct ProcessStatus {
  ProcessIdentity identity;
  int64_t step = 0, epoch = 0;
  // Of the steps since the record before; 0: there was none.
  double step_ms = 0;
  double rate = 0;  // examples a second, of all replicas of this process
  std::optional<TimeShares> shares;
  // Likewise, of the steps that ended since then; nothing where that is not known.
  std::optional<double> step_p50_ms, step_p95_ms;
  std::optional<double> tokens_per_second;            // of all replicas of all processes
  std::optional<double> flops_per_second;             // of one replica
  std::optional<double> mfu;                          // part of 1
  std::optional<int64_t> memory_in_use, memory_peak;  // bytes, of the fullest device of this process
  double time = 0;                                    // when this was written, in seconds since 1970
};

std::string text_of(const ProcessStatus& status);  // JSON
// kDataLoss for what is no such record.
base::Result<ProcessStatus> parse_status(const std::string& text);

// $SLUICE_STATUS_DIR, else a folder of this user's in /dev/shm (or /tmp, where there is none); nothing when
// the variable says off.
std::optional<std::string> status_folder();

// The file of this process; it goes when the process ends well, and stays when that is killed. Errors say
// nothing: a training goes on without being watched. Threads: one.
class StatusFile {
 public:
  explicit StatusFile(std::optional<std::string> folder = status_folder());
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  bool is_on() const { return !path_.empty(); }
  // Complete or not at all; without waiting for the disk.
  void write(const ProcessStatus& status);

 private:
  std::string path_;  // "": nothing is written
};

struct SeenProcess {
  enum class State { kRunning, kSilent, kGone };
  ProcessStatus status;
  // kSilent: no record for 10 s, as while a program compiles, or when it hangs. kGone: the process has ended
  // without taking its record away: it was killed.
  State state = State::kRunning;
  double age = 0;  // of the record, in seconds
};
const char* word_of(SeenProcess::State state);  // "running", "silent", "killed"

// The records in a folder, by run, index and id. What of them is unreadable is left out; those of processes
// that were killed more than ten minutes ago are removed. No such folder: none.
std::vector<SeenProcess> read_statuses(const std::string& folder, double now);

}  // namespace sluice::monitor
