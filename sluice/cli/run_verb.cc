// sluice run
#include <sys/prctl.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/quantity.h"
#include "sluice/cli/cloud/log_copy.h"
#include "sluice/cli/cloud/reach_flags.h"
#include "sluice/cli/run_verb.h"
#include "sluice/cli/verbs.h"
#include "sluice/estimate/tpu_slice.h"
#include "sluice/pod/client.h"
#include "sluice/pod/engines.h"
#include "sluice/pod/environment.h"
#include "sluice/pod/program.h"
#include "sluice/pod/runs.h"
#include "sluice/pod/ssh/sync_bucket.h"
#include "sluice/pod/tpu_grid.h"

namespace sluice::cli {
namespace {

// The firewall rule of Cloud TPU networks leaves these ports open. With one process per chip the TPU runtimes
// use the first port and the ones after it.
constexpr int kPort = 8476, kPortBesideChips = 8474;
static_assert(kPort == pod::kTpuProcessPort);

// The values of the flags: the job, and texts that are parsed later.
struct RunFlags {
  pod::Job job;
  int processes = 0, per_host = 0, slices = 0;
  std::string hosts, coordinator, tpu_topology, log_bucket;
  TpuFlags tpu;
  std::vector<std::string> environment;
  bool dry_run = false, end_with_parent = false;
  // For --sbatch and --jobset, which write a file for another engine.
  bool sbatch = false, jobset = false;
  int nodes = 0;
  std::string tpu_type, image, name = "sluice";
  pod::QueueLabels queue;
};

// clang-format off
// Places; a run takes only one of them.
std::vector<Flag> elsewhere_rows(RunFlags& f) {
  return {
      Flag{"Where", "--processes", &f.processes, "", "Start N processes on this machine", {1, 100'000}},
      Flag{"Where", "--hosts", &f.hosts, "", "One worker on each host, by ssh: a,user@b,node[01-04], or @FILE with a name on each line"},
      Flag{"Where", "--tpu", &f.tpu.name, "", "One worker on each host of this Cloud TPU, in its order; a,b: of several slices, which run one program"},
      Flag{"Where", "--ssh-config", &f.job.ssh.config, "", "Configuration file for ssh"},
  };
}

// These come after the rows of the TPU's place.
std::vector<Flag> where_rows(RunFlags& f) {
  return {
      worker_row(f.tpu, "all"),
      Flag{"Where", "--use-slices", &f.tpu.slices, "", "Use only these slices of a TPU: 0 or 0,2-3; default: all"},
      Flag{"Where", "--slices", &f.slices, "", "Divide --hosts among N TPU slices, which run one program; slice 0's hosts come first", {1, 4096}}
          .shown("1"),
      Flag{"Where", "--processes-per-host", &f.per_host, "", "Start N processes on each host (or on this machine), one for each TPU chip or GPU; default: one, which drives them all", {1, 1000}}
          .shown("1"),
      Flag{"Where", "--tpu-topology", &f.tpu_topology, "", "Set the slice's chips along each side, 4x4 or 2x2x4, or its name, v4-32, for one process per chip; default: $TPU_TOPOLOGY, $TPU_ACCELERATOR_TYPE, else as v2, v3, v5e and v6e have them"},
      Flag{"Where", "--coordinator", &f.coordinator, "", "Where the workers meet, HOST[:PORT], on worker 0; empty: its name in --hosts, port 8476 (8474 with one process per chip); on one machine: a free port"},
      Flag{"Where", "--ssh-user", &f.job.ssh.user, "", "User on the hosts"},
      Flag{"Where", "--ssh-key", &f.tpu.key, "", "Private key for a TPU; made if it is not there"}
          .shown("~/.ssh/google_compute_engine"),
      Flag{"Where", "--ssh-option", RepeatedText{&f.job.ssh.options}, "", "As ssh's -o: NAME=VALUE; repeatable"},
      Flag{"Where", "--ssh-parallel", &f.job.ssh.parallel, "", "Connections being made at once, at most"}
          .above_zero(),
  };
}

std::vector<Flag> what_rows(RunFlags& f) {
  return {
      Flag{"", "COMMAND", Words{&f.job.command}, "", "The command and its arguments, after --"},
      Flag{"What", "--env", RepeatedText{&f.environment}, "", "NAME=VALUE, or NAME for its value here; {worker}, {host}, {local} and {slice} stand for the worker's number, its host, its number there and its slice; repeatable"},
      Flag{"What", "--chdir", &f.job.folder, "", "Folder to start in; default: this one, on hosts the folder of --sync or the home folder"},
      Flag{"What", "--sync", &f.job.sync, "", "Copy this folder to each host first, to --chdir (default: sluice-run/NAME in the home folder)"},
      Flag{"What", "--sync-exclude", RepeatedText{&f.job.sync_exclude}, "", "Leave out what matches, as tar's --exclude; repeatable"},
      Flag{"What", "--sync-bucket", &f.job.sync_bucket, "", "Send what hosts lack once, to gs://BUCKET/PREFIX, where they read it (empty: to each host)"},
      Flag{"What", "--program", &f.job.program.path, "", "Put this archive (`make dist`) on each host first, where its checksum is not known yet; its bin/ comes first in PATH"},
      Flag{"What", "--setup", &f.job.setup, "", "A command line for sh, run once on each host before any worker starts"},
  };
}

std::vector<Flag> end_rows(RunFlags& f) {
  return {
      Flag{"End", "--max-restarts", &f.job.max_restarts, "", "Start all workers again at most N times when one fails; the command resumes by itself (sluice train --resume)"}
          .zero_or_more(),
      Flag{"End", "--heartbeat-timeout", &f.job.heartbeat_timeout, "", "Count a worker as hung when its heartbeat file is N seconds old, from its first heartbeat on; 0: never"}
          .zero_or_more(),
      Flag{"End", "--join-timeout", &f.job.join_timeout, "s", "Fail if not all workers have met after this long, and name the missing ones"}
          .above_zero().shown("300, as Sluice's programs have it"),
      Flag{"End", "--lease", &f.job.lease, "s", "End the workers when this client is gone for this long"}
          .above_zero(),
      Flag{"End", "--grace", &f.job.grace, "s", "Wait this long from SIGINT to SIGKILL, with SIGTERM in between"}
          .above_zero(),
      raw_row(f.job.raw, "End"),
      Flag{"End", "--detach", &f.job.detached, "", "Return when all workers run; they continue without this terminal"},
      Flag{"End", "--dry-run", &f.dry_run, "", "Print the exact commands and scripts, and run nothing"},
      Flag{"End", "--log-size", &f.job.log_size, "MiB", "Limit the space of each log, here and on its host: the beginning and the end are kept (0: keep everything)", {0, 1'048'576}},
      Flag{"End", "--log-bucket", &f.log_bucket, "", "gs://BUCKET/PREFIX, or s3:// and az://: the logs go there too, below the run's name, while they grow and at the end"},
      // For `sluice keep`, which starts this program: if keep is killed, the run ends as by SIGTERM.
      Flag{"", "--end-with-parent", &f.end_with_parent, "", ""}.hidden(),
  };
}

std::vector<Flag> engine_rows(RunFlags& f) {
  return {
      Flag{"Engines", "--sbatch", &f.sbatch, "", "Print a batch script for Slurm: sbatch runs it"},
      Flag{"Engines", "--jobset", &f.jobset, "", "Print a JobSet for Kubernetes on GKE: kubectl apply -f runs it on TPU nodes"},
      Flag{"Engines", "--nodes", &f.nodes, "", "Let the batch script use N nodes, each with --processes-per-host tasks", {1, 100'000}},
      Flag{"Engines", "--tpu-type", &f.tpu_type, "", "Run the JobSet on a slice of this type, such as v5litepod-16, or on several (2*v5p-32)"},
      Flag{"Engines", "--image", &f.image, "", "Run the JobSet's command in this container image"},
      Flag{"Engines", "--queue", &f.queue.name, "", "Let the JobSet wait for its nodes in this LocalQueue of Kueue"},
      Flag{"Engines", "--priority", &f.queue.priority, "", "Give the JobSet of --queue this WorkloadPriorityClass of the cluster"},
      Flag{"Engines", "--name", &f.name, "", "Name the script's job or the JobSet"},
  };
}
// clang-format on

// Returns the number of processes on this machine or on each host: one for each chip or GPU.
int processes_here(const RunFlags& flags) {
  if (flags.processes != 0 && flags.per_host > 1 && flags.processes != flags.per_host)
    throw Usage(base::str("--processes ", flags.processes, " --processes-per-host ", flags.per_host,
                          ": this machine is one host, so that they must be equal (or give one of them)"));
  return flags.processes != 0 ? flags.processes : flags.per_host;
}

// Returns "2x2x4" for "v4-32"; returns a text that is not a slice's name unchanged.
std::string sides_of_slice(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return text;
  const auto slice = estimate::find_tpu_slice(text);
  if (!slice)
    throw Usage(base::str("--tpu-topology ", text,
                          ": expected the chips along each side, as in 4x4 or 2x2x4, or a ",
                          "slice's name: ", slice.error().what()));
  return base::join(slice->bounds, "x");
}

// Returns the grid of chips, if there is one process for each. Hosts whose number of processes is not a TPU
// host's number of chips count as hosts with GPUs, unless the topology is given.
std::string choose_chips(const RunFlags& flags) {
  if (flags.per_host <= 1) {
    if (!flags.tpu_topology.empty())
      throw Usage("--tpu-topology is for one process per chip: give --processes-per-host too");
    return "";
  }
  std::string topology = flags.tpu_topology, source;
  for (const char* name : {"TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE"}) {
    if (!topology.empty()) continue;
    topology = base::environment(name).value_or("");
    source = base::str(" (from ", name, ", which the flag would overrule)");
  }
  const auto& workers = flags.job.workers;
  const int slices = flags.job.slices;
  if (topology.empty() && !pod::is_usual_slice((workers.back().host_index + 1) / slices, flags.per_host))
    return "";
  const auto grid = pod::chip_grid(sides_of_slice(topology), static_cast<int>(workers.size()) / slices);
  if (!grid) throw Usage(grid.error().what() + (topology.empty() ? "" : source));
  return *grid;
}

void choose_port(RunFlags& flags, int port) {
  pod::Job& job = flags.job;
  job.port = port;
  const int last = pod::kTpuProcessPort + flags.per_host - 1;
  if (!job.tpu_chips.empty() && job.port >= pod::kTpuProcessPort && job.port <= last)
    throw Usage(base::str("--coordinator ", flags.coordinator, ": with one process per chip the ports ",
                          pod::kTpuProcessPort, " to ", last, " are the TPU runtimes' own"));
}

// Throws Usage unless each of several slices has the same number of workers.
void check_slices(const pod::Job& job, const std::string& chosen) {
  std::vector<int> workers(static_cast<size_t>(job.slices));
  for (const pod::Worker& worker : job.workers) ++workers[static_cast<size_t>(worker.slice)];
  for (size_t slice = 1; slice < workers.size(); ++slice)
    if (workers[slice] != workers[0])
      throw Usage(base::str("--worker ", chosen, " takes ", base::counted(workers[0], "worker"),
                            " of one slice and ", workers[slice],
                            " of another: a run over several slices needs the same number of each. "
                            "--use-slices chooses whole slices"));
}

// Places the job on the hosts of a TPU, found by its name.
void place_on_tpu(RunFlags& flags) {
  WorkerSession session("run", flags.tpu.project, flags.dry_run);
  flags.tpu.user = flags.job.ssh.user;
  const ChosenWorkers chosen = reach_workers(session.cloud(), flags.tpu);
  provision::fill_job(flags.job, chosen.reached, chosen.numbers, std::max(1, flags.per_host));
  check_slices(flags.job, flags.tpu.worker);
  if (flags.per_host > 1 && flags.tpu_topology.empty() &&
      chosen.numbers.size() == chosen.reached.hosts.size())
    flags.tpu_topology = chosen.reached.slice.type;
}

void place_workers(RunFlags& flags) {
  pod::Job& job = flags.job;
  const bool on_tpu = !flags.tpu.name.empty();
  if (!flags.hosts.empty() && flags.processes != 0)
    throw Usage(
        "sluice run takes either --processes N or --hosts a,b,…; several on each host: "
        "--processes-per-host N");
  if (on_tpu && (!flags.hosts.empty() || flags.processes != 0))
    throw Usage("sluice run takes one of --tpu NAME, --hosts a,b,… and --processes N");
  if (flags.slices > 1 && flags.hosts.empty())
    throw Usage("--slices divides --hosts; a TPU's slices are known, and --tpu a,b names several");
  if (!on_tpu && flags.hosts.empty() && processes_here(flags) == 0)
    throw Usage("sluice run takes either --processes N, --hosts a,b,… or --tpu NAME");
  if (on_tpu) {
    place_on_tpu(flags);
  } else {
    job.workers = flags.hosts.empty()
                      ? pod::local_workers(processes_here(flags))
                      : value_or_usage(pod::remote_workers(flags.hosts, std::max(1, flags.per_host)));
    if (flags.slices > 1) value_or_usage(pod::divide_into_slices(job, flags.slices));
  }
  job.tpu_chips = choose_chips(flags);
  job.coordinator = job.workers.front().address;
  job.port = pod::is_local(job) ? 0 : job.tpu_chips.empty() ? kPort : kPortBesideChips;
  if (flags.coordinator.empty()) return;
  const auto place = base::split_host_and_port(flags.coordinator);
  if (!place) throw Usage(base::str("--coordinator ", place.error().what()));
  job.coordinator = place->host;
  if (place->port > 0) choose_port(flags, place->port);
}

void choose_folder(pod::Job& job) {
  namespace fs = std::filesystem;
  if (!job.sync_bucket.empty()) {
    if (job.sync.empty()) throw Usage("--sync-bucket is for --sync: add --sync DIR, or leave it out");
    value_or_usage(pod::check_sync_bucket(job.sync_bucket));
  }
  if (!job.sync.empty()) {
    if (pod::is_local(job)) throw Usage("--sync copies to --hosts; on one machine --chdir is enough");
    job.sync = fs::absolute(base::expand_home(job.sync)).lexically_normal().string();
    while (job.sync.size() > 1 && job.sync.ends_with('/')) job.sync.pop_back();
    if (!base::is_directory(job.sync)) throw Usage("--sync " + job.sync + " is not a folder");
    if (job.folder.empty()) job.folder = "sluice-run/" + fs::path(job.sync).filename().string();
  }
  if (pod::is_local(job))
    job.folder = job.folder.empty() ? fs::current_path().string()
                                    : fs::absolute(base::expand_home(job.folder)).lexically_normal().string();
  // A command starts in the home folder of its host.
  if (job.folder.starts_with("~/")) job.folder.erase(0, 2);
}

// Returns how often the line has a flag, which this verb may not have.
size_t count(const CLI::App& app, const char* flag) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  return option == nullptr ? 0 : option->count();
}

// Returns the file for another engine. Throws Usage for what only Sluice's own launcher can do.
std::string engine_file(const RunFlags& flags, const CLI::App& app) {
  const std::string engine = flags.sbatch ? "--sbatch" : "--jobset";
  if (flags.sbatch && flags.jobset) throw Usage("--sbatch and --jobset are for two engines: give one");
  for (const char* flag :
       {"--hosts",      "--processes",         "--tpu-topology", "--coordinator", "--ssh-user",
        "--ssh-config", "--ssh-option",        "--ssh-key",      "--use-slices",  "--tpu",
        "--zone",       "--project",           "--worker",       "--log-bucket",  "--sync",
        "--program",    "--heartbeat-timeout", "--lease",        "--grace",       "--raw",
        "--detach",     "--dry-run",           "--log-size",     "--sync-bucket"}) {
    if (count(app, flag) > 0)
      throw Usage(base::str(flag, " is for runs that sluice starts itself; with ", engine,
                            " the engine finds hosts, copies and ends workers"));
  }
  if (count(app, "--slices") > 0)
    throw Usage(base::str("--slices divides --hosts; ",
                          flags.sbatch ? "Slurm's processes have their own numbers"
                                       : "a JobSet over two slices has --tpu-type 2*v5p-32"));
  if (!flags.queue.priority.empty() && flags.queue.name.empty())
    throw Usage("--priority is one of a queue: give --queue NAME, too");
  if (flags.sbatch) {
    if (!flags.queue.name.empty())
      throw Usage("--queue is Kueue's, for --jobset; Slurm's is `sbatch --partition`");
    if (flags.nodes == 0) throw Usage("on how many nodes? --sbatch --nodes 4 -- COMMAND…");
    return value_or_usage(
        pod::sbatch_script(flags.job, flags.name, flags.nodes, std::max(1, flags.per_host)));
  }
  if (flags.tpu_type.empty() || flags.image.empty())
    throw Usage("a JobSet needs the slice and the container: --tpu-type v5litepod-16 --image IMAGE");
  if (flags.per_host > 1) throw Usage("--processes-per-host: on GKE one process drives all chips of a host");
  return value_or_usage(pod::jobset_manifest(flags.job, flags.name,
                                             value_or_usage(estimate::find_tpu_slices(flags.tpu_type)),
                                             flags.image, flags.queue));
}

// Throws Usage for flags that belong to other places or engines than this run's.
void check_flags(const RunFlags& flags, const CLI::App& app) {
  for (const char* flag : {"--nodes", "--tpu-type", "--image", "--queue", "--priority", "--name"}) {
    if (count(app, flag) > 0) throw Usage(base::str(flag, " is for --sbatch or --jobset"));
  }
  for (const char* flag : {"--worker", "--use-slices", "--zone", "--project", "--ssh-key"}) {
    if (flags.tpu.name.empty() && count(app, flag) > 0) throw Usage(base::str(flag, " is for --tpu NAME"));
  }
  if (!flags.tpu.name.empty() && !flags.job.ssh.config.empty())
    throw Usage(
        "--ssh-config cannot be used with --tpu: Sluice writes that configuration from the TPU's "
        "own facts; your ~/.ssh/config is read after it");
}

// Fills in what the job takes with it: its folder, the program, variables.
void complete_job(RunFlags& flags) {
  pod::Job& job = flags.job;
  choose_folder(job);
  if (!job.program.path.empty()) {
    const std::string path = base::expand_home(job.program.path);
    job.program = base::value_or_throw(pod::check_program(std::filesystem::absolute(path).string()));
  }
  for (const std::string& text : flags.environment)
    job.environment.push_back(value_or_usage(pod::parse_variable(text)));
}

int start_job(RunFlags& flags, const CLI::App& app) {
  pod::Job& job = flags.job;
  if (job.command.empty()) throw Usage("which command? sluice run --processes 4 -- COMMAND…");
  if (flags.sbatch || flags.jobset) {
    for (const std::string& text : flags.environment)
      job.environment.push_back(value_or_usage(pod::parse_variable(text)));
    std::fputs(engine_file(flags, app).c_str(), stdout);
    return 0;
  }
  check_flags(flags, app);
  if (flags.end_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  place_workers(flags);
  complete_job(flags);
  return run_or_describe(job, flags.log_bucket, flags.dry_run);
}

// `on_tpu`: the first argument names the TPU, and there are no other places.
std::function<void(CLI::App&)> adds_flags(std::shared_ptr<RunFlags> flags,
                                          std::shared_ptr<const CLI::App*> given, bool on_tpu) {
  return [flags, given, on_tpu](CLI::App& app) {
    *given = &app;
    if (on_tpu) add_flags(app, {tpu_row(flags->tpu)});
    if (!on_tpu) add_flags(app, elsewhere_rows(*flags));
    add_flags(app, place_rows(flags->tpu));
    for (const auto rows : {where_rows, what_rows, end_rows}) add_flags(app, rows(*flags));
    if (!on_tpu) add_flags(app, engine_rows(*flags));
  };
}

}  // namespace

void check_kept_run(const std::string& tpu, const std::vector<std::string>& arguments) {
  auto flags = std::make_shared<RunFlags>();
  auto given = std::make_shared<const CLI::App*>();
  CLI::App program("", "sluice");
  Action none;
  add_verbs(program,
            {{.name = "run",
              .help = "",
              .add_flags = adds_flags(flags, given, /*on_tpu=*/false),
              .run = [] { return 0; }}},
            none);
  std::vector<std::string> words = {"run", "--tpu", tpu};
  words.insert(words.end(), arguments.begin(), std::find(arguments.begin(), arguments.end(), "--"));
  try {
    parse_line(program, words);
  } catch (const CLI::Success&) {
    throw Usage("the flags of a run that is kept: sluice run --help");
  }
  if (!flags->job.command.empty())
    throw Usage(base::str("run: expected flags and then --, found \"", flags->job.command.front(), "\""));
  check_flags(*flags, **given);
  flags->job.workers.emplace_back().host = tpu;
  complete_job(*flags);
}

Verb tpu_run_verb() {
  auto flags = std::make_shared<RunFlags>();
  flags->job.sync_exclude = {".git"};
  auto given = std::make_shared<const CLI::App*>();
  return {.name = "run",
          .help = "Run a command on the workers, as `sluice run --tpu NAME`",
          .footer = "sluice tpu run NAME [--worker 0,2-5] -- COMMAND…",
          .add_flags = adds_flags(flags, given, /*on_tpu=*/true),
          .run = [flags, given] { return start_job(*flags, **given); }};
}

Verb run_verb() {
  auto flags = std::make_shared<RunFlags>();
  flags->job.sync_exclude = {".git"};
  auto given = std::make_shared<const CLI::App*>();  // to see which flags the line has
  auto verbs = run_finders();
  verbs.push_back(copy_logs_verb());
  return {.name = "run",
          .help = "Run a command on many processes or hosts",
          .footer =
              "sluice run --processes 4 -- COMMAND…            on this machine\n"
              "sluice run --hosts a,b,c,d -- COMMAND…          by ssh, one worker a host\n"
              "sluice run --tpu NAME -- COMMAND…               on a Cloud TPU, one worker a host\n"
              "sluice run --tpu a,b -- COMMAND…                on several slices\n"
              "sluice run --sbatch --nodes 4 -- COMMAND…       a script for Slurm\n"
              "sluice run --jobset --tpu-type v5litepod-16 --image IMAGE -- COMMAND…   for Kubernetes "
              "on GKE\n"
              "sluice run ls | attach | logs | stop [RUN]      find a run again\n"
              "Exit status: of the worker that failed first, 0 done, 1 a worker hung or was lost, 2 "
              "wrong usage, 130 Ctrl-C,\n"
              "143 terminated. Under Slurm, `srun COMMAND` needs no launcher.",
          .add_flags = adds_flags(flags, given, /*on_tpu=*/false),
          .run = [flags, given] { return start_job(*flags, **given); },
          .verbs = std::move(verbs)};
}

}  // namespace sluice::cli
