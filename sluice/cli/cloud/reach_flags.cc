#include "sluice/cli/cloud/reach_flags.h"

#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/verb.h"
#include "sluice/provision/remote/workers.h"

namespace sluice::cli {

// clang-format off
Flag tpu_row(TpuFlags& flags, const std::string& help) {
  return Flag{"", "NAME", &flags.name, "", help}.required();
}

std::vector<Flag> place_rows(TpuFlags& flags) {
  return {
      Flag{"Where", "--zone", &flags.zone, "", "Zone of the TPU; default: looked for in all"},
      Flag{"Where", "--project", &flags.project, "", "Google Cloud project; default: $SLUICE_GOOGLE_PROJECT, $GOOGLE_CLOUD_PROJECT, gcloud's, the credentials' or the machine's"},
  };
}

Flag worker_row(TpuFlags& flags, const std::string& fallback) {
  flags.worker = fallback;
  return {"Where", "--worker", &flags.worker, "", "Which workers: all, 0 or 0,2-5"};
}

std::vector<Flag> ssh_rows(TpuFlags& flags) {
  return {
      Flag{"Where", "--ssh-user", &flags.user, "", "User on the workers; default: this terminal's"},
      Flag{"Where", "--ssh-key", &flags.key, "", "Private key; made if it is not there"}
          .shown("~/.ssh/google_compute_engine"),
      Flag{"Where", "--ssh-option", RepeatedText{&flags.options}, "", "As ssh's -o: NAME=VALUE; repeatable"},
  };
}
// clang-format on

void add_reach_flags(CLI::App& app, TpuFlags& flags, const std::string& fallback) {
  add_flags(app, {worker_row(flags, fallback)});
  add_flags(app, place_rows(flags));
  add_flags(app, ssh_rows(flags));
}

std::string project_or_default(const std::string& given) {
  if (given.empty()) return base::value_or_throw(google::default_project());
  value_or_usage(provision::check_project_id(given));
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
  constexpr int kMaxSlices = 4096;
  if (!flags.slices.empty())
    options.slices = value_or_usage(provision::parse_workers(flags.slices, kMaxSlices));
  auto reached = provision::reach_slices(cloud, base::split(flags.name, ','), options);
  if (!reached) throw_error(reached.error());
  auto numbers =
      value_or_usage(provision::parse_workers(flags.worker, static_cast<int>(reached->hosts.size())));
  return {std::move(*reached), std::move(numbers)};
}

pod::Job job_of(const ChosenWorkers& chosen, const TpuFlags& flags) {
  pod::Job job;
  job.ssh.options = flags.options;
  provision::fill_job(job, chosen.reached, chosen.numbers, 1);
  return job;
}

}  // namespace sluice::cli
