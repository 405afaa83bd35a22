#include "sluice/pod/round.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"

namespace sluice::pod {
namespace {

constexpr double kPoll = 0.2;      // seconds between looks at the clock
constexpr double kOpening = 0.01;  // seconds of opening connections between looks at the open ones
constexpr double kSettle = 0.6;    // after a failure, to hear of an earlier one too
constexpr double kFarewell = 5;    // for a supervisor's last report after it should have ended its worker
constexpr double kDetachedPatience = 600;   // without a connection to a host of a detached run
constexpr int kFirstTries = 3;              // for a connection that was never up
constexpr int kLocalParallel = 64;          // processes of this machine that may be starting at once
constexpr double kClosingPoll = 0.005;      // seconds, while a connection's process is about to end
constexpr int kFirstConnections = 4;        // to hosts, at the beginning
constexpr double kNextConnection = 0.05;    // seconds until one more may be opened
constexpr uint64_t kKeptOnHost = 16 << 20;  // bytes of a log that stay on the host after they were fetched
constexpr double kWrongClock = 5;           // seconds between two clocks that are reported

const char* signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "?" : name;
}

std::string describe_status(int status) {
  if (status == 126) return "exit status 126 (the command or its folder cannot be used: see its log)";
  if (status == 127) return "exit status 127 (the command was not found on that host)";
  if (status <= 128 || status > 128 + 64) return base::str("exit status ", status);
  const int number = status - 128;
  return base::str("killed by signal ", number, " (SIG", signal_name(number), ")",
                   number == SIGKILL ? ": out of memory? `dmesg` on the host says so" : "");
}

// Returns whether the words are supervisor.sh's: port NUMBER [run NAME]. A command is made from them, so
// nothing else may be in them.
bool is_port_note(const std::vector<std::string>& words) {
  const auto is_name = [](const std::string& text) {
    return !text.empty() && text[0] != '-' && quote(text) == text &&
           text.find_first_of(":/@,%+") == std::string::npos;
  };
  if (words.size() != 2 && (words.size() != 4 || words[2] != "run" || !is_name(words[3]))) return false;
  return !words[1].empty() && words[1].find_first_not_of("0123456789") == std::string::npos;
}

// `words`: port NUMBER [run NAME], from supervisor.sh.
std::string describe_taken_port(const std::string& address, const std::vector<std::string>& words) {
  const std::string& port = words[1];
  const std::string by =
      words.size() > 3 ? "the workers of run " + words[3] + " meet there, too" : "a program listens there";
  const std::string stop = words.size() > 3 ? base::str("`sluice run stop ", words[3], "`") : "end that one";
  const int other = port == "8474" ? 11211 : 8474;  // Cloud TPU's firewall rule opens both
  return base::str("port ", port, " on ", address, " is taken: ", by,
                   ". Two runs that meet at one port fail or wait ", "for each other: ", stop,
                   ", or give one of them --coordinator ", address, ":", other);
}

}  // namespace

std::string describe(const Job& job, const Ending& ending) {
  if (ending.reason == "heartbeat")
    return base::str("it hangs: no heartbeat for ", job.heartbeat_timeout, " s; its process was ended");
  if (ending.reason == "lease")
    return base::str("its client was gone for ", job.lease, " s, so its supervisor ended it");
  if (ending.reason == "unwatched")
    return "a process of its supervisor was killed (by hand, or out of memory?), so the worker was ended";
  if (ending.reason == "lost") return "it is lost: " + ending.detail;
  if (ending.reason == "unreachable") return ending.detail;
  if (ending.reason == "stopped") return base::str("stopped, ", describe_status(ending.status));
  return describe_status(ending.status);
}

bool is_failure(const Ending& ending) {
  return ending.reason != "stopped" && (ending.status != 0 || ending.reason != "exited");
}

struct Round::Task {
  int worker = 0;
  std::optional<LogFile> log;
  uint64_t kept = 0;  // bytes of the output that the host knows to be in the log
  bool log_is_full = false, dismissed = false;
  LineMerger lines;
  std::optional<Link> link;
  bool was_up = false;
  int tries = 0;
  double next_try = 0, lost_at = 0;  // monotonic
  std::optional<Ending> ending;

  Task(int number, const std::string& address)
      : worker(number), lines(base::str(address, " [", number, "] ")) {}
};

