#include "sluice/pod/engines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/pod/ssh/quote.h"

namespace sluice::pod {
namespace {

// Seconds between SIGTERM and the end: Sluice's trainer saves within 25.
constexpr int kSecondsToSave = 60;
// A pod's name consists of this name, the job's name, two numbers and five letters, at most 63 characters
// together.
constexpr size_t kLongestName = 40;

// Creates the run's key, without which no process can take part. It is created for each job on the machine
// where the job starts, so the file does not contain it. Slurm passes it on with the environment.
constexpr const char* kMakeKey =
    "SLUICE_RUN_KEY=${SLUICE_RUN_KEY:-$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n')}\n"
    "export SLUICE_RUN_KEY\n";

// Returns whether --env sets the key.
bool has_key(const Job& job) {
  return std::any_of(job.environment.begin(), job.environment.end(),
                     [](const auto& each) { return each.first == "SLUICE_RUN_KEY"; });
}

// Takes the key from a Secret of the cluster; without that Secret the job runs, and warns that it is open to
// the network.
std::string key_of_jobset(const std::string& name) {
  return base::str(
      "              - name: \"SLUICE_RUN_KEY\"\n"
      "                valueFrom:\n"
      "                  secretKeyRef:\n"
      "                    name: ",
      name,
      "-run-key\n"
      "                    key: key\n"
      "                    optional: true\n");
}

// Gives each pod its slice's place among several, for libtpu and Sluice: JobSet numbers the jobs that it
// makes of one template, and names the pods' hosts by these numbers.
std::string slices_of_jobset(const std::string& name, int slices) {
  return base::str(
      "              - name: \"MEGASCALE_NUM_SLICES\"\n"
      "                value: \"",
      slices,
      "\"\n"
      "              - name: \"MEGASCALE_SLICE_ID\"\n"
      "                valueFrom:\n"
      "                  fieldRef:\n"
      "                    fieldPath: metadata.annotations['jobset.sigs.k8s.io/job-index']\n"
      "              - name: \"MEGASCALE_COORDINATOR_ADDRESS\"\n"
      "                value: \"",
      name, "-slice-0-0.", name, "\"\n");
}

base::Status check(const Job& job, const std::string& name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || name.size() > kLongestName || !std::all_of(name.begin(), name.end(), is_plain) ||
      name.front() < 'a' || name.back() == '-')
    return base::fail(Code::kInvalidArgument, "expected a name of at most ", kLongestName,
                      " small letters, digits and dashes that begins with a letter, found \"", name, "\"");
  for (const auto& [variable, value] : job.environment) {
    for (const char* place : {"{worker}", "{host}", "{local}"}) {
      if (value.find(place) != std::string::npos)
        return base::fail(Code::kInvalidArgument, variable, "=", value, ": ", place,
                          " is filled in only by `sluice run`; let the command read the engine's variables");
    }
  }
  return {};
}

// Checks an object's name in Kubernetes, which is also used as a label's value.
base::Status check_kubernetes_name(const char* flag, const std::string& name) {
  constexpr size_t kLongest = 63;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool plain =
      std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || c == '-' || c == '.'; });
  if (name.empty() || (plain && name.size() <= kLongest && is_letter(name.front()) && is_letter(name.back())))
    return {};
  return base::fail(Code::kInvalidArgument, flag, ": expected a name of at most ", kLongest,
                    " small letters, digits, dashes and dots, found \"", name, "\"");
}

// Returns GKE's name for the nodes of a generation (the label cloud.google.com/gke-tpu-accelerator); "": GKE
// has no such nodes.
std::string accelerator_label(const estimate::TpuSlice& slice) {
  const std::string& generation = slice.generation->name;
  if (generation == "v3") return slice.hosts == 1 ? "tpu-v3-device" : "tpu-v3-slice";
  if (generation == "v4") return "tpu-v4-podslice";
  if (generation == "v5e") return "tpu-v5-lite-podslice";
  if (generation == "v5p") return "tpu-v5p-slice";
  if (generation == "v6e") return "tpu-v6e-slice";
  if (generation == "tpu7x") return "tpu7x";
  return "";
}

