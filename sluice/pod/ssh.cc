#include "sluice/pod/ssh.h"

#include "sluice/base/strings.h"

namespace sluice::pod {
namespace {

// No quote, backslash or newline inside: any login shell hands it on to sh as it is. dd takes no byte too
// many: it reads one block, or where it does not know how, byte by byte.
constexpr char kBootstrap[] =
    "read n && { payload=$(dd bs=$n count=1 iflag=fullblock 2>/dev/null) || "
    "payload=$(dd bs=1 count=$n 2>/dev/null); } && eval \"$payload\"";

struct Cause {
  const char* message;  // as OpenSSH writes it
  const char* advice;
  bool passing;
};

constexpr char kChanged[] = "REMOTE HOST IDENTIFICATION HAS CHANGED";

// The first that fits counts: after a changed key ssh says that the verification failed, too.
constexpr Cause kCauses[] = {
    {kChanged, "its host key has changed: if that is right, remove the old one", false},
    {"Host key verification failed",
     "its host key is unknown or another than before: connect once with `ssh HOST`, "
     "or pass --ssh-option StrictHostKeyChecking=accept-new",
     false},
    {"Permission denied",
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

// The line with the known message, else the last one.
std::string telling_line(const std::string& messages, const Cause* cause) {
  std::string last;
  for (const std::string& line : base::split(messages, '\n')) {
    const std::string text(base::trim(line));
    if (cause != nullptr && text.find(cause->message) != std::string::npos) return text;
    if (!text.empty()) last = text;
  }
  return last.empty() ? "ssh said nothing" : last;
}

}  // namespace

std::vector<std::string> shell_command(const Job& job, const Worker& worker) {
  if (worker.host.empty()) return {"sh", "-c", kBootstrap};
  std::vector<std::string> command = {"ssh", "-T"};
  if (!job.ssh.config.empty()) command.insert(command.end(), {"-F", job.ssh.config});
  if (!job.ssh.user.empty() && worker.host.find('@') == std::string::npos)
    command.insert(command.end(), {"-l", job.ssh.user});
  // ssh takes the first value that it meets, so the user's own win.
  for (const std::string& option : job.ssh.options) command.insert(command.end(), {"-o", option});
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=10", "ServerAliveCountMax=3"})
    command.insert(command.end(), {"-o", option});
  command.insert(command.end(), {"--", worker.host, base::str("exec sh -c '", kBootstrap, "'")});
  return command;
}

std::string framed(const std::string& script) { return base::str(script.size(), '\n', script); }

std::string explain_ssh(const std::string& host, const std::string& messages) {
  const Cause* cause = cause_of(messages);
  const std::string line = telling_line(messages, cause);
  if (cause != nullptr && cause->message == kChanged) {
    // ssh names the command that removes it.
    const size_t command = messages.find("ssh-keygen -f");
    return base::str("cannot reach ", host, " by ssh: ", kChanged, " (", cause->advice, " with `",
                     command == std::string::npos
                         ? "ssh-keygen -R " + host
                         : std::string(base::trim(base::split(messages.substr(command), '\n')[0])),
                     "`)");
  }
  return base::str("cannot reach ", host, " by ssh: ", line,
                   cause == nullptr ? std::string() : base::str(" (", cause->advice, ")"));
}

bool is_passing(const std::string& messages) {
  const Cause* cause = cause_of(messages);
  return cause == nullptr || cause->passing;
}

}  // namespace sluice::pod
