// sluice task
#include <algorithm>
#include <memory>

#include "sluice/base/files/file.h"
#include "sluice/cli/cloud/log_copy.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/verbs.h"
#include "sluice/cloud/storage.h"
#include "sluice/pod/environment.h"
#include "sluice/pod/tpu_grid.h"
#include "sluice/provision/environment/names.h"
#include "sluice/provision/remote/tasks.h"

namespace sluice::cli {
namespace {

struct TaskFlags {
  TpuFlags tpu;
  std::string task, file = provision::kSettingsFile, log_bucket;
  pod::Job job;
  bool dry_run = false;
};

// Sets CHECKPOINT for the command to the latest checkpoint in the environment's bucket.
void add_checkpoint(pod::Job& job, const std::string& bucket) {
  cloud::Storage* storage = base::value_or_throw(cloud::Storage::shared());
  const auto objects = base::value_or_throw(storage->list(bucket, ""));
  const std::string checkpoint = provision::latest_checkpoint(bucket, objects);
  if (checkpoint.empty())
    throw_error(
        Code::kNotFound,
        base::str("there is no checkpoint in gs://", bucket,
                  " to resume from (neither an object `last`, as "
                  "`sluice train --logdir gs://…` writes it, nor a name with checkpoint or ckpt in it)"));
  std::fprintf(stderr, "sluice task: resuming from %s\n", checkpoint.c_str());
  job.environment.emplace_back("CHECKPOINT", checkpoint);
}

// Connects to the workers of the environment's TPU.
ChosenWorkers reach_environment(provision::Cloud& cloud, const TaskFlags& flags) {
  try {
    return reach_workers(cloud, flags.tpu);
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
    throw_error(Code::kNotFound, base::str(error.what(), ": `sluice env apply ", flags.file, "` makes it"));
  }
}

int run_task(TaskFlags& flags) {
  const auto settings = base::value_or_throw(
      provision::read_settings(base::expand_home(flags.file), {.read = false, .allowed = {}}));
  const std::string line = value_or_usage(provision::task_line(settings.tasks, flags.task));
  if (!settings.tpu)
    throw Usage(
        base::str(flags.file, " has no section [tpu]: tasks run on the workers of the environment's TPU"));
  flags.tpu.name = provision::tpu_name(settings.name);
  if (flags.tpu.project.empty()) flags.tpu.project = settings.project;
  pod::Job& job = flags.job;
  job.command = {"sh", "-c", line};
  if (settings.bucket) {
    const std::string bucket = provision::bucket_name(settings);
    job.environment.emplace_back("BUCKET", "gs://" + bucket);
    if (flags.task == "resume") add_checkpoint(job, bucket);
  } else if (flags.task == "resume") {
    throw Usage(base::str(flags.file, " has no section [bucket], where a checkpoint could be"));
  }
  WorkerSession session("task", flags.tpu.project, flags.dry_run);
  const ChosenWorkers chosen = reach_environment(session.cloud(), flags);
  job.ssh.options = flags.tpu.options;
  provision::fill_job(job, chosen.reached, chosen.numbers, 1);
  job.coordinator = job.workers.front().address;
  job.port = pod::kTpuProcessPort;
  return run_or_describe(job, flags.log_bucket, flags.dry_run);
}

// clang-format off
std::vector<Flag> task_rows(TaskFlags& f) {
  return {
      Flag{"", "TASK", &f.task, "", "install, test, update, run or resume"}.required(),
      Flag{"", "--file", &f.file, "", "The environment's file"},
      Flag{"", "--max-restarts", &f.job.max_restarts, "", "Start all workers again at most N times when one fails"}
          .zero_or_more(),
      Flag{"", "--detach", &f.job.detached, "", "Return when all workers run; they continue without this terminal"},
      Flag{"", "--dry-run", &f.dry_run, "", "Print the exact commands and scripts, and run nothing"},
      Flag{"", "--log-bucket", &f.log_bucket, "", "gs://BUCKET/PREFIX, or s3:// and az://: the logs go there too"},
  };
}
// clang-format on

Verb task_run_verb() {
  auto flags = std::make_shared<TaskFlags>();
  return {.name = "run",
          .help = "Run a task on all workers of the environment's TPU",
          .footer =
              "The command lines are in the environment's file, section [tasks]; sh runs them in the "
              "home folder of\n"
              "every worker, with BUCKET=gs://… of the environment. update without a line: git pull "
              "--ff-only in\n"
              "every repository there. resume without a line: run's line; CHECKPOINT is the latest one "
              "in the bucket.",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, task_rows(*flags));
                add_reach_flags(app, flags->tpu, "all");
              },
          .run = [flags] { return run_task(*flags); }};
}

}  // namespace

Verb task_verb() {
  return {.name = "task",
          .help = "The tasks of an environment: install, test, update, run, resume",
          .verbs = {task_run_verb()}};
}

}  // namespace sluice::cli