Round::Round(const Job& job, RoundPlan plan, Console& console, Signals& signals)
    : job_(job), plan_(std::move(plan)), console_(console), signals_(signals) {
  result_.endings.resize(job.workers.size());
  for (const int worker : plan_.workers) {
    tasks_.push_back(std::make_unique<Task>(worker, job.workers[static_cast<size_t>(worker)].address));
    Task& task = *tasks_.back();
    task.was_up = plan_.attach;
    task.lost_at = base::monotonic_seconds();
    auto log = LogFile::open(plan_.log_path(worker), log_bytes(job));
    if (!log) say(log.error().what());
    if (log) task.log.emplace(std::move(*log));
  }
}

Round::~Round() = default;

RoundResult Round::to_end() {
  while (!all_ended()) {
    look_for_signals();
    open_links();
    renew_lease();
    wait_for_events();
    move_data();
    look_for_failure();
    give_up_late_ones();
    announce_start();
  }
  look_for_failure();
  return std::move(result_);
}

// Announces the start a moment later, so that a command that fails at once is not announced as running.
void Round::announce_start() {
  const double now = base::monotonic_seconds();
  if (!started_at_ && all_started()) started_at_ = now;
  if (!plan_.on_started || failed_at_ || stopped_at_ || !started_at_ || now - *started_at_ < kSettle) return;
  std::exchange(plan_.on_started, {})();
}

// Returns how many connections may be opening. Opening a connection is the most expensive part of starting a
// worker, on both ends. So that the first worker does not wait for all others, the number is small at first
// and grows with each open connection and with time.
int Round::connections_at_once(double now) const {
  if (is_local(job_)) return std::max(job_.ssh.parallel, kLocalParallel);
  const auto up = std::count_if(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->was_up; });
  const double grown = kFirstConnections + static_cast<double>(up) + (now - begun_at_) / kNextConnection;
  return static_cast<int>(std::min<double>(job_.ssh.parallel, grown));
}

void Round::open_links() {
  const double now = base::monotonic_seconds();
  const int at_once = connections_at_once(now);
  int connecting = 0;
  for (const auto& task : tasks_) connecting += task->link && !task->link->is_up();
  open_again_in_ = kPoll;
  for (const auto& task : tasks_) {
    if (task->link || task->ending || now < task->next_try) continue;
    if (connecting >= at_once) {
      if (at_once < job_.ssh.parallel) open_again_in_ = kNextConnection;
      return;
    }
    if (base::monotonic_seconds() - now > kOpening) {
      open_again_in_ = 0;
      return;
    }
    open_link(*task);
    ++connecting;
  }
}

void Round::open_link(Task& task) {
  const Worker& worker = job_.workers[static_cast<size_t>(task.worker)];
  SupervisorSettings settings;
  settings.mode = task.was_up ? "attach" : "start";
  settings.run = job_.id;
  settings.attempt = plan_.name;
  settings.worker = task.worker;
  settings.lease = job_.detached ? 0 : job_.lease;
  settings.patience = plan_.heartbeat_timeout;
  settings.grace = job_.grace;
  settings.port = task.worker == 0 ? plan_.port : 0;
  settings.clock = !is_local(job_);
  settings.space = log_bytes(job_);
  if (task.log) settings.offset = task.kept = task.log->position();
  settings.script = plan_.script(task.worker);
  ++task.tries;
  auto link = Link::open(shell_command(job_, worker), supervisor_script(settings));
  if (!link) {
    set_ending(task, {1, base::wall_seconds(), "unreachable", link.error().what()});
    return;
  }
  task.link = std::move(*link);
  task.dismissed = false;
  if (stop_order_ != nullptr) task.link->order(stop_order_);
}

// Renews the lease: supervisors end their workers if they hear nothing from the client for job_.lease
// seconds.
void Round::renew_lease() {
  const double now = base::monotonic_seconds();
  if (job_.detached || job_.lease == 0 || now - renewed_at_ < std::min(10.0, job_.lease / 6.0)) return;
  renewed_at_ = now;
  for (const auto& task : tasks_)
    if (task->link && task->link->is_up()) task->link->order("beat");
  if (plan_.on_lease_renewed) plan_.on_lease_renewed();
}

void Round::wait_for_events() {
  std::vector<pollfd> polled = {{signals_.descriptor(), POLLIN, 0}};
  console_.add_to(polled);
  bool closes = false;
  for (const auto& task : tasks_) {
    if (!task->link) continue;
    task->link->add_to(polled, reads_output());
    closes = closes || task->link->is_about_to_close();
  }
  const double patience = std::min(open_again_in_, closes ? kClosingPoll : kPoll);
  ::poll(polled.data(), polled.size(), static_cast<int>(patience * 1000));
}

