#include "sluice/replica/placement.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sluice/base/log.h"
#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/replica/slices.h"

namespace sluice::replica {
namespace {

constexpr const char* kCloudTpu = "Cloud TPU";
// A job's port: above Linux' ephemeral ports (32768 to 60999).
constexpr int kFirstSlurmPort = 61000, kSlurmPorts = 4096;

using Found = base::Result<std::optional<Placement>>;

// Reads the variables of one launcher; every error names it and says what to do.
class Reader {
 public:
  Reader(const Getter& get, std::string launcher, std::string remedy)
      : get_(get), launcher_(std::move(launcher)), remedy_(std::move(remedy)) {}

  // Returns the value of the first of these names that is set.
  base::Result<std::string> text(const std::vector<const char*>& names) const {
    for (const char* name : names)
      if (const auto value = get_(name)) return *value;
    return wrong(base::join(names, " or "), " is not set although other variables of ", launcher_, " are");
  }

  base::Result<int> number(const std::vector<const char*>& names, int smallest, int largest) const {
    SLUICE_TRY(const std::string value, text(names));
    const auto result = base::number_of<int>(value);
    if (!result || *result < smallest || *result > largest)
      return wrong(base::join(names, " or "), " is \"", value, "\": expected a whole number from ", smallest,
                   " to ", largest);
    return *result;
  }