// Returns a string of YAML. Kubernetes replaces $(NAME) in commands and variables; $$ is a dollar.
std::string yaml(const std::string& text) {
  std::string escaped;
  for (char c : text) escaped += c == '$' ? "$$" : std::string(1, c);
  return nlohmann::json(escaped).dump();
}

// Returns the labels with which Kueue queues the JobSet, and holds it back until nodes are free.
std::string queue_labels(const QueueLabels& queue) {
  if (queue.name.empty()) return "";
  std::string text =
      base::str("  labels:\n    kueue.x-k8s.io/queue-name: ", nlohmann::json(queue.name).dump(), "\n");
  if (!queue.priority.empty())
    text += base::str("    kueue.x-k8s.io/priority-class: ", nlohmann::json(queue.priority).dump(), "\n");
  return text;
}

std::string manifest(const Job& job, const std::string& name, const estimate::TpuSlice& slice,
                     const std::string& image, const QueueLabels& queue) {
  std::vector<std::string> command = job.command;
  if (!job.setup.empty()) {
    const std::vector<std::string> shell = {"sh", "-c", "{\n" + job.setup + "\n} || exit\nexec \"$@\"", "sh"};
    command.insert(command.begin(), shell.begin(), shell.end());
  }
  const int hosts = slice.hosts / slice.slices;  // of each slice
  std::string text = base::str(
      "# Written by `sluice run --jobset`, for ", slice.name, ": ", base::counted(slice.hosts, "host"),
      " of ", slice.chips / slice.hosts, " chips. kubectl apply -f this file.\n",
      "# Once before it, so that nobody else on the cluster's network can take part in the run:\n"
      "#   kubectl create secret generic ",
      name, "-run-key --from-literal=key=$(openssl rand -hex 32)\n",
      "apiVersion: jobset.x-k8s.io/v1alpha2\n"
      "kind: JobSet\n"
      "metadata:\n"
      "  name: ",
      name, "\n", queue_labels(queue),
      "  annotations:\n"
      "    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool\n"
      "spec:\n"
      "  failurePolicy:\n"
      "    maxRestarts: ",
      job.max_restarts,
      "\n"
      "  replicatedJobs:\n"
      "  - name: slice\n"
      "    replicas: ",
      slice.slices,
      "\n"
      "    template:\n"
      "      spec:\n"
      "        completionMode: Indexed\n"
      "        parallelism: ",
      hosts,
      "\n"
      "        completions: ",
      hosts,
      "\n"
      "        backoffLimit: 0\n"
      "        template:\n"
      "          spec:\n"
      "            restartPolicy: Never\n"
      "            terminationGracePeriodSeconds: ",
      kSecondsToSave,
      "\n"
      "            nodeSelector:\n"
      "              cloud.google.com/gke-tpu-accelerator: ",
      accelerator_label(slice),
      "\n"
      "              cloud.google.com/gke-tpu-topology: ",
      base::join(slice.bounds, "x"),
      "\n"
      "            containers:\n"
      "            - name: worker\n"
      "              image: ",
      nlohmann::json(image).dump(),
      "\n"
      "              command:\n");
  for (const std::string& word : command) text += base::str("              - ", yaml(word), "\n");
  if (!job.folder.empty())
    text += base::str("              workingDir: ", nlohmann::json(job.folder).dump(), "\n");
  text += "              env:\n";
  if (!has_key(job)) text += key_of_jobset(name);
  if (slice.slices > 1) text += slices_of_jobset(name, slice.slices);
  for (const auto& [variable, value] : job.environment)
    text += base::str("              - name: ", nlohmann::json(variable).dump(),
                      "\n                value: ", yaml(value), "\n");
  return text + base::str(
                    "              resources:\n"
                    "                limits:\n"
                    "                  google.com/tpu: ",
                    slice.chips / slice.hosts, "\n");
}

}  // namespace