void Round::move_data() {
  console_.move();
  for (const auto& task : tasks_) {
    if (!task->link) continue;
    std::string output;
    task->link->move(output, reads_output());
    write_log(*task, output);
    console_.add(task->lines.add(output));
    if (task->link->is_up()) task->was_up = true;
    pass_on_notes(*task);
    if (task->link->ending() && !std::exchange(task->dismissed, true))
      task->log_is_full ? leave_on_host(*task) : task->link->dismiss();
    if (task->link->is_closed()) close_link(*task);
  }
  console_.move();
}

// Tells the host from time to time what it need not keep any longer.
void Round::write_log(Task& task, const std::string& output) {
  if (!task.log || task.log_is_full) return;
  const uint64_t before = task.log->position();
  const uint64_t from = task.link->output_from().value_or(0);
  if (from > before)
    say(base::str("worker ", task.worker, " (", job_.workers[static_cast<size_t>(task.worker)].address,
                  "): ", base::size_text(from - before),
                  " of its output are lost: its log on that host had reached ", job_.log_size,
                  " MiB before they were fetched (--log-size)"));
  if (!task.log->skip_to(from) || !task.log->add(output)) {
    task.log_is_full = true;
    say(base::str("cannot write the log of worker ", task.worker, " any longer: ", std::strerror(errno)));
    return;
  }
  if (output.empty()) return;
  const uint64_t now = task.log->position();
  const uint64_t share = job_.log_size == 0 ? kKeptOnHost : std::min(kKeptOnHost, log_bytes(job_) / 8);
  if (now - task.kept < share) return;
  task.kept = now;
  task.link->order(base::str("have ", now));
}

// The host's copy of the log stays: only that one has the end.
void Round::leave_on_host(Task& task) {
  task.link->leave();
  say(base::str("the log of worker ", task.worker, " is not complete here; the rest of it is on ",
                job_.workers[static_cast<size_t>(task.worker)].address, ", in ~/.local/state/sluice/workers/",
                job_.id, "/", plan_.name, "-", task.worker, "/log (or below XDG_STATE_HOME there)"));
}

// Shows a message that many workers cause only once.
void Round::say_once(const std::string& kind, const std::string& text) {
  constexpr size_t kMaxKinds = 1000;  // kinds of messages, most of them from hosts
  if (said_.size() < kMaxKinds && said_.insert(kind).second) say(text);
}

void Round::pass_on_notes(Task& task) {
  const std::string& address = job_.workers[static_cast<size_t>(task.worker)].address;
  const std::string who =
      base::str("worker ", task.worker, slice_text(job_, task.worker), " (", address, "): ");
  const double ahead = task.link->clock_ahead().value_or(0);
  if (std::abs(ahead) > kWrongClock)
    say_once("clock of " + address, base::str("the clock of ", address, " is ", std::lround(std::abs(ahead)),
                                              " s ", ahead > 0 ? "ahead of" : "behind",
                                              " this machine's; times of failures are corrected"));
  for (const std::string& note : task.link->take_notes()) {
    const auto words = base::split(note, ' ');
    if (words[0] == "port" && is_port_note(words)) {
      say_once(note, describe_taken_port(address, words));
    } else if (words[0] == "uncontained") {
      say_once(note, who +
                         "this host cannot contain what a worker starts (that needs perl and a kernel with "
                         "/proc/PID/task/PID/children): a process that cleans its environment and leaves the "
                         "worker's process group stays behind");
    } else if (words[0] == "untrimmed") {
      say_once(address + note,
               who +
                   "this host cannot give up the beginning of a file (fallocate --punch-hole): the worker's "
                   "log there has taken more space than --log-size");
    } else if (words[0] == "full") {
      say_once("full disk of " + address, base::str(who, "no space is left on that host for ",
                                                    in_quotes(std::string_view(note).substr(words[0].size())),
                                                    ": what the worker wrote from then on is lost (df -h)"));
    } else {
      say_once(address + note, who + in_quotes(note));
    }
  }
}

void Round::close_link(Task& task) {
  const std::optional<Ending> ending = task.link->ending();
  if (ending) {
    task.link.reset();
    set_ending(task, *ending);
  } else {
    lose_link(task);
  }
}

