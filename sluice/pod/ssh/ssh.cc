#include "sluice/pod/ssh/ssh.h"

#include <algorithm>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::pod {
namespace {

// Contains no quote, backslash or newline: any login shell passes it to sh unchanged. dd never reads too many
// bytes: it reads one block or, if it does not support that, byte by byte.
constexpr char kBootstrap[] =
    "read n && { payload=$(dd bs=$n count=1 iflag=fullblock 2>/dev/null) || "
    "payload=$(dd bs=1 count=$n 2>/dev/null); } && eval \"$payload\"";

struct Cause {
  const char* message;  // in OpenSSH's words
  const char* advice;
  bool passing;
};

constexpr char kChanged[] = "REMOTE HOST IDENTIFICATION HAS CHANGED";
constexpr char kDenied[] = "Permission denied";

// The first match counts: after a changed key ssh also reports that the verification failed.
constexpr Cause kCauses[] = {
    {kChanged, "its host key has changed: if that is right, remove the old one", false},
    {"Host key verification failed",
     "its host key is unknown or another than before: connect once with `ssh HOST`, "
     "or pass --ssh-option StrictHostKeyChecking=accept-new",
     false},
    {"bad permissions",
     "ssh does not use a key file that others may read: chmod 600 that file, and chmod 700 its folder",
     false},
    {kDenied,
     "the host does not accept this user's keys: check --ssh-user and the keys "
     "(`ssh-add -l`); passwords cannot be asked for",
     false},
    {"Too many authentication failures",
     "the agent offers too many keys: pass --ssh-option IdentitiesOnly=yes", false},
    {"Could not resolve hostname", "no such name: check --hosts and the ssh configuration", false},
    {"Bad configuration option", "check --ssh-option and the ssh configuration", false},
    {"Connection refused", "nothing listens there: is sshd running, and on that port?", true},
    {"No route to host", "check that the machine runs and that the network reaches it", true},
    {"Network is unreachable", "check the network and the VPN", true},
    {"timed out", "the machine does not answer: check that it runs and that the firewall lets ssh through",
     true},
    {"not responding", "the machine no longer answers", true},
    {"kex_exchange_identification",
     "sshd dropped the connection: too many at once? Lower --ssh-parallel, or raise "
     "MaxStartups there",
     true},
    {"closed by", "the other side ended the connection", true},
    {"Connection reset", "the other side ended the connection", true},
    {"Broken pipe", "the connection broke", true},
};

const Cause* cause_of(const std::string& messages) {
  for (const Cause& cause : kCauses)
    if (messages.find(cause.message) != std::string::npos) return &cause;
  return nullptr;
}

// Returns the line with the known message, else the last one.
std::string telling_line(const std::string& messages, const Cause* cause) {
  std::string last;
  for (const std::string& line : base::split(messages, '\n')) {
    const std::string text(base::trim(line));
    if (cause != nullptr && text.find(cause->message) != std::string::npos) return text;
    if (!text.empty()) last = text;
  }
  return last;
}

// Adds the user's options for the connection to the command.
std::vector<std::string> user_options(std::vector<std::string> command, const Job& job,
                                      const Worker& worker) {
  if (!job.ssh.config.empty()) command.insert(command.end(), {"-F", job.ssh.config});
  if (!job.ssh.user.empty() && worker.host.find('@') == std::string::npos)
    command.insert(command.end(), {"-l", job.ssh.user});
  for (const std::string& option : job.ssh.options) command.insert(command.end(), {"-o", option});
  return command;
}

// Returns the output of `ssh -G`: its configuration for the worker's host, without anything from the host.
// Empty if it fails.
std::string configuration_of(const Job& job, const Worker& worker) {
  constexpr double kSeconds = 5;
  std::vector<std::string> ask = user_options({"ssh", "-G"}, job, worker);
  ask.insert(ask.end(), {"--", worker.host});
  const auto told = base::run_process(ask, {}, kSeconds);
  return told && told->status.code() == 0 ? told->output : "";
}

std::vector<std::string> values_of(const std::string& configuration, const std::string& key) {
  std::vector<std::string> values;
  for (const std::string& line : base::split(configuration, '\n'))
    if (line.starts_with(key + " ")) values.push_back(line.substr(key.size() + 1));
  return values;
}

std::string value_of(const std::string& configuration, const std::string& key) {
  const auto values = values_of(configuration, key);
  return values.empty() ? "" : values.front();
}

// Returns what to do about a refused key. ssh does not report missing key files unless it is asked for every
// detail.
std::string advice_on_keys(const Job& job, const Worker& worker, const Cause& cause) {
  const std::string facts = configuration_of(job, worker);
  const std::vector<std::string> files = values_of(facts, "identityfile");
  const bool has_agent =
      base::environment("SSH_AUTH_SOCK").has_value() && value_of(facts, "identitiesonly") != "yes";
  const auto is_there = [](const std::string& file) {
    return file.find('%') != std::string::npos || base::path_exists(base::expand_home(file));
  };
  if (files.empty() || has_agent || std::any_of(files.begin(), files.end(), is_there)) return cause.advice;
  return base::str(
      "there is no key to show: ", base::join(files, ", "),
      files.size() == 1 ? " does not exist" : " do not exist",
      "; make one with `ssh-keygen -t ed25519`, or name yours with --ssh-option IdentityFile=FILE");
}

// Returns the command that makes ssh forget the key of the worker's host, by the configuration here.
std::string forget_command(const Job& job, const Worker& worker) {
  const std::string facts = configuration_of(job, worker);
  std::string name = value_of(facts, "hostkeyalias");
  if (name.empty()) {
    const std::string host = value_of(facts, "hostname"), port = value_of(facts, "port");
    name = host.empty() ? worker.host.substr(worker.host.find('@') + 1) : host;
    if (!port.empty() && port != "22") name = base::str("[", name, "]:", port);
  }
  const std::string files = value_of(facts, "userknownhostsfile");
  const std::string file = files.substr(0, files.find(' '));  // ssh adds keys to the first file
  return base::str("ssh-keygen ", file.empty() ? "" : base::str("-f ", quote(base::expand_home(file)), " "),
                   "-R ", quote(name));
}

}  // namespace

