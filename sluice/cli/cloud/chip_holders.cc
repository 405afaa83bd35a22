#include "sluice/cli/cloud/chip_holders.h"

#include <cctype>
#include <cstdio>
#include <map>

#include "sluice/base/clock.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/pod/ssh/quote.h"
#include "sluice/provision/remote/shell.h"

namespace sluice::cli {
namespace {

constexpr double kAnswerSeconds = 60;

void say(const HolderHosts& hosts, size_t at, const std::string& text) {
  std::fprintf(stderr, "sluice %s: %s %s: %s\n", hosts.verb.c_str(), hosts.noun.c_str(),
               hosts.labels[at].c_str(), base::printable(text).c_str());
}

// Returns the text that a host sent instead of an answer, quoted, or Sluice's reason why it was not reached.
std::string words_of(const provision::Answer& answer) {
  return answer.unreachable ? answer.messages : pod::in_quotes(answer.messages);
}

// Ends the processes on one host; returns false if some of them stay.
bool end_processes(const HolderHosts& hosts, size_t at, const std::vector<int>& processes, int grace) {
  pod::Job one = hosts.job;
  one.workers = {hosts.job.workers[at]};
  const auto answers =
      provision::run_scripts(one, provision::end_holders_script(processes, grace), kAnswerSeconds + grace);
  if (answers.front().status != 0) {
    say(hosts, at, words_of(answers.front()));
    return false;
  }
  bool all_ended = true;
  for (const std::string& line : base::split(answers.front().output, '\n')) {
    if (!line.starts_with("left ")) continue;
    say(hosts, at, base::str("process ", pod::in_quotes(line.substr(5)), " does not end"));
    all_ended = false;
  }
  return all_ended;
}

}  // namespace

std::vector<std::optional<provision::HostUse>> look_at_holders(const HolderHosts& hosts) {
  const auto answers =
      provision::run_scripts(hosts.job, provision::look_for_holders_script(), kAnswerSeconds);
  std::vector<std::optional<provision::HostUse>> uses;
  for (size_t i = 0; i < answers.size(); ++i) {
    auto use = provision::parse_host_use(answers[i].output);
    const bool answered = answers[i].status == 0 && use;
    uses.push_back(answered ? std::optional(*use) : std::nullopt);
    if (!answered) say(hosts, i, answers[i].status == 0 ? use.error().what() : words_of(answers[i]));
  }
  return uses;
}

void print_holder_header(const HolderHosts& hosts) {
  std::string noun = hosts.noun;
  for (char& c : noun) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::printf("%-6s %8s %-10s %-9s %-22s %s\n", noun.c_str(), "PROCESS", "USER", "STARTED", "HOLDS",
              "COMMAND");
}

void print_holder(const std::string& label, const provision::Holder& holder) {
  std::printf("%-6s %8d %-10s %-9s %-22s %s\n", label.c_str(), holder.process,
              base::printable(holder.user).c_str(), base::local_time(holder.started).c_str(),
              base::printable(base::join(holder.devices, ",")).c_str(),
              base::printable(holder.command).c_str());
}

int end_own_holders(const HolderHosts& hosts, const std::function<bool(size_t count)>& may_end, int grace) {
  const auto uses = look_at_holders(hosts);
  std::map<size_t, std::vector<int>> own;
  size_t count = 0, others = 0, silent = 0;
  print_holder_header(hosts);
  for (size_t i = 0; i < uses.size(); ++i) {
    silent += uses[i] ? 0 : 1;
    if (!uses[i]) continue;
    for (const auto& holder : uses[i]->holders) {
      print_holder(hosts.labels[i], holder);
      if (holder.own) own[i].push_back(holder.process);
      ++(holder.own ? count : others);
    }
  }
  std::fflush(stdout);
  const char* verb = hosts.verb.c_str();
  if (others > 0) std::fprintf(stderr, "sluice %s: %zu of these are other users' and stay\n", verb, others);
  if (own.empty()) {
    std::fprintf(stderr, "sluice %s: no process of yours holds a chip\n", verb);
    return silent == 0 ? 0 : 1;
  }
  if (!may_end(count)) {
    std::fprintf(stderr, "sluice %s: nothing was ended: --yes ends what is yours\n", verb);
    return 1;
  }
  bool all_ended = silent == 0;
  for (const auto& [at, processes] : own) all_ended &= end_processes(hosts, at, processes, grace);
  return all_ended ? 0 : 1;
}

}  // namespace sluice::cli