// Handles a connection that broke or was never made: tries again, unless that is hopeless.
void Round::lose_link(Task& task) {
  const Worker& worker = job_.workers[static_cast<size_t>(task.worker)];
  const double now = base::monotonic_seconds();
  const std::string messages = task.link->messages();
  const int status = task.link->status();
  const bool was_up = task.link->is_up();
  task.link.reset();
  if (was_up) {
    task.lost_at = now;
    task.tries = 0;
    say(base::str("worker ", task.worker, slice_text(job_, task.worker), " (", worker.address,
                  "): the connection broke; trying again"));
  }
  std::string reason = explain_ssh(job_, worker, messages);
  if (worker.host.empty() || !is_ssh_failure(status))
    reason = base::str("the shell on ", worker.address, " ended with status ", status,
                       " before the worker: ", in_quotes(messages));
  const double patience = job_.detached ? kDetachedPatience : job_.lease;
  const bool again =
      is_passing(messages) &&
      (task.was_up ? now - task.lost_at < patience
                   : is_ssh_failure(status) && task.tries < kFirstTries && stop_order_ == nullptr);
  if (again) {
    task.next_try = now + std::min(5, task.tries);
  } else {
    if (task.was_up)
      reason = base::str("no connection for ", static_cast<int>(now - task.lost_at), " s: ", reason);
    set_ending(task, {1, base::wall_seconds(), "unreachable", std::string(base::trim(reason))});
  }
}

void Round::set_ending(Task& task, Ending ending) {
  console_.add(task.lines.finish());
  task.ending = ending;
  result_.endings[static_cast<size_t>(task.worker)] = ending;
  if (plan_.on_ended) plan_.on_ended(task.worker, ending);
  if (is_failure(ending) && !failed_at_) failed_at_ = base::monotonic_seconds();
}

// Chooses the earliest by the hosts' clocks among the failures that came within a moment.
void Round::look_for_failure() {
  if (!failed_at_ || result_.first_failure) return;
  if (!all_ended() && base::monotonic_seconds() - *failed_at_ < kSettle) return;
  for (const auto& task : tasks_) {
    if (!task->ending || !is_failure(*task->ending)) continue;
    const auto& first = result_.first_failure;
    if (!first || task->ending->time < result_.endings[static_cast<size_t>(*first)]->time)
      result_.first_failure = task->worker;
  }
  const auto running = std::count_if(tasks_.begin(), tasks_.end(), [](const auto& t) { return !t->ending; });
  const int worker = *result_.first_failure;
  const Ending& ending = *result_.endings[static_cast<size_t>(worker)];
  if (stopped_at_ || running == 0) return;
  say(base::str("worker ", worker, slice_text(job_, worker), " (",
                job_.workers[static_cast<size_t>(worker)].address, ") failed: ", describe(job_, ending),
                "; stopping the other ", running));
  stop("stop INT");
}

void Round::look_for_signals() {
  signals_.drain();
  const bool unread = console_.is_cut_off() && signals_.count() == 0;
  if (unread) signals_.add_hangup();
  const int count = signals_.count();
  if (count == seen_signals_) return;
  const bool again = seen_signals_ > 0;
  seen_signals_ = count;
  if (!again) {
    result_.signal = signals_.first();
    result_.signal_first = !failed_at_;
  }
  if (again) {
    say("killing all workers");
    stop("stop KILL");
  } else {
    say(base::str(unread ? "nobody reads the output any longer" : "told to stop",
                  ": ending all workers; a second signal kills them"));
    stop("stop INT");
  }
}

void Round::stop(const char* how) {
  stop_order_ = how;
  if (!stopped_at_) stopped_at_ = base::monotonic_seconds();
  for (const auto& task : tasks_) {
    if (task->ending) continue;
    if (task->link) task->link->order(how);
    // Without any connection so far, nothing runs there.
    if (!task->link && !task->was_up) set_ending(*task, {130, base::wall_seconds(), "stopped", ""});
  }
}

void Round::give_up_late_ones() {
  const double now = base::monotonic_seconds();
  if (!stopped_at_ || now - *stopped_at_ < job_.grace + kFarewell) return;
  for (const auto& task : tasks_) {
    if (task->ending) continue;
    task->link.reset();
    const std::string& address = job_.workers[static_cast<size_t>(task->worker)].address;
    set_ending(*task, {1, base::wall_seconds(), "lost",
                       base::str(address, " does not answer; ",
                                 job_.detached ? "`sluice run stop` again when it does"
                                               : base::str("its supervisor ends the worker ", job_.lease,
                                                           " s after the connection was lost"))});
  }
}

// A slow reader of the merged view delays the workers' output (which waits in their logs on the hosts), but
// never the end.
bool Round::reads_output() const { return !console_.is_full() || stopped_at_; }

bool Round::all_started() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task->ending || (task->link && task->link->is_up()); });
}

bool Round::all_ended() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->ending.has_value(); });
}

}  // namespace sluice::pod
