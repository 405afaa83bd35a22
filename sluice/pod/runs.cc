#include "sluice/pod/runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/formats/json_text.h"
#include "sluice/base/process.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/quantity.h"
#include "sluice/pod/client.h"
#include "sluice/pod/log.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::pod {
namespace {

constexpr int kPollMilliseconds = 200;
constexpr double kEndOfLease = 15;  // seconds that supervisors may take to end workers after lease and grace

// Detaches the child process of a detached run from the terminal; messages go to client.log.
void leave_terminal(const std::string& folder) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int log =
      ::open(base::join_path(folder, "client.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
}

int run_in_background(const RunRecord& record, int report) {
  auto client = Client::open(record, /*background=*/true);
  if (!client) {
    say(client.error().what());
    return 1;
  }
  return (*client)->begin([&] { [[maybe_unused]] const auto sent = ::write(report, "up", 2); });
}

// Starts the client as a process of its own; returns once all workers run, or with the status of a run that
// ended before.
base::Result<int> detach(const RunRecord& record) {
  const std::string folder = run_folder(record.job.id);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return base::fail_errno(errno, "make a pipe for", "the client");
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return base::fail_errno(errno, "start", "the client");
  if (process == 0) {
    ::close(report[0]);
    leave_terminal(folder);
    ::_exit(run_in_background(record, report[1]));
  }
  ::close(report[1]);
  char word[2];
  ssize_t count;
  while ((count = ::read(report[0], word, sizeof word)) < 0 && errno == EINTR) {
  }
  ::close(report[0]);
  if (count > 0) {
    std::printf("run %s: all workers run. sluice run attach %s, logs --follow, stop\n", record.job.id.c_str(),
                record.job.id.c_str());
    return 0;
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  const auto messages = base::read_file(base::join_path(folder, "client.log"));
  std::fputs(messages ? messages->c_str() : "", stderr);
  if (status == 0) std::printf("run %s has ended already\n", record.job.id.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// Copies a growing log to standard output, without terminal control sequences unless `raw`.
class Follower {
 public:
  Follower(std::string path, bool from_end, bool raw) : path_(std::move(path)), filtered_(!raw) {
    const auto parts = log_parts(path_);
    if (!from_end || parts.empty()) return;
    open(parts.back());
    if (file_ >= 0) position_ += static_cast<uint64_t>(::lseek(file_, 0, SEEK_END));
  }
  ~Follower() {
    if (filtered_) write_all(STDOUT_FILENO, filter_.finish());
    if (file_ >= 0) ::close(file_);
  }
  Follower(const Follower&) = delete;

  // Copies new bytes; returns false if standard output has no reader.
  bool copy() {
    do {
      if (!copy_file()) return false;
    } while (open_next());
    return error_ == 0;
  }

  // Fails if standard output could not be written. A reader that closed it is not a failure.
  base::Status written() const {
    if (error_ == 0 || error_ == EPIPE || error_ == EIO) return {};
    return base::fail_errno(error_, "write", "standard output");
  }

 private:
  void open(const LogPart& part) {
    if (file_ >= 0) ::close(file_);
    file_ = ::open(part.path.c_str(), O_RDONLY | O_CLOEXEC);
    from_ = position_ = part.from;
  }
  bool copy_file() {
    char block[16 << 10];
    ssize_t count;
    while (file_ >= 0 && (count = ::read(file_, block, sizeof block)) > 0) {
      const std::string_view bytes(block, static_cast<size_t>(count));
      position_ += bytes.size();
      if (write_all(STDOUT_FILENO, filtered_ ? filter_.add(bytes) : std::string(bytes))) continue;
      error_ = errno;
      return false;
    }
    return true;
  }
  // Opens the log's next file, if there is one; then nothing more comes to the one before it.
  bool open_next() {
    for (const LogPart& part : log_parts(path_)) {
      if (from_ && part.from <= *from_) continue;
      if (!copy_file()) return false;
      if (part.from > position_)
        say(base::str(base::size_text(part.from - position_), " of this log are not kept (--log-size)"));
      open(part);
      return true;
    }
    return false;
  }

  const std::string path_;
  int error_ = 0;
  int file_ = -1;
  std::optional<uint64_t> from_;  // where the last file begins in the log; nothing: none was opened
  uint64_t position_ = 0;         // in the log
  bool filtered_;
  TerminalFilter filter_;
};

// Copies until the run's client ends. A signal is forwarded to the client, or ends the copying. The end of
// the terminal always ends only the copying.
void follow(const RunRecord& record, Follower& file, Signals& signals, bool forward_signals) {
  int seen = 0;
  bool running = true;
  while (running) {
    running = is_attended(record.job.id);
    if (!file.copy()) return;
    signals.drain();
    if (signals.count() > seen) {
      seen = signals.count();
      if (!forward_signals || signals.first() == SIGHUP) return;
      ::kill(record.client, signals.first() == SIGINT ? SIGINT : SIGTERM);
    }
    pollfd wake{signals.descriptor(), POLLIN, 0};
    if (running) ::poll(&wake, 1, kPollMilliseconds);
  }
}

base::Status check_reachable(const RunRecord& record) {
  if (record.client_host == base::host_name()) return {};
  return base::fail(Code::kFailedPrecondition, "the client of run ", record.job.id, " is process ",
                    record.client, " on ", record.client_host, ": do it there");
}

// Reports a run that has ended.
int report_end(const RunRecord& record) {
  say(base::str("run ", record.job.id, " ", record.state,
                record.cause.empty() ? std::string() : base::str(": ", record.cause)));
  return record.exit_status;
}

// Returns the run's status as its client left it.
base::Result<int> end_of(const std::string& id) {
  SLUICE_TRY(const RunRecord record, load(id));
  if (record.is_over()) return report_end(record);
  return base::fail(Code::kAborted, "the client of run ", id, " ended without a word; `sluice run attach ",
                    id, "` takes its place");
}

// Returns the run as it is shown: adds what its client could not write any more.
RunRecord looked_at(RunRecord record) {
  if (record.is_over() || is_attended(record.job.id)) return record;
  const Job& job = record.job;
  const double ended = last_attended(job.id) + job.lease + job.grace;
  if (record.state == "starting") {
    record.state = "failed";
    record.exit_status = 1;
    record.cause = "its client ended before the workers were started";
  } else if (!job.detached && base::wall_seconds() > ended + kEndOfLease) {
    record.state = "failed";
    record.exit_status = 1;
    record.ended = ended;
    record.cause =
        base::str("its client was gone for ", job.lease, " s, so the workers were ended; `sluice run attach ",
                  job.id, "` brings what they wrote");
  } else {
    record.state = "unattended";
  }
  return record;
}

}  // namespace

base::Result<int> run_job(Job job) {
  RunRecord record;
  record.job = std::move(job);
  record.started = base::wall_seconds();
  record.endings.resize(record.job.workers.size());
  const std::string folder = run_folder(record.job.id);
  SLUICE_OK(base::make_private_folder(folder));  // the environment may contain secrets
  say(base::str("run ", record.job.id, ": ",
                base::counted(static_cast<int64_t>(record.job.workers.size()), "worker"),
                is_local(record.job) ? " on this machine" : "", "; logs: ", folder));
  if (record.job.detached) return detach(record);
  SLUICE_TRY(const auto client, Client::open(std::move(record), /*background=*/false));
  return client->begin();
}

base::Result<int> attach_run(const std::string& name, bool raw) {
  SLUICE_TRY(RunRecord record, find_run(name));
  record.job.raw = raw;
  if (record.is_over()) return report_end(record);
  const std::string id = record.job.id;
  if (!is_attended(id)) {
    say(base::str("run ", id, ": taking its client's place; Ctrl-C ends it"));
    SLUICE_TRY(const auto client, Client::open(std::move(record), /*background=*/false));
    return client->take_over(/*stop=*/false);
  }
  SLUICE_OK(check_reachable(record));
  Signals signals(/*background=*/false);
  Follower merged(base::join_path(run_folder(id), "merged.log"), /*from_end=*/true, raw);
  say(base::str("run ", id, ": attached; Ctrl-C ends it"));  // the workers' output from now on is shown
  follow(record, merged, signals, /*forward_signals=*/true);
  SLUICE_OK(merged.written());
  if (signals.first() == SIGHUP && is_attended(id)) return 128 + SIGHUP;
  return end_of(id);
}

base::Result<int> stop_run(const std::string& name) {
  SLUICE_TRY(RunRecord record, find_run(name));
  if (record.is_over()) {
    report_end(record);
    return 0;
  }
  const std::string id = record.job.id;
  if (!is_attended(id)) {
    SLUICE_TRY(const auto client, Client::open(std::move(record), /*background=*/false));
    return client->take_over(/*stop=*/true);
  }
  SLUICE_OK(check_reachable(record));
  if (::kill(record.client, SIGTERM) != 0) return base::fail_errno(errno, "signal", "the client");
  const base::Stopwatch clock;
  while (is_attended(id)) {
    if (clock.seconds() > record.job.grace + 15)
      return base::fail(Code::kDeadlineExceeded, "run ", id, " has not ended after ", clock.seconds(),
                        " s; the same again kills its workers");
    ::poll(nullptr, 0, kPollMilliseconds);
  }
  SLUICE_OK(end_of(id));
  return 0;
}

base::Result<int> show_logs(const std::string& name, std::optional<int> worker, bool follow_on, bool raw) {
  SLUICE_TRY(const RunRecord record, find_run(name));
  const std::string id = record.job.id;
  if (worker && (*worker < 0 || *worker >= static_cast<int>(record.job.workers.size())))
    return base::fail(Code::kInvalidArgument, "run ", id, " has no worker ", *worker, ": they are 0 to ",
                      record.job.workers.size() - 1);
  if (worker)
    for (int attempt = 0; attempt < record.attempt; ++attempt)
      if (Follower earlier(worker_log(id, *worker, attempt), false, raw); !earlier.copy()) {
        SLUICE_OK(earlier.written());
        return 0;
      }
  std::optional<Signals> signals;
  if (follow_on) signals.emplace(/*background=*/false);
  Follower last(
      worker ? worker_log(id, *worker, record.attempt) : base::join_path(run_folder(id), "merged.log"), false,
      raw);
  last.copy();
  if (!record.is_over() && !is_attended(id))
    say(base::str("run ", id, " has no client at the moment; `sluice run attach ", id,
                  "` brings what is missing"));
  if (follow_on) follow(record, last, *signals, /*forward_signals=*/false);
  SLUICE_OK(last.written());
  return 0;
}

base::Result<int> show_runs(bool json) {
  const auto runs = list_runs();
  nlohmann::json all = nlohmann::json::array();
  if (!json)
    std::printf("%-20s %-10s %-9s %7s %8s  %s\n", "RUN", "STATE", "STARTED", "WORKERS", "RESTARTS",
                "COMMAND");
  for (const RunRecord& recorded : runs) {
    const RunRecord run = looked_at(recorded);
    const std::string command = quote_all(run.job.command);
    if (json) {
      all.push_back({{"id", run.job.id},
                     {"state", run.state},
                     {"started", run.started},
                     {"ended", run.ended},
                     {"workers", run.job.workers.size()},
                     {"restarts", run.attempt},
                     {"exit_status", run.exit_status},
                     {"cause", run.cause},
                     {"command", run.job.command},
                     {"logs", run_folder(run.job.id)}});
    } else {
      std::printf("%-20s %-10s %-9s %7zu %8d  %s\n", run.job.id.c_str(), run.state.c_str(),
                  base::local_time(run.started).c_str(), run.job.workers.size(), run.attempt,
                  base::printable(command).c_str());
    }
  }
  if (json) std::printf("%s\n", base::json_text(all).c_str());
  return 0;
}

}  // namespace sluice::pod
