#include "sluice/pod/client.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/secret.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/program.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"
#include "sluice/pod/ssh/sync.h"

namespace sluice::pod {
namespace {

constexpr int kSetup = -1;  // replaces an attempt's number
constexpr int kFailureLines = 20;
constexpr const char* kKeyShown = "(a new random key for each attempt)";

// Returns a port of this machine that nothing listens on.
int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(listener, plain, size) == 0 && ::getsockname(listener, plain, &size) == 0;
  ::close(listener);
  return bound ? ntohs(address.sin_port) : 8476;
}

// Each worker needs three pipes and a log.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string log_of(const Job& job, int worker, int attempt) {
  if (attempt != kSetup) return worker_log(job.id, worker, attempt);
  return base::join_path(run_folder(job.id), base::str("setup-", worker, ".log"));
}

std::string script_of(const Job& job, int worker, int attempt, int port, const std::string& key) {
  const bool setup = attempt == kSetup;
  return worker_script(worker_environment(job, worker, std::max(attempt, 0), port, key), job.folder,
                       setup ? std::vector<std::string>{"sh", "-c", job.setup} : job.command,
                       job.program.sha256);
}

constexpr double kLongAttempt = 60;                      // seconds after which an attempt counts as stable
constexpr double kFirstPause = 0.5, kLongestPause = 60;  // before a restart

// Returns the exit status of the worker's command; 1 if the worker ended in another way.
int exit_status(const Ending& ending) { return ending.reason == "exited" ? ending.status : 1; }

// Wrong usage, a missed target and a missing command fail again however often they are tried.
bool is_worth_another_try(const Ending& ending) {
  if (ending.reason != "exited") return true;
  return ending.status != 2 && ending.status != 21 && ending.status != 126 && ending.status != 127;
}

std::string last_file_of(const std::string& log) {
  const auto parts = log_parts(log);
  return parts.empty() ? log : parts.back().path;
}

std::string name_of(const Job& job, int worker) {
  return base::str("worker ", worker, slice_text(job, worker), " (",
                   job.workers[static_cast<size_t>(worker)].address, ")");
}

// Names slices without any worker that can be reached: they were probably taken back.
std::string lost_slices(const Job& job, const std::vector<std::optional<Ending>>& endings) {
  std::vector<int> gone(static_cast<size_t>(job.slices)), all(gone);
  for (size_t i = 0; i < endings.size(); ++i) {
    const auto slice = static_cast<size_t>(job.workers[i].slice);
    ++all[slice];
    gone[slice] +=
        endings[i] && (endings[i]->reason == "lost" || endings[i]->reason == "unreachable") ? 1 : 0;
  }
  std::string text;
  for (size_t slice = 0; slice < gone.size() && job.slices > 1; ++slice)
    if (gone[slice] == all[slice])
      text += base::str("\n  slice ", slice, " is lost: no connection to any of its ",
                        base::counted(all[slice], "worker"));
  return text;
}

}  // namespace

base::Result<std::unique_ptr<Client>> Client::open(RunRecord record, bool background) {
  SLUICE_OK(base::make_private_folder(run_folder(record.job.id)));
  SLUICE_TRY(Console console, Console::open(base::join_path(run_folder(record.job.id), "merged.log"),
                                            log_bytes(record.job), background, record.job.raw));
  SLUICE_TRY(auto lock, RunLock::take(record.job.id));
  if (!lock)
    return base::fail(Code::kFailedPrecondition, "run ", record.job.id, " is looked after by another client");
  const std::string id = record.job.id;
  std::unique_ptr<Client> client(
      new Client(std::move(record), std::move(*lock), std::move(console), background));
  client->lock_.touch();
  SLUICE_OK(save(client->record_));
  if (const auto reserved = reserve_space(id); !reserved) say(reserved.error().what());
  return client;
}

Client::Client(RunRecord record, RunLock lock, Console console, bool background)
    : record_(std::move(record)), lock_(std::move(lock)), console_(std::move(console)), signals_(background) {
  raise_descriptor_limit();
  record_.client = ::getpid();
  record_.client_host = base::host_name();
  record_.endings.resize(record_.job.workers.size());
}

int Client::begin(const std::function<void()>& on_started) {
  const Job& job = record_.job;
  record_.started = base::wall_seconds();
  record_.port = job.port != 0 ? job.port : free_port();
  keep();
  if (const auto copied = copy_to_hosts(); !copied)
    return signals_.count() > 0 ? finish_stopped(signals_.first(), copied.error().what())
                                : finish_failed(1, copied.error().what());
  if (!job.setup.empty()) {
    const RoundResult result = set_up();
    if (result.signal != 0 || result.first_failure) return finish(result, "--setup");
  }
  record_.state = "running";
  keep();
  return attempts(false, false, on_started);
}

