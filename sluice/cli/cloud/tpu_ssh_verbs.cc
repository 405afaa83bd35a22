// sluice tpu ssh | scp
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/cloud/tpu_remote_verbs.h"
#include "sluice/pod/runs.h"
#include "sluice/pod/signals.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/pod/ssh/ssh.h"

namespace sluice::cli {
namespace {

constexpr double kFarewell = 10;  // seconds that the remote command has to end after Ctrl-C
constexpr size_t kCopiesAtOnce = 8;

// A script that runs $command so that it cannot outlive the connection: when the script's input ends, which
// also happens when this program or its machine dies, the command and its whole process group are ended.
constexpr char kContained[] = R"SH(exec 3<&0
setsid sh -c "$command" </dev/null 3<&- &
group=$!
(while IFS= read -r _; do :; done <&3
 kill -s TERM -- "-$group"; sleep 7; kill -s KILL -- "-$group") >/dev/null 2>&1 &
watch=$!
wait "$group"
status=$?
kill "$watch" 2>/dev/null
exit "$status")SH";

// Moves the user of "me@v4" to the user's own field.
void split_user(TpuFlags& flags) {
  const size_t at = flags.name.find('@');
  if (at == std::string::npos) return;
  flags.user = flags.name.substr(0, at);
  flags.name.erase(0, at + 1);
}

std::vector<std::string> ssh_command(const ChosenWorkers& chosen, const TpuFlags& flags) {
  std::vector<std::string> command = {"ssh", "-F", chosen.reached.ssh_config};
  for (const std::string& option : flags.options) command.insert(command.end(), {"-o", option});
  command.insert(command.end(), {"-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"});
  return command;
}

[[noreturn]] void become(std::vector<std::string> command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  throw_error(Code::kNotFound, base::str("cannot start ", command[0], ": ", std::strerror(errno)));
}

// Runs a command on one worker for a program that reads its output: unchanged bytes, no terminal.
int run_contained(std::vector<std::string> command, const std::string& host, const std::string& line) {
  const std::string script = base::str("command=", pod::quote(line), '\n', kContained);
  command.insert(command.begin() + 1, {"-T", "-o", "BatchMode=yes"});
  command.insert(command.end(), {"--", host, base::str("exec sh -c ", pod::quote(script))});
  pod::Signals signals(/*background=*/false);
  base::ProcessOptions how;
  how.own_session = true;
  how.input = base::ProcessOptions::Input::kPipe;
  base::Process ssh = base::value_or_throw(base::Process::start(command, how));
  base::Stopwatch since_signal;
  while (!ssh.poll()) {
    pollfd wake{signals.descriptor(), POLLIN, 0};
    ::poll(&wake, 1, 20);
    signals.drain();
    if (signals.count() > 0 && ssh.in() >= 0) {
      ssh.close_in();
      since_signal.restart();
    }
    if (ssh.in() < 0 && since_signal.seconds() > kFarewell) ssh.kill();
  }
  if (signals.count() > 0) return signals.first() == SIGINT ? 130 : 143;
  return ssh.poll()->code();
}

int run_ssh(TpuFlags& flags, const std::vector<std::string>& words) {
  split_user(flags);
  WorkerSession session("tpu ssh", flags.project);
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags);
  if (chosen.numbers.size() > 1) {
    if (words.empty()) throw Usage("a shell is for one worker; on several, say what to run: -- COMMAND…");
    pod::Job job = job_of(chosen, flags);
    job.command = words;
    job.coordinator = job.workers.front().address;
    job.id = pod::new_run_id();
    return base::value_or_throw(pod::run_job(std::move(job)));
  }
  const std::string host = chosen.reached.hosts[static_cast<size_t>(chosen.numbers.front())];
  std::vector<std::string> command = ssh_command(chosen, flags);
  const bool has_terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (words.empty()) {
    command.insert(command.end(), {"--", host});
    become(std::move(command));
  }
  const std::string line = words.size() == 1 ? words.front() : pod::quote_all(words);
  if (!has_terminal) return run_contained(std::move(command), host, line);
  // With a terminal on the worker, Ctrl-C and the end of the connection reach the command.
  command.insert(command.begin() + 1, "-t");
  command.insert(command.end(), {"--", host, line});
  become(std::move(command));
}

