// One round of a run: a script on each of some workers, until all have ended. --setup is a round, and so is
// every attempt of the command.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/pod/console.h"
#include "sluice/pod/log.h"
#include "sluice/pod/signals.h"
#include "sluice/pod/ssh/link.h"
#include "sluice/pod/supervisor.h"

namespace sluice::pod {

struct RoundPlan {
  std::string name;     // "setup" or the attempt's number: the supervisors' folder
  bool attach = false;  // to workers that already run
  int heartbeat_timeout = 0;
  int port =
      0;  // the port on worker 0's host where the workers meet; checks whether it is taken; 0: no check
  std::vector<int> workers;  // numbers of the workers that take part
  std::function<std::string(int worker)> script, log_path;
  // on_started is called once all workers run (or have ended well), on_ended whenever one has ended.
  std::function<void()> on_started;
  std::function<void(int worker, const Ending& ending)> on_ended;
  std::function<void()> on_lease_renewed;  // at least every ten seconds, if there is a lease
};

struct RoundResult {
  std::vector<std::optional<Ending>> endings;  // [worker]; nothing for workers that take no part
  std::optional<int> first_failure;            // the worker that failed first
  int signal = 0;                              // SIGINT, SIGTERM or SIGHUP if one came; else 0
  bool signal_first = false;                   // the signal came before any worker failed
};

class Round {
 public:
  Round(const Job& job, RoundPlan plan, Console& console, Signals& signals);
  ~Round();

  // Runs until all have ended. The first failure or a signal stops the others; a second signal kills.
  RoundResult to_end();
  // Call before to_end() to end all workers.
  void stop_at_once() { stop("stop INT"); }

 private:
  struct Task;
  void announce_start();
  int connections_at_once(double now) const;
  void open_links();
  void open_link(Task& task);
  void close_link(Task& task);
  void lose_link(Task& task);
  void set_ending(Task& task, Ending ending);
  void write_log(Task& task, const std::string& output);
  void leave_on_host(Task& task);
  void pass_on_notes(Task& task);
  void say_once(const std::string& kind, const std::string& text);
  void renew_lease();
  void wait_for_events();
  void move_data();
  void look_for_failure();
  void look_for_signals();
  void stop(const char* how);
  void give_up_late_ones();
  bool reads_output() const;
  bool all_started() const;
  bool all_ended() const;

  const Job& job_;
  RoundPlan plan_;
  Console& console_;
  Signals& signals_;
  std::vector<std::unique_ptr<Task>> tasks_;
  // Monotonic times.
  const double begun_at_ = base::monotonic_seconds();
  double renewed_at_ = 0;
  std::optional<double> started_at_, failed_at_, stopped_at_;
  const char* stop_order_ = nullptr;
  int seen_signals_ = 0;
  double open_again_in_ = 0;  // seconds
  std::set<std::string> said_;
  RoundResult result_;
};

// Returns why a worker ended, for people: "exit status 3", "killed by signal 9 (SIGKILL) …".
std::string describe(const Job& job, const Ending& ending);
// Returns whether it counts as a failure. A worker that was told to stop does not fail.
bool is_failure(const Ending& ending);

}  // namespace sluice::pod