// Copies what --program and --sync name.
base::Status Client::copy_to_hosts() {
  const Job& job = record_.job;
  const std::string folder = run_folder(job.id);
  if (!job.program.path.empty()) SLUICE_OK(send_program(job, folder, signals_));
  if (!job.sync.empty()) SLUICE_OK(sync_folder(job, base::join_path(folder, "sync.tar"), signals_));
  return {};
}

int Client::take_over(bool stop) {
  if (record_.state == "starting")
    return finish_failed(1, "its client ended before the workers were started; start it again");
  keep();
  return attempts(true, stop, {});
}

RoundResult Client::set_up() {
  const Job& job = record_.job;
  RoundPlan plan;
  plan.name = "setup";
  for (size_t i = 0; i < job.workers.size(); ++i)
    if (job.workers[i].local_index == 0) plan.workers.push_back(static_cast<int>(i));
  plan.on_lease_renewed = [&] { lock_.touch(); };
  plan.script = [&](int worker) { return script_of(job, worker, kSetup, record_.port, ""); };
  plan.log_path = [&](int worker) { return log_of(job, worker, kSetup); };
  return Round(job, std::move(plan), console_, signals_).to_end();
}

RoundResult Client::attempt(bool attach, bool stop, const std::function<void()>& on_started) {
  const Job& job = record_.job;
  const std::string key = base::new_secret();  // in the workers' environment, but in no record
  RoundPlan plan;
  plan.name = std::to_string(record_.attempt);
  plan.attach = attach;
  plan.heartbeat_timeout = job.heartbeat_timeout;
  plan.port = job.port;
  for (size_t i = 0; i < job.workers.size(); ++i)
    if (!record_.endings[i]) plan.workers.push_back(static_cast<int>(i));
  plan.script = [&](int worker) { return script_of(job, worker, record_.attempt, record_.port, key); };
  plan.log_path = [&](int worker) { return log_of(job, worker, record_.attempt); };
  plan.on_started = on_started;
  plan.on_ended = [&](int worker, const Ending& ending) {
    record_.endings[static_cast<size_t>(worker)] = ending;
    keep(false);
  };
  plan.on_lease_renewed = [&] { lock_.touch(); };
  auto earlier = record_.endings;
  Round round(job, std::move(plan), console_, signals_);
  if (stop) round.stop_at_once();
  RoundResult result = round.to_end();
  // A client that took over the run has some endings from its predecessor.
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (!earlier[i]) continue;
    result.endings[i] = earlier[i];
    if (is_failure(*earlier[i]) &&
        (!result.first_failure ||
         earlier[i]->time < result.endings[static_cast<size_t>(*result.first_failure)]->time))
      result.first_failure = static_cast<int>(i);
  }
  return result;
}

int Client::attempts(bool attach, bool stop, const std::function<void()>& on_started) {
  while (true) {
    const double begun = base::monotonic_seconds();
    const RoundResult result = attempt(attach, stop, on_started);
    if (stop) return finish_stopped(0, "sluice run stop");
    if (result.signal != 0 || !result.first_failure || !may_restart(result)) return finish(result, "");
    say("failed: " + describe_failure(result, record_.attempt));
    if (!pause_after(base::monotonic_seconds() - begun))
      return finish_stopped(signals_.first(), "told to stop");
    begin_next_attempt();
    attach = false;
  }
}

// Pauses before a restart. What fails at once will mostly fail again: each restart waits twice as long as the
// one before, until an attempt is stable. Returns false if a signal came.
bool Client::pause_after(double seconds) {
  quick_failures_ = seconds < kLongAttempt ? quick_failures_ + 1 : 1;
  const double pause = std::min(kLongestPause, kFirstPause * std::exp2(quick_failures_ - 1));
  if (pause >= 1)
    say(base::str("waiting ", pause, " s: the attempt failed after ", std::lround(seconds), " s"));
  const double end = base::monotonic_seconds() + pause;
  while (signals_.count() == 0 && base::monotonic_seconds() < end) {
    pollfd wake{signals_.descriptor(), POLLIN, 0};
    ::poll(&wake, 1, 200);
    console_.move();
    lock_.touch();
  }
  return signals_.count() == 0;
}

bool Client::may_restart(const RoundResult& result) const {
  return record_.attempt < record_.job.max_restarts &&
         is_worth_another_try(*result.endings[static_cast<size_t>(*result.first_failure)]);
}

void Client::begin_next_attempt() {
  ++record_.attempt;
  if (record_.job.port == 0) record_.port = free_port();
  std::fill(record_.endings.begin(), record_.endings.end(), std::nullopt);
  say(base::str("restart ", record_.attempt, " of ", record_.job.max_restarts));
  keep();
}