Verb ssh_verb() {
  auto flags = std::make_shared<TpuFlags>();
  auto words = std::make_shared<std::vector<std::string>>();
  return {.name = "ssh",
          .help = "A shell, or a command, on workers",
          .footer =
              "sluice tpu ssh NAME                          a shell on worker 0\n"
              "sluice tpu ssh NAME --worker all -- COMMAND…  on all, as `sluice tpu run` does\n"
              "One word after -- is a line for the shell there; several are a command and its arguments.",
          .add_flags =
              [flags, words](CLI::App& app) {
                add_flags(app, {tpu_row(*flags, "[USER@]NAME of the TPU"),
                                {"", "COMMAND", Words{words.get()}, "",
                                 "Run this command there; it comes after --"}});
                add_reach_flags(app, *flags, "0");
              },
          .run = [flags, words] { return run_ssh(*flags, *words); }};
}

// One end of a copy: "PATH", or "[USER@]NAME:PATH".
struct End {
  std::string name, path;  // no name: the path is on this machine
};

End end_of(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.substr(0, colon).find('/') != std::string::npos)
    return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

struct Copy {
  std::vector<End> from;
  End to;
};

Copy copy_of(const std::vector<std::string>& arguments, TpuFlags& flags) {
  if (arguments.size() < 2) throw Usage("sluice tpu scp FROM… TO, with NAME:PATH for what is on the TPU");
  Copy copy;
  for (const std::string& argument : arguments) copy.from.push_back(end_of(argument));
  copy.to = copy.from.back();
  copy.from.pop_back();
  flags.name = copy.to.name.empty() ? copy.from.front().name : copy.to.name;
  if (flags.name.empty()) throw Usage("which of these is on the TPU? Write NAME:PATH for it");
  for (const End& end : copy.from)
    if (end.name.empty() == copy.to.name.empty() || (!end.name.empty() && end.name != flags.name))
      throw Usage("sluice tpu scp copies from this machine to one TPU, or from one TPU to this machine");
  split_user(flags);
  return copy;
}

std::vector<std::string> scp_command(const Copy& copy, const ChosenWorkers& chosen, const TpuFlags& flags,
                                     int worker) {
  const std::string& host = chosen.reached.hosts[static_cast<size_t>(worker)];
  std::vector<std::string> command = {"scp", "-F",           chosen.reached.ssh_config, "-r", "-p", "-q",
                                      "-o",  "BatchMode=yes"};
  for (const std::string& option : flags.options) command.insert(command.end(), {"-o", option});
  command.emplace_back("--");
  const auto on_worker = [&](const End& end) { return end.name.empty() ? end.path : host + ":" + end.path; };
  for (const End& end : copy.from) command.push_back(on_worker(end));
  std::string to = on_worker(copy.to);
  // Several workers get a folder each.
  if (copy.to.name.empty() && chosen.numbers.size() > 1) {
    to = base::join_path(to, base::str("worker-", worker));
    base::value_or_throw(base::make_directories(to));
  }
  command.push_back(to);
  return command;
}

int run_scp(TpuFlags& flags, const std::vector<std::string>& arguments) {
  const Copy copy = copy_of(arguments, flags);
  WorkerSession session("tpu scp", flags.project);
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags);
  std::vector<std::pair<int, base::Process>> running;
  size_t next = 0;
  int failed = 0;
  while (next < chosen.numbers.size() || !running.empty()) {
    while (next < chosen.numbers.size() && running.size() < kCopiesAtOnce) {
      const int worker = chosen.numbers[next++];
      running.emplace_back(
          worker, base::value_or_throw(base::Process::start(scp_command(copy, chosen, flags, worker), {})));
    }
    const int worker = running.front().first;
    const base::ExitStatus status = running.front().second.wait();
    running.erase(running.begin());
    if (status.code() == 0) continue;
    ++failed;
    std::fprintf(stderr, "sluice tpu scp: worker %d: scp ended with %s\n", worker, status.text().c_str());
  }
  return failed == 0 ? 0 : 1;
}

Verb scp_verb() {
  auto flags = std::make_shared<TpuFlags>();
  auto arguments = std::make_shared<std::vector<std::string>>();
  return {.name = "scp",
          .help = "Copy files and folders to workers, or from them",
          .footer =
              "sluice tpu scp FILE FOLDER NAME:PATH --worker all   to all workers\n"
              "sluice tpu scp NAME:PATH . --worker 0,1            into worker-0 and worker-1 here",
          .add_flags =
              [flags, arguments](CLI::App& app) {
                add_flags(app, {Flag{"", "PATHS", Words{arguments.get()}, "",
                                     "FROM… TO; [USER@]NAME:PATH is on the TPU"}
                                    .required()});
                add_reach_flags(app, *flags, "0");
              },
          .run = [flags, arguments] { return run_scp(*flags, *arguments); }};
}

}  // namespace

std::vector<Verb> tpu_ssh_verbs() { return {ssh_verb(), scp_verb()}; }

}  // namespace sluice::cli
