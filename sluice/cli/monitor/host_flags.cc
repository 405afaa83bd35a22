#include "sluice/cli/monitor/host_flags.h"

#include "sluice/base/text/join.h"
#include "sluice/cli/verb.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::cli {
namespace {

constexpr char kFindSluice[] = R"SH(
programs="${XDG_CACHE_HOME:-$HOME/.cache}/sluice/programs"
for sluice in "$programs/$sum/bin/sluice" "$(command -v sluice)" "$HOME/.local/bin/sluice" \
  "$(ls -td "$programs"/*/bin/sluice 2>/dev/null | head -n 1)"; do
  [ -f "$sluice" ] && [ -x "$sluice" ] && exec "$sluice" "$@"
done
echo "there is no sluice on PATH, and none that \`sluice run --program\` has brought: install it there, or bring it \
with \`sluice run --program ARCHIVE --hosts HOST -- true\`" >&2
exit 127
)SH";

}  // namespace

void add_host_flags(CLI::App& app, HostFlags& flags) {
  app.add_option("--hosts", flags.hosts,
                 "Use these hosts, by ssh: a,user@b,node[01-04], or @FILE with a name on each line")
      ->group("Where");
  app.add_option("--tpu", flags.tpu.name, "Use the hosts of this Cloud TPU")->group("Where");
  app.add_option("--ssh-config", flags.ssh_config, "Use this configuration file of ssh with --hosts")
      ->group("Where");
  add_reach_flags(app, flags.tpu, "all");
}

std::optional<pod::Job> hosts_of(const HostFlags& flags, const std::string& verb) {
  if (!flags.hosts.empty() && !flags.tpu.name.empty())
    throw Usage("--hosts and --tpu are two places: give one");
  if (!flags.tpu.name.empty()) {
    if (!flags.ssh_config.empty())
      throw Usage("--ssh-config: with --tpu the configuration is made of what the TPU says");
    WorkerSession session(verb, flags.tpu.project);
    return job_of(reach_workers(session.cloud(), flags.tpu), flags.tpu);
  }
  if (flags.hosts.empty()) return std::nullopt;
  pod::Job job;
  job.workers = value_or_usage(pod::remote_workers(flags.hosts));
  job.ssh.config = flags.ssh_config;
  job.ssh.user = flags.tpu.user;
  job.ssh.options = flags.tpu.options;
  return job;
}

std::string sluice_script(const std::vector<std::string>& words, const std::string& program) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(pod::quote(word));
  return base::str("sum=", pod::quote(program.empty() ? "none" : program), "\nset -- ",
                   base::join(quoted, " "), '\n', kFindSluice);
}

}  // namespace sluice::cli
