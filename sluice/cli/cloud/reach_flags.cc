#include "sluice/cli/cloud/reach_flags.h"

#include <cstdio>

#include "sluice/base/file.h"
#include "sluice/base/printable.h"
#include "sluice/cli/verb.h"
#include "sluice/provision/remote/workers.h"

namespace sluice::cli {

void add_place_flags(CLI::App& app, TpuFlags& flags, const std::string& group) {
  app.add_option("--zone", flags.zone, "Zone of the TPU; default: looked for in all")->group(group);
  app.add_option(
         "--project", flags.project,
         "Google Cloud project; default: $SLUICE_GOOGLE_PROJECT, $GOOGLE_CLOUD_PROJECT, gcloud's, the "
         "credentials' or the machine's")
      ->group(group);
}

void add_worker_flag(CLI::App& app, TpuFlags& flags, const std::string& fallback, const std::string& group) {
  flags.worker = fallback;
  app.add_option("--worker", flags.worker, "Which workers: all, 0 or 0,2-5")->group(group);
}

void add_ssh_flags(CLI::App& app, TpuFlags& flags, const std::string& group) {
  app.add_option("--ssh-user", flags.user, "User on the workers; default: this terminal's")->group(group);
  app.add_option("--ssh-key", flags.key, "Private key; made if it is not there")
      ->default_str("~/.ssh/google_compute_engine")
      ->group(group);
  app.add_option("--ssh-option", flags.options, "As ssh's -o: NAME=VALUE; repeatable")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->group(group);
}

std::string project_or_default(const std::string& given) {
  if (given.empty()) return base::value_or_throw(google::default_project());
  if (const auto good = provision::check_project_id(given); !good) throw Usage(good.error().what());
  return given;
}

WorkerSession::WorkerSession(const std::string& verb, const std::string& project, bool dry_run) {
  google::ApiOptions options = base::value_or_throw(google::api_options_of_environment());
  options.dry_run = dry_run;
  const std::string chosen = project_or_default(project);
  api_ = std::make_unique<google::Api>(std::move(options));
  cloud_ = provision::make_cloud(*api_, chosen);
  cloud_->say = [verb](const std::string& line) {
    std::fprintf(stderr, "sluice %s: %s\n", verb.c_str(), base::printable(line).c_str());
  };
}

ChosenWorkers reach_workers(provision::Cloud& cloud, const TpuFlags& flags) {
  provision::ReachOptions options;
  options.zone = flags.zone;
  options.user = flags.user;
  options.key = flags.key.empty() ? flags.key : base::expand_home(flags.key);
  auto reached = provision::reach_slice(cloud, flags.name, options);
  if (!reached) throw_error(reached.error());
  auto numbers = provision::parse_workers(flags.worker, static_cast<int>(reached->hosts.size()));
  if (!numbers) throw Usage(numbers.error().what());
  return {std::move(*reached), std::move(*numbers)};
}

pod::Job job_of(const ChosenWorkers& chosen, const TpuFlags& flags) {
  pod::Job job;
  job.ssh.options = flags.options;
  provision::fill_job(job, chosen.reached, chosen.numbers, 1);
  return job;
}

}  // namespace sluice::cli