base::Result<std::string> sbatch_script(const Job& job, const std::string& name, int nodes, int per_host) {
  SLUICE_OK(check(job, name));
  std::string text = base::str(
      "#!/bin/bash\n"
      "# Written by `sluice run --sbatch`. sbatch this file; scancel ends it, after a checkpoint.\n"
      "#SBATCH --job-name=",
      name,
      "\n"
      "#SBATCH --nodes=",
      nodes,
      "\n"
      "#SBATCH --ntasks-per-node=",
      per_host,
      "\n"
      "#SBATCH --output=",
      name,
      "-%j.log\n"
      "#SBATCH --open-mode=append\n"
      "# Before the time limit this script gets SIGTERM, and hands it on.\n"
      "#SBATCH --signal=B:TERM@",
      kSecondsToSave,
      "\n"
      "set -u\n");
  if (!job.folder.empty()) text += base::str("cd ", quote(job.folder), " || exit\n");
  for (const auto& [variable, value] : job.environment)
    text += base::str("export ", variable, "=", quote(value), "\n");
  if (!has_key(job)) text += kMakeKey;
  if (job.join_timeout > 0) text += base::str("export SLUICE_JOIN_TIMEOUT=", job.join_timeout, "\n");
  if (!job.setup.empty())
    text += base::str("# Once on each node.\nsrun --label --ntasks=", nodes,
                      " --ntasks-per-node=1 --kill-on-bad-exit=1 sh -c ", quote(job.setup), " || exit\n");
  // srun's status does not say which worker failed: srun ends the others by SIGTERM and returns the highest
  // status, which is their 143. srun's own lines on standard error name the worker; the workers' lines begin
  // with a number. When a job is cancelled, Slurm sends SIGTERM to both the script and the workers; no other
  // signal can be chosen.
  return text + base::str(
                    "# Told to end, all workers get SIGTERM, and save; none is started again.\n"
                    "ended=0 status=143\n"
                    "first=$(mktemp) || exit\n"
                    "trap 'rm -f \"$first\"' EXIT\n"
                    "trap 'ended=1; scancel --signal=TERM \"$SLURM_JOB_ID\" 2>/dev/null' TERM\n"
                    "# One worker fails: all end, and all start again.\n"
                    "for ((attempt = 0; ; ++attempt)); do\n"
                    "  if ((ended)); then exit \"$status\"; fi\n"
                    "  export SLUICE_RESTART=$attempt\n"
                    "  : >\"$first\"\n"
                    "  srun --label --kill-on-bad-exit=1 ",
                    quote_all(job.command),
                    " 2> >(awk -v first=\"$first\" '{ print; fflush() }\n"
                    "    /^srun: error: .*: Exited with exit code [0-9]+$/ && !seen++ { print $NF >first; "
                    "close(first) }' >&2) &\n"
                    "  while status=0; wait $! || status=$?; kill -0 $! 2>/dev/null; do :; done\n"
                    "  # A signal's 143 hides srun's own status.\n"
                    "  if ((ended)); then status=0; wait $! || status=$?; fi\n"
                    "  if ((status == 0 || ended)); then exit \"$status\"; fi\n"
                    "  sleep 0.3\n"
                    "  read -r failed <\"$first\" && status=$failed\n"
                    "  # Wrong usage, a missed target and a command that is not there stay so.\n"
                    "  case $status in 2 | 21 | 126 | 127) exit \"$status\" ;; esac\n"
                    "  if ((attempt == ",
                    job.max_restarts,
                    ")); then exit \"$status\"; fi\n"
                    "  echo \"attempt $attempt ended with status $status; starting all workers again\" >&2\n"
                    "done\n");
}

base::Result<std::string> jobset_manifest(const Job& job, const std::string& name,
                                          const estimate::TpuSlice& slice, const std::string& image,
                                          const QueueLabels& queue) {
  SLUICE_OK(check(job, name));
  SLUICE_OK(check_kubernetes_name("--queue", queue.name));
  SLUICE_OK(check_kubernetes_name("--priority", queue.priority));
  if (accelerator_label(slice).empty())
    return base::fail(Code::kInvalidArgument, "GKE has no nodes with ", slice.generation->name, " (",
                      slice.name, "), but v3, v4, v5e, v5p, v6e and tpu7x");
  if (slice.slices > 1 && slice.hosts == slice.slices)
    return base::fail(Code::kInvalidArgument,
                      "GKE joins only slices of two or more hosts, and each slice of ", slice.name,
                      " has one: choose a larger type, or one slice");
  try {
    return manifest(job, name, slice, image, queue);
  } catch (const nlohmann::json::type_error& error) {
    return base::fail(Code::kInvalidArgument, "a manifest holds UTF-8: ", error.what());
  }
}

}  // namespace sluice::pod