std::vector<std::string> shell_command(const Job& job, const Worker& worker) {
  if (worker.host.empty()) return {"sh", "-c", kBootstrap};
  std::vector<std::string> command = user_options({"ssh", "-T"}, job, worker);
  // ssh uses the first value of an option, so the user's own win. LogLevel hides the host's banner.
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=10",
                             "ServerAliveCountMax=3", "LogLevel=ERROR"})
    command.insert(command.end(), {"-o", option});
  command.insert(command.end(), {"--", worker.host, base::str("exec sh -c '", kBootstrap, "'")});
  return command;
}

std::string framed(const std::string& script) { return base::str(script.size(), '\n', script); }

std::string explain_ssh(const Job& job, const Worker& worker, const std::string& messages) {
  const Cause* cause = cause_of(messages);
  const std::string start = base::str("cannot reach ", worker.host, " by ssh: ");
  if (cause != nullptr && cause->message == kChanged)
    return base::str(start, kChanged, " (", cause->advice, " with `", forget_command(job, worker), "`)");
  const std::string line = telling_line(messages, cause);
  const std::string advice = cause == nullptr            ? ""
                             : cause->message == kDenied ? advice_on_keys(job, worker, *cause)
                                                         : cause->advice;
  return base::str(start, line.empty() ? "ssh said nothing" : in_quotes(line),
                   cause == nullptr ? std::string() : base::str(" (", advice, ")"));
}

bool is_passing(const std::string& messages) {
  const Cause* cause = cause_of(messages);
  return cause == nullptr || cause->passing;
}

}  // namespace sluice::pod
