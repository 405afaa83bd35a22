#include "sluice/pod/environment.h"

#include <cstdlib>

#include "sluice/base/hostlist.h"

namespace sluice::pod {
namespace {

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return !text.empty() && kLetters.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(kAll) == std::string_view::npos;
}

}  // namespace

Variables worker_environment(const Job& job, int worker, int attempt, int port) {
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
  if (!is_local(job)) {
    std::vector<std::string> names;
    for (const Worker& other : job.workers) names.push_back(other.address);
    variables.emplace_back("TPU_WORKER_ID", id);
    variables.emplace_back("TPU_WORKER_HOSTNAMES", base::join(names, ","));
  }
  variables.insert(variables.end(), job.environment.begin(), job.environment.end());
  return variables;
}

base::Result<std::pair<std::string, std::string>> parse_variable(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!is_name(name))
    return base::fail(Code::kInvalidArgument, "--env ", text,
                      ": expected NAME=VALUE, or NAME for its value here");
  if (equals != std::string::npos) return std::pair(name, text.substr(equals + 1));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr)
    return base::fail(Code::kInvalidArgument, "--env ", name, ": it is not set here; give --env ", name,
                      "=VALUE");
  return std::pair(name, std::string(value));
}

}  // namespace sluice::pod
