#include "sluice/cli/cloud/log_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/process.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/pod/client.h"
#include "sluice/pod/record.h"
#include "sluice/pod/runs.h"
#include "sluice/provision/remote/log_bucket.h"

namespace sluice::cli {
namespace {

constexpr double kSeconds = 15;    // between two copies
constexpr double kLastCopy = 300;  // how long the client waits for the end of the last copy
constexpr const char* kVerb = "copy-logs";

struct CopyFlags {
  std::string run, bucket;
  double seconds = kSeconds;
  bool alone = false;
};

// Detaches from the process that started this one, so that it copies until a detached run ends.
void leave() {
  if (::fork() != 0) ::_exit(0);
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
}

// Runs `run` while another process copies the logs, and returns `run`'s result. With an empty bucket it only
// runs `run`.
int with_log_copy(const std::string& bucket, const pod::Job& job, const std::function<int()>& run) {
  if (bucket.empty()) return run();
  value_or_usage(provision::log_target(bucket, job.id));
  base::value_or_throw(provision::begin_log_bucket(bucket, job.id, static_cast<int>(job.workers.size())));
  base::value_or_throw(base::make_private_folder(pod::run_folder(job.id)));
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "run", kVerb,
                                      job.id, bucket};
  if (job.detached) {
    command.push_back("--alone");
    base::value_or_throw(base::run_process(command, {}, kLastCopy));
    return run();
  }
  base::ProcessOptions how;
  how.own_session = true;  // Ctrl-C ends the run; the copy must still send its last lines
  base::Process copying = base::value_or_throw(base::Process::start(command, how));
  const int status = run();
  const base::Stopwatch waited;
  while (!copying.poll()) {
    if (waited.seconds() > kLastCopy) {
      std::fprintf(stderr, "sluice run: the logs are not all in %s after %g s; all of them are in %s\n",
                   bucket.c_str(), kLastCopy, pod::run_folder(job.id).c_str());
      return status;
    }
    ::usleep(20'000);
  }
  return status;  // the workers' status: their logs are also on this machine
}

}  // namespace

int run_or_describe(pod::Job& job, const std::string& log_bucket, bool dry_run) {
  job.id = pod::new_run_id();
  if (dry_run) {
    std::fputs(pod::describe_commands(job).c_str(), stdout);
    return 0;
  }
  return with_log_copy(log_bucket, job, [&] { return base::value_or_throw(pod::run_job(job)); });
}

Verb copy_logs_verb() {
  auto flags = std::make_shared<CopyFlags>();
  return {.name = kVerb,
          .help = "Copies the logs of a run to a bucket until it is over",
          .add_flags =
              [flags](CLI::App& app) {
                add_flags(app, {Flag{"", "RUN", &flags->run, "", ""}.required(),
                                Flag{"", "BUCKET", &flags->bucket, "", ""}.required(),
                                Flag{"", "--seconds", &flags->seconds, "", ""}.above_zero(),
                                {"", "--alone", &flags->alone, "", ""}});
              },
          .run =
              [flags] {
                if (flags->alone) leave();
                const auto copied = provision::copy_logs(flags->bucket, flags->run, flags->seconds);
                if (copied) return 0;
                std::fprintf(stderr, "sluice run: the logs are not all in %s: %s; all of them are in %s\n",
                             flags->bucket.c_str(), copied.error().what(),
                             pod::run_folder(flags->run).c_str());
                return 1;
              },
          .hidden = true};
}

}  // namespace sluice::cli
