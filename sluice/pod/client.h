// The client of a run: it starts the workers, keeps their logs, stops all when one fails, starts them again.
#pragma once

#include <functional>
#include <memory>

#include "sluice/pod/round.h"

namespace sluice::pod {

class Client {
 public:
  // Holds the run's lock as long as it lives. Errors: another client has it; a folder that cannot be written.
  // `background`: shows nothing on standard output, and the end of its terminal does not matter.
  static base::Result<std::unique_ptr<Client>> open(RunRecord record, bool background);

  // From --program and --sync to the end; `on_started` is called when all workers run. The exit status of
  // `sluice run`.
  int begin(const std::function<void()>& on_started = {});
  // The same from where an earlier client left the run; `stop`: only to end it.
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
  int quick_failures_ = 0;  // attempts in a row that did not last
};

// What `sluice run --dry-run` prints: each command and script, exactly.
std::string describe_commands(const Job& job);

}  // namespace sluice::pod
