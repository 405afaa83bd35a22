// The client of a run: starts the workers, keeps their logs, stops all if one fails, and restarts them.
#pragma once

#include <functional>
#include <memory>

#include "sluice/pod/round.h"

namespace sluice::pod {

class Client {
 public:
  // The client holds the run's lock while it lives. Errors: another client has the lock; a folder cannot be
  // written. `background`: nothing is shown on standard output, and the end of the terminal is ignored.
  static base::Result<std::unique_ptr<Client>> open(RunRecord record, bool background);

  // Carries out the run from --program and --sync to its end; calls `on_started` when all workers run.
  // Returns the exit status of `sluice run`.
  int begin(const std::function<void()>& on_started = {});
  // Continues where an earlier client left the run, like begin(); `stop`: only ends it.
  int take_over(bool stop);

 private:
  Client(RunRecord record, RunLock lock, Console console, bool background);
  base::Status copy_to_hosts();
  RoundResult set_up();
  RoundResult attempt(bool attach, bool stop, const std::function<void()>& on_started);
  int attempts(bool attach, bool stop, const std::function<void()>& on_started);
  bool pause_after(double seconds);
  bool may_restart(const RoundResult& result) const;
  void begin_next_attempt();
  int finish(const RoundResult& result, const std::string& what);
  int finish_stopped(int signal, const std::string& cause);
  int finish_failed(int status, const std::string& cause);
  std::string describe_failure(const RoundResult& result, int attempt_or_setup) const;
  void keep(bool always = true);

  RunRecord record_;
  RunLock lock_;
  Console console_;
  Signals signals_;
  double kept_ = 0;
  int quick_failures_ = 0;  // consecutive attempts that did not become stable
};

// Returns what `sluice run --dry-run` prints: each command and script, exactly.
std::string describe_commands(const Job& job);

}  // namespace sluice::pod
