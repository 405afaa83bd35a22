#include "sluice/pod/environment.h"

#include <algorithm>
#include <iterator>

#include "sluice/base/environment.h"
#include "sluice/base/text/hostlist.h"

namespace sluice::pod {
namespace {

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !text.empty() && kLetters.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(kAll) == std::string_view::npos;
}

// Returns the workers of the same slice.
std::vector<const Worker*> slice_workers(const Job& job, const Worker& self) {
  std::vector<const Worker*> workers;
  for (const Worker& other : job.workers)
    if (other.slice == self.slice) workers.push_back(&other);
  return workers;
}

int number_in(const std::vector<const Worker*>& workers, const Worker& self) {
  return static_cast<int>(std::find(workers.begin(), workers.end(), &self) - workers.begin());
}

// Adds the hosts of the processes, for Sluice's messages and for TPU runtimes. With one process per chip a
// host has several processes; the runtimes then count hosts, not processes. They count within a slice.
void add_hosts(Variables& variables, const Job& job, const Worker& self) {
  std::vector<std::string> all, own;
  for (const Worker& other : job.workers) all.push_back(other.address);
  const auto workers = slice_workers(job, self);
  for (const Worker* other : workers) own.push_back(other->address);
  const bool by_host = !job.tpu_chips.empty();
  const int number = by_host ? self.host_index - workers.front()->host_index : number_in(workers, self);
  variables.emplace_back("SLUICE_PROCESS_HOSTS", base::join(all, ","));
  variables.emplace_back("TPU_WORKER_ID", std::to_string(number));
  variables.emplace_back("TPU_WORKER_HOSTNAMES",
                         base::join(by_host ? host_addresses(job, self.slice) : own, ","));
}

// Adds the variables with which libtpu lets this process drive one chip: its host's chip of the same number.
void add_chip(Variables& variables, const Job& job, const Worker& self) {
  const auto workers = slice_workers(job, self);
  std::vector<std::string> addresses;
  for (const Worker* other : workers)
    addresses.push_back(base::host_and_port(other->address, kTpuProcessPort + other->local_index));
  const std::string chip = std::to_string(self.local_index);
  variables.insert(variables.end(), {{"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
                                     {"TPU_PROCESS_BOUNDS", job.tpu_chips},
                                     {"TPU_PROCESS_ADDRESSES", base::join(addresses, ",")},
                                     {"TPU_PROCESS_PORT", std::to_string(kTpuProcessPort + self.local_index)},
                                     {"CLOUD_TPU_TASK_ID", std::to_string(number_in(workers, self))},
                                     {"TPU_VISIBLE_CHIPS", chip},
                                     {"TPU_VISIBLE_DEVICES", chip}});  // the older name
}

// Adds the worker's place among several slices, for libtpu and Sluice.
void add_slice(Variables& variables, const Job& job, const Worker& self) {
  variables.insert(variables.end(),
                   {{"MEGASCALE_COORDINATOR_ADDRESS", base::host_and_port(job.coordinator, kSlicesPort)},
                    {"MEGASCALE_NUM_SLICES", std::to_string(job.slices)},
                    {"MEGASCALE_SLICE_ID", std::to_string(self.slice)},
                    {"MEGASCALE_PORT", std::to_string(kSlicesPort + self.local_index)}});
}

// Replaces {worker}, {host}, {local} and {slice} in the value; other braces stay.
std::string filled_in(const std::string& value, const Worker& self, int worker) {
  const std::pair<std::string_view, std::string> fillings[] = {
      {"{worker}", std::to_string(worker)},
      {"{host}", self.address},
      {"{local}", std::to_string(self.local_index)},
      {"{slice}", std::to_string(self.slice)},
  };
  std::string result;
  for (size_t at = 0; at < value.size();) {
    const auto rest = std::string_view(value).substr(at);
    const auto* found = std::find_if(std::begin(fillings), std::end(fillings),
                                     [&](const auto& filling) { return rest.starts_with(filling.first); });
    if (found == std::end(fillings)) {
      result += value[at++];
    } else {
      result += found->second;
      at += found->first.size();
    }
  }
  return result;
}

}  // namespace

Variables worker_environment(const Job& job, int worker, int attempt, int port, const std::string& key) {
  const Worker& self = job.workers[static_cast<size_t>(worker)];
  const std::string id = std::to_string(worker), count = std::to_string(job.workers.size());
  const std::string meeting = base::host_and_port(job.coordinator, port);
  Variables variables = {
      {"SLUICE_RUN_ID", job.id},
      {"SLUICE_PROCESS_ID", id},
      {"SLUICE_PROCESS_COUNT", count},
      {"SLUICE_COORDINATOR_ADDRESS", meeting},
      {"SLUICE_RESTART", std::to_string(attempt)},
      {"JAX_COORDINATOR_ADDRESS", meeting},
      {"JAX_NUM_PROCESSES", count},
      {"JAX_PROCESS_ID", id},
      {"MASTER_ADDR", job.coordinator},
      {"MASTER_PORT", std::to_string(port)},
      {"RANK", id},
      {"WORLD_SIZE", count},
      {"LOCAL_RANK", std::to_string(self.local_index)},
      {"LOCAL_WORLD_SIZE", std::to_string(self.local_count)},
      {"GROUP_RANK", std::to_string(self.host_index)},
  };
  if (!key.empty()) variables.emplace_back("SLUICE_RUN_KEY", key);
  if (job.join_timeout > 0) variables.emplace_back("SLUICE_JOIN_TIMEOUT", std::to_string(job.join_timeout));
  if (!is_local(job)) add_hosts(variables, job, self);
  if (!job.tpu_chips.empty()) add_chip(variables, job, self);
  if (job.slices > 1) add_slice(variables, job, self);
  if (!job.slice_type.empty()) variables.emplace_back("TPU_ACCELERATOR_TYPE", job.slice_type);
  for (const auto& [name, value] : job.environment)
    variables.emplace_back(name, filled_in(value, self, worker));
  return variables;
}

base::Result<std::pair<std::string, std::string>> parse_variable(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!is_name(name))
    return base::fail(Code::kInvalidArgument, "--env ", text,
                      ": expected NAME=VALUE, or NAME for its value here");
  if (equals != std::string::npos) return std::pair(name, text.substr(equals + 1));
  const auto value = base::environment_even_empty(name.c_str());
  if (!value)
    return base::fail(Code::kInvalidArgument, "--env ", name, ": it is not set here; give --env ", name,
                      "=VALUE");
  return std::pair(name, *value);
}

}  // namespace sluice::pod