  // `hosts`: one for each process; ignored if there are more or fewer.
  Found placement(int process_id, int processes, std::string coordinator,
                  std::vector<std::string> hosts = {}) const {
    if (process_id >= processes)
      return wrong("process ", process_id, " of ", processes, " cannot be: they are counted from 0");
    if (hosts.size() != static_cast<size_t>(processes)) hosts.clear();
    return std::optional<Placement>(
        {process_id, processes, std::move(coordinator), launcher_, std::move(hosts)});
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

constexpr int kMaxProcesses = 1'000'000;

bool any(const Getter& get, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (get(name)) return true;
  return false;
}

// Returns both parts of "host:port"; nothing for any other text.
std::optional<base::HostAndPort> both_of(const std::string& address) {
  const auto parts = base::split_host_and_port(address);
  return parts && parts->port > 0 ? std::optional(*parts) : std::nullopt;
}

// The expected form, for an error about another text.
constexpr const char* kExpected = "expected host:port, with brackets around an IPv6 address, [fd00::2]:8476";

// Returns the pieces between commas, without white space around them.
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (const std::string& item : base::split(list, ',')) items.emplace_back(base::trim(item));
  return items;
}

Found from_sluice(const Getter& get) {
  if (!any(get, {"SLUICE_PROCESS_ID", "SLUICE_PROCESS_COUNT", "SLUICE_COORDINATOR_ADDRESS"})) return {};
  const Reader read(get, "sluice run",
                    "Start the processes with `sluice run`, or set SLUICE_PROCESS_ID, SLUICE_PROCESS_COUNT "
                    "and SLUICE_COORDINATOR_ADDRESS, or none of them for a single process.");
  SLUICE_TRY(const int count, read.number({"SLUICE_PROCESS_COUNT"}, 1, kMaxProcesses));
  SLUICE_TRY(const int id, read.number({"SLUICE_PROCESS_ID"}, 0, kMaxProcesses));
  SLUICE_TRY(const std::string coordinator, read.text({"SLUICE_COORDINATOR_ADDRESS"}));
  if (!both_of(coordinator))
    return read.wrong("SLUICE_COORDINATOR_ADDRESS is \"", base::printable_line(coordinator),
                      "\": ", kExpected);
  return read.placement(id, count, coordinator, items_of(get("SLUICE_PROCESS_HOSTS").value_or("")));
}

Found from_slurm(const Getter& get) {
  // A shell inside `salloc` has a job but no process number: a program started there is a single process.
  if (!get("SLURM_JOB_ID") || !get("SLURM_PROCID")) return {};
  const Reader read(
      get, "Slurm",
      "Start the program with `srun PROGRAM` inside the job; for a single process without srun, "
      "unset SLURM_PROCID.");
  SLUICE_TRY(const int processes, read.number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 1, kMaxProcesses));
  if (!get("SLURM_STEP_ID")) {
    if (processes == 1) return {};
    return read.wrong("the job has ", processes,
                      " tasks, but this process was started by the job's script itself (SLURM_STEP_ID is not "
                      "set), so that there is only one of it");
  }
  SLUICE_TRY(const int id, read.number({"SLURM_PROCID"}, 0, kMaxProcesses));
  SLUICE_TRY(const int job, read.number({"SLURM_JOB_ID"}, 0, 2'000'000'000));
  // Steps that srun did not start have numbers near 2^32.
  SLUICE_TRY(const std::string step_text, read.text({"SLURM_STEP_ID"}));
  const unsigned step = base::number_of<unsigned>(step_text).value_or(0);
  SLUICE_TRY(const std::string list, read.text({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}));
  const auto hosts = base::expand_hostlist(list);
  if (!hosts) return read.wrong("the node list: ", hosts.error().what());
  const unsigned port = kFirstSlurmPort + (static_cast<unsigned>(job) * 16 + step % 16) % kSlurmPorts;
  return read.placement(id, processes, base::host_and_port(hosts->front(), static_cast<int>(port)), *hosts);
}

// Returns the product of "4,4,1"; 0 for any other text.
int64_t product_of(const std::string& bounds) {
  int64_t product = 1;
  for (const std::string& item : items_of(bounds)) {
    const int number = base::number_of<int>(item).value_or(0);
    if (number < 1 || number > kMaxProcesses) return 0;
    product = std::min<int64_t>(kMaxProcesses, product) * number;
  }
  return product;
}

// Returns the first process's host, with a port that no process has.
std::string meeting_beside(const std::vector<base::HostAndPort>& addresses) {
  base::HostAndPort meeting = addresses.front();
  meeting.port -= 2;
  while (meeting.port > 0 && std::count(addresses.begin(), addresses.end(), meeting) > 0) --meeting.port;
  return base::host_and_port(meeting.host, meeting.port);
}

// Reads the variables of one process per chip.
Found from_tpu_processes(const Getter& get) {
  const Reader read(get, kCloudTpu,
                    "Start the processes with `sluice run --hosts … --processes-per-host 4`, or set "
                    "CLOUD_TPU_TASK_ID (from 0) and TPU_PROCESS_ADDRESSES (host:port of all processes, "
                    "separated by commas), or no TPU_PROCESS_ variables for one process per host.");
  SLUICE_TRY(const std::string list, read.text({"TPU_PROCESS_ADDRESSES"}));
  if (!get("CLOUD_TPU_TASK_ID") && list.find(':') == std::string::npos) return {};  // "local"
  SLUICE_TRY(const int id, read.number({"CLOUD_TPU_TASK_ID"}, 0, kMaxProcesses));
  const auto texts = items_of(list);
  const int count = static_cast<int>(texts.size());
  std::vector<base::HostAndPort> addresses;
  std::vector<std::string> hosts;
  if (count == 1 && id == 0) return read.placement(0, 1, list);  // a single process needs no meeting place
  for (const std::string& text : texts) {
    const auto address = both_of(text);
    if (!address)
      return read.wrong("TPU_PROCESS_ADDRESSES is \"", base::printable_line(list), "\" and has \"",
                        base::printable_line(text), "\": ", kExpected);
    if (std::count(addresses.begin(), addresses.end(), *address) > 0)
      return read.wrong("TPU_PROCESS_ADDRESSES has ", text, " twice");
    addresses.push_back(*address);
    hosts.push_back(address->host);
  }
  if (id >= count)
    return read.wrong("CLOUD_TPU_TASK_ID is ", id, ", but TPU_PROCESS_ADDRESSES has ", count, " addresses");
  if (const auto bounds = get("TPU_PROCESS_BOUNDS"); bounds && product_of(*bounds) != count)
    return read.wrong("TPU_PROCESS_BOUNDS is \"", *bounds, "\", but TPU_PROCESS_ADDRESSES has ", count,
                      " addresses");
  const auto own = static_cast<size_t>(id);
  if (const auto port = get("TPU_PROCESS_PORT"); port && *port != std::to_string(addresses[own].port))
    return read.wrong("TPU_PROCESS_PORT is ", *port, ", but process ", id, " of TPU_PROCESS_ADDRESSES is at ",
                      texts[own]);
  return read.placement(id, count, meeting_beside(addresses), hosts);
}

// Returns the name of the variable whose value is a sentence and cannot be a number or a list of hosts, or
// "". Kaggle and Colab start their notebooks with "WARNING: could not determine TPU worker hostnames, please
// …".
const char* sentence_variable(const Getter& get) {
  for (const char* name : {"TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"})
    for (const std::string& item : items_of(get(name).value_or("")))
      if (item.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%") !=
          std::string::npos)
        return name;
  return "";
}

void say_single_process(const Getter& get, const std::string& name) {
  constexpr size_t kShown = 60;
  const std::string value = get(name.c_str()).value_or("");
  static std::once_flag once;
  std::call_once(once, [&] {
    base::info(name, " is not a list of hosts (\"", base::printable(value.substr(0, kShown)),
               value.size() > kShown ? "…" : "", "\"): this is a single process");
  });
}

Found from_tpu(const Getter& get) {
  const bool of_workers = any(get, {"TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"});
  if (get("TPU_PROCESS_ADDRESSES") || (get("CLOUD_TPU_TASK_ID") && !of_workers)) {
    SLUICE_TRY(auto found, from_tpu_processes(get));
    if (found) return found;
  }
  if (!of_workers) return {};
  // A worker with a number above 0 is one of several, even if its list of hosts is not valid.
  const int number = base::number_of<int>(get("TPU_WORKER_ID").value_or("")).value_or(0);
  if (const std::string name = sentence_variable(get); !name.empty() && number <= 0) {
    say_single_process(get, name);
    return {};
  }
  const Reader read(get, kCloudTpu,
                    "Start the processes with `sluice run --hosts …`, or set TPU_WORKER_ID (from 0) and "
                    "TPU_WORKER_HOSTNAMES (all workers, separated by commas), or none of them for a single "
                    "process.");
  SLUICE_TRY(const std::string names, read.text({"TPU_WORKER_HOSTNAMES"}));
  SLUICE_TRY(const int id, read.number({"TPU_WORKER_ID"}, 0, kMaxProcesses));
  auto hosts = items_of(names);
  for (std::string& host : hosts) {
    if (host.find_first_of(" \t\n") != std::string::npos)
      return read.wrong("TPU_WORKER_HOSTNAMES is \"", base::printable(names),
                        "\", which is not a list of hosts");
    if (host.empty()) return read.wrong("TPU_WORKER_HOSTNAMES is \"", names, "\", which has an empty name");
    // Some tools write "host:port".
    const auto address = base::split_host_and_port(host);
    if (!address) return read.wrong("TPU_WORKER_HOSTNAMES has ", address.error().what());
    host = address->host;
  }
  return read.placement(id, static_cast<int>(hosts.size()),
                        base::host_and_port(hosts.front(), kTpuMeetingPort), hosts);
}

Found from_torchrun(const Getter& get) {
  // A profile often has only MASTER_ADDR; a rank makes a process one of several.
  if (!any(get, {"RANK", "WORLD_SIZE"})) return {};
  const Reader read(get, "torchrun",
                    "Start the processes with torchrun or `sluice run`, or unset RANK and WORLD_SIZE for a "
                    "single process.");
  SLUICE_TRY(const int count, read.number({"WORLD_SIZE"}, 1, kMaxProcesses));
  SLUICE_TRY(const int id, read.number({"RANK"}, 0, kMaxProcesses));
  SLUICE_TRY(const std::string host, read.text({"MASTER_ADDR"}));
  SLUICE_TRY(int port, read.number({"MASTER_PORT"}, 1, 65535));
  if (get("TORCHELASTIC_USE_AGENT_STORE") == "True") port = port < 65535 ? port + 1 : port - 1;
  const auto master = base::split_host_and_port(host);
  if (!master || master->port > 0)
    return read.wrong("MASTER_ADDR is \"", base::printable_line(host),
                      "\": expected only a host, as the port is MASTER_PORT");
  return read.placement(id, count, base::host_and_port(master->host, port));
}

}  // namespace

base::Result<std::optional<Placement>> find_placement(const Getter& get) {
  SLUICE_TRY(const SlicePlace slice, find_slice(get));
  for (const auto from : {from_sluice, from_slurm, from_tpu, from_torchrun}) {
    SLUICE_TRY(auto found, from(get));
    if (!found) continue;
    const bool of_one_slice = found->source == kCloudTpu;
    SLUICE_TRY(found, in_slices(std::move(*found), slice, of_one_slice));
    return found;
  }
  if (slice.count == 1) return std::optional<Placement>();
  // Slices of one host need no more variables than these.
  SLUICE_TRY(Placement alone, in_slices({0, 1, "", kCloudTpu}, slice, /*of_one_slice=*/true));
  return std::optional(std::move(alone));
}

int local_index(const Placement& placement, const Getter& get) {
  const auto& hosts = placement.hosts;
  const auto own = static_cast<size_t>(placement.process_id);
  if (own < hosts.size())
    return static_cast<int>(std::count(hosts.begin(), hosts.begin() + placement.process_id, hosts[own]));
  for (const char* variable : {"LOCAL_RANK", "SLURM_LOCALID"})
    if (const auto index = base::number_of<uint16_t>(get(variable).value_or(""))) return *index;
  return 0;
}

}  // namespace sluice::replica