int Client::finish(const RoundResult& result, const std::string& what) {
  console_.finish(2);
  if (result.signal != 0 && (result.signal_first || !result.first_failure))
    return finish_stopped(result.signal, base::str("signal ", result.signal));
  if (!result.first_failure) {
    record_.state = "succeeded";
    record_.ended = base::wall_seconds();
    keep();
    return console_.is_incomplete() ? 1 : 0;  // for this program; the run itself has succeeded
  }
  const Ending& ending = *result.endings[static_cast<size_t>(*result.first_failure)];
  return finish_failed(exit_status(ending),
                       base::str(what, what.empty() ? "" : ": ",
                                 describe_failure(result, what.empty() ? record_.attempt : kSetup)));
}

int Client::finish_stopped(int signal, const std::string& cause) {
  console_.finish(2);
  record_.state = "stopped";
  record_.cause = cause;
  record_.exit_status = signal == SIGINT ? 130 : signal == 0 ? 0 : 143;
  record_.ended = base::wall_seconds();
  keep();
  for (const auto& ending : record_.endings)
    if (ending && ending->reason == "lost") say("not everything could be ended: " + ending->detail);
  say(base::str("run ", record_.job.id, " was stopped; logs: ", run_folder(record_.job.id)));
  return record_.exit_status;
}

int Client::finish_failed(int status, const std::string& cause) {
  record_.state = "failed";
  record_.cause = cause.substr(0, cause.find("\n"));
  record_.exit_status = status;
  record_.ended = base::wall_seconds();
  keep();
  say(base::str("run ", record_.job.id, " failed: ", cause));
  return status;
}

// Describes the first failure with the end of its log, then the others in the order of their time.
std::string Client::describe_failure(const RoundResult& result, int attempt_or_setup) const {
  const Job& job = record_.job;
  const int first = *result.first_failure;
  const Ending& ending = *result.endings[static_cast<size_t>(first)];
  const std::string log = log_of(job, first, attempt_or_setup);
  std::string text = base::str(name_of(job, first), ": ", describe(job, ending));
  const std::string end = last_lines(log, kFailureLines);
  for (const std::string& line : base::split(base::trim(end), '\n')) text += "\n    " + line;
  text += base::str("\n  ", end.empty() ? "(nothing is in " : "(the end of ", last_file_of(log), ")");
  std::vector<int> others;
  for (size_t i = 0; i < result.endings.size(); ++i)
    if (static_cast<int>(i) != first && result.endings[i] && is_failure(*result.endings[i]))
      others.push_back(static_cast<int>(i));
  const auto time = [&](int worker) { return result.endings[static_cast<size_t>(worker)]->time; };
  std::sort(others.begin(), others.end(), [&](int a, int b) { return time(a) < time(b); });
  for (const int worker : others) {
    char after[32];
    std::snprintf(after, sizeof after, "%.1f s later ", time(worker) - ending.time);
    text += base::str("\n  ", after, name_of(job, worker), ": ",
                      describe(job, *result.endings[static_cast<size_t>(worker)]));
  }
  return text + lost_slices(job, result.endings);
}

// Large runs write their record at most twice a second while workers end.
void Client::keep(bool always) {
  const double now = base::monotonic_seconds();
  if (!always && record_.job.workers.size() > 64 && now - kept_ < 0.5) return;
  kept_ = now;
  if (const auto saved = save(record_); !saved) say(saved.error().what());
}

std::string describe_commands(const Job& job) {
  std::string text;
  const int port = job.port != 0 ? job.port : free_port();
  if (!job.program.path.empty())
    text += base::str(
        "# --program: this script on each host, followed by the parts of the archive that it needs\n",
        program_script(job.program), " <", quote(job.program.path), "\n\n");
  if (!job.sync.empty()) {
    const std::string archive = base::join_path(run_folder(job.id), "sync.tar");
    text += base::str("# --sync: this lists the folder here\n", quote_all(list_command(job)),
                      "\n# on each host, this script answers what it lacks of the list\n",
                      sync_script(job, "ask", "gz"), " <", quote(archive + ".list"),
                      "\n# once here (or with zstd, if the hosts have it)\n",
                      quote_all(pack_command(job, archive, "gz")),
                      "\n# then on each host that lacks something: the same script with step=take, and <",
                      quote(archive), "\n\n");
    if (!job.sync_bucket.empty())
      text += base::str("# --sync-bucket: what several hosts read goes to ", job.sync_bucket,
                        " instead, and the scripts have its address as object=\n\n");
  }
  for (size_t i = 0; i < job.workers.size(); ++i) {
    const Worker& worker = job.workers[i];
    text += base::str("# worker ", i, slice_text(job, static_cast<int>(i)), " on ", worker.address,
                      ", started by a supervisor that this command starts:\n",
                      quote_all(shell_command(job, worker)), "\n");
    if (!job.setup.empty() && worker.local_index == 0)
      text += base::str("# --setup, before any worker is started\n",
                        script_of(job, static_cast<int>(i), kSetup, port, ""), "\n");
    text += base::str("# the worker\n", script_of(job, static_cast<int>(i), 0, port, kKeyShown), "\n\n");
  }
  return text;
}

}  // namespace sluice::pod
