#include "sluice/replica/placement.h"

#include <charconv>
#include <vector>

#include "sluice/base/hostlist.h"

namespace sluice::replica {
namespace {

constexpr int kTpuPort = 8476;  // open in the firewall rule that Cloud TPU networks have
// A job's port: above the ephemeral ports that Linux hands out (32768 to 60999).
constexpr int kFirstSlurmPort = 61000, kSlurmPorts = 4096;

using Found = base::Result<std::optional<Placement>>;

// Reads the variables of one launcher; every error names it and says how to get out.
class Reader {
 public:
  Reader(const Getter& get, std::string launcher, std::string remedy)
      : get_(get), launcher_(std::move(launcher)), remedy_(std::move(remedy)) {}

  // The value of the first of these names that is set.
  base::Result<std::string> text(const std::vector<const char*>& names) const {
    for (const char* name : names)
      if (const auto value = get_(name)) return *value;
    return wrong(base::join(names, " or "), " is not set although other variables of ", launcher_, " are");
  }

  base::Result<int> number(const std::vector<const char*>& names, int smallest, int largest) const {
    SLUICE_TRY(const std::string value, text(names));
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || result < smallest || result > largest)
      return wrong(base::join(names, " or "), " is \"", value, "\": expected a whole number from ", smallest,
                   " to ", largest);
    return result;
  }

  Found placement(int process_id, int processes, std::string coordinator) const {
    if (process_id >= processes)
      return wrong("process ", process_id, " of ", processes, " cannot be: they are counted from 0");
    return std::optional<Placement>({process_id, processes, std::move(coordinator), launcher_});
  }

  template <typename... Pieces>
  tl::unexpected<Error> wrong(const Pieces&... pieces) const {
    return base::fail(Code::kFailedPrecondition, "the environment of ", launcher_,
                      " is not usable: ", pieces..., ". ", remedy_);
  }

 private:
  const Getter& get_;
  std::string launcher_, remedy_;
};

constexpr int kMostProcesses = 1'000'000;

bool any(const Getter& get, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (get(name)) return true;
  return false;
}

bool is_host_and_port(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  int port = 0;
  const char* last = address.data() + address.size();
  const auto [end, error] = std::from_chars(address.data() + colon + 1, last, port);
  return error == std::errc() && end == last && port > 0 && port < 65536;
}

Found from_sluice(const Getter& get) {
  if (!any(get, {"SLUICE_PROCESS_ID", "SLUICE_PROCESS_COUNT", "SLUICE_COORDINATOR_ADDRESS"})) return {};
  const Reader read(get, "sluice run",
                    "Start the processes with `sluice run`, or set SLUICE_PROCESS_ID, SLUICE_PROCESS_COUNT "
                    "and SLUICE_COORDINATOR_ADDRESS, or none of them for a single process.");
  SLUICE_TRY(const int count, read.number({"SLUICE_PROCESS_COUNT"}, 1, kMostProcesses));
  SLUICE_TRY(const int id, read.number({"SLUICE_PROCESS_ID"}, 0, kMostProcesses));
  SLUICE_TRY(const std::string coordinator, read.text({"SLUICE_COORDINATOR_ADDRESS"}));
  if (!is_host_and_port(coordinator))
    return read.wrong("SLUICE_COORDINATOR_ADDRESS is \"", coordinator, "\": expected host:port");
  return read.placement(id, count, coordinator);
}

Found from_slurm(const Getter& get) {
  // A shell inside `salloc` has a job but no process number: what is started there is a single process.
  if (!get("SLURM_JOB_ID") || !get("SLURM_PROCID")) return {};
  const Reader read(
      get, "Slurm",
      "Start the program with `srun PROGRAM` inside the job; for a single process without srun, "
      "unset SLURM_PROCID.");
  SLUICE_TRY(const int processes, read.number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 1, kMostProcesses));
  if (!get("SLURM_STEP_ID")) {
    if (processes == 1) return {};
    return read.wrong("the job has ", processes,
                      " tasks, but this process was started by the job's script itself (SLURM_STEP_ID is not "
                      "set), so that there is only one of it");
  }
  SLUICE_TRY(const int id, read.number({"SLURM_PROCID"}, 0, kMostProcesses));
  SLUICE_TRY(const int job, read.number({"SLURM_JOB_ID"}, 0, 2'000'000'000));
  // Steps other than srun's have numbers near 2^32.
  SLUICE_TRY(const std::string step_text, read.text({"SLURM_STEP_ID"}));
  unsigned step = 0;
  std::from_chars(step_text.data(), step_text.data() + step_text.size(), step);
  SLUICE_TRY(const std::string list, read.text({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}));
  const auto hosts = base::expand_hostlist(list);
  if (!hosts) return read.wrong("the node list: ", hosts.error().what());
  const unsigned port = kFirstSlurmPort + (static_cast<unsigned>(job) * 16 + step % 16) % kSlurmPorts;
  return read.placement(id, processes, base::host_and_port(hosts->front(), static_cast<int>(port)));
}

Found from_tpu(const Getter& get) {
  if (!any(get, {"TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"})) return {};
  const Reader read(get, "Cloud TPU",
                    "Start the processes with `sluice run --hosts …`, or set TPU_WORKER_ID (from 0) and "
                    "TPU_WORKER_HOSTNAMES (all workers, separated by commas), or none of them for a single "
                    "process.");
  SLUICE_TRY(const std::string names, read.text({"TPU_WORKER_HOSTNAMES"}));
  SLUICE_TRY(const int id, read.number({"TPU_WORKER_ID"}, 0, kMostProcesses));
  const auto hosts = base::split(names, ',');
  for (const std::string& host : hosts)
    if (base::trim(host).empty())
      return read.wrong("TPU_WORKER_HOSTNAMES is \"", names, "\", which has an empty name");
  std::string first(base::trim(hosts.front()));
  // "host:port", as some tools write it; an IPv6 address has more than one colon.
  if (const size_t colon = first.find(':'); colon != std::string::npos && colon == first.rfind(':'))
    first.resize(colon);
  return read.placement(id, static_cast<int>(hosts.size()), base::host_and_port(first, kTpuPort));
}

Found from_torchrun(const Getter& get) {
  // MASTER_ADDR alone is often left in a profile; a rank is what makes a process one of several.
  if (!any(get, {"RANK", "WORLD_SIZE"})) return {};
  const Reader read(get, "torchrun",
                    "Start the processes with torchrun or `sluice run`, or unset RANK and WORLD_SIZE for a "
                    "single process.");
  SLUICE_TRY(const int count, read.number({"WORLD_SIZE"}, 1, kMostProcesses));
  SLUICE_TRY(const int id, read.number({"RANK"}, 0, kMostProcesses));
  SLUICE_TRY(const std::string host, read.text({"MASTER_ADDR"}));
  SLUICE_TRY(int port, read.number({"MASTER_PORT"}, 1, 65535));
  if (get("TORCHELASTIC_USE_AGENT_STORE") == "True") port = port < 65535 ? port + 1 : port - 1;
  return read.placement(id, count, base::host_and_port(host, port));
}

}  // namespace

base::Result<std::optional<Placement>> find_placement(const Getter& get) {
  for (const auto from : {from_sluice, from_slurm, from_tpu, from_torchrun}) {
    SLUICE_TRY(auto found, from(get));
    if (found) return found;
  }
  return std::optional<Placement>();
}

}  // namespace sluice::replica
