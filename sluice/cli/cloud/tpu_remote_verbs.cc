// sluice tpu run | logs | attach, and the list of all verbs that act on workers
#include "sluice/cli/cloud/tpu_remote_verbs.h"

#include <memory>
#include <optional>

#include "sluice/base/result.h"
#include "sluice/cli/run_verb.h"
#include "sluice/pod/record.h"
#include "sluice/pod/runs.h"
#include "sluice/provision/remote/reach.h"

namespace sluice::cli {
namespace {

// Returns the latest run that this machine has started on the TPU.
std::string run_on(const std::string& name) {
  for (const pod::RunRecord& run : pod::list_runs())
    if (provision::is_config_of(run.job.ssh.config, name)) return run.job.id;
  throw_error(Code::kNotFound,
              base::str("no run on the TPU ", name, " is known on this machine (", pod::runs_folder(),
                        "); `sluice tpu ps ", name, "` shows what runs there"));
}

struct LatestRunFlags {
  std::string name;
  std::optional<int> worker;
  bool follow = false, raw = false;
};

Verb logs_verb() {
  auto flags = std::make_shared<LatestRunFlags>();
  return {.name = "logs",
          .help = "Print what the workers of the latest run on it wrote",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app,
                          {Flag{"", "NAME", &flags->name, "", "The TPU"}.required(),
                           one_worker_row(flags->worker), follow_row(flags->follow), raw_row(flags->raw)});
              },
          .run =
              [flags] {
                return base::value_or_throw(
                    pod::show_logs(run_on(flags->name), flags->worker, flags->follow, flags->raw));
              }};
}

Verb attach_verb() {
  auto flags = std::make_shared<LatestRunFlags>();
  return {
      .name = "attach",
      .help = "Show the output of the latest run on it from now on; Ctrl-C ends the run",
      .add_flags =
          [flags](CLI::App& app) {
            add_flags(app, {Flag{"", "NAME", &flags->name, "", "The TPU"}.required(), raw_row(flags->raw)});
          },
      .run = [flags] { return base::value_or_throw(pod::attach_run(run_on(flags->name), flags->raw)); }};
}

}  // namespace

std::vector<Verb> tpu_remote_verbs() {
  std::vector<Verb> verbs = tpu_ssh_verbs();
  verbs.insert(verbs.end(), {tpu_run_verb(), logs_verb(), attach_verb()});
  for (Verb& verb : tpu_process_verbs()) verbs.push_back(std::move(verb));
  return verbs;
}

}  // namespace sluice::cli
