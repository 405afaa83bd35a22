// The environment that libtpu reads. One process per host: TPU_WORKER_ID and TPU_WORKER_HOSTNAMES. One
// process per chip: CLOUD_TPU_TASK_ID, TPU_PROCESS_BOUNDS (their product is the count),
// TPU_CHIPS_PER_PROCESS_BOUNDS, TPU_VISIBLE_CHIPS, TPU_PROCESS_ADDRESSES and TPU_PROCESS_PORT.
#include <charconv>

#include "sluice/base/environment.h"
#include "sluice/base/text/strings.h"
#include "tests/pjrt/pod/settings.h"

namespace emulated_pod {
namespace {

using sluice::base::environment;

std::vector<std::string> list_of(const char* name) {
  const auto text = environment(name);
  return text ? sluice::base::split(*text, ',') : std::vector<std::string>();
}

// "2,2,1" as numbers.
Result<std::vector<int>> numbers_of(const char* name) {
  std::vector<int> numbers;
  for (const std::string& piece : list_of(name)) {
    int value = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
    if (error != std::errc() || end != piece.data() + piece.size() || value < 0) {
      return fail(Code::kInvalidArgument, name, ": expected whole numbers between commas, found '",
                  environment(name).value_or(""), "'");
    }
    numbers.push_back(value);
  }
  return numbers;
}

// The product of three bounds; 0 when the variable is not set.
Result<int> product_of(const char* name) {
  SLUICE_TRY(const std::vector<int> bounds, numbers_of(name));
  if (bounds.empty()) return 0;
  if (bounds.size() != 3)
    return fail(Code::kInvalidArgument, name, " must be 3 numbers, found ", bounds.size());
  const int product = bounds[0] * bounds[1] * bounds[2];
  if (product < 1) return fail(Code::kInvalidArgument, name, " must be 3 numbers of at least 1");
  return product;
}

Status read_hosts(Settings& settings) {
  const std::vector<std::string> hosts = list_of("TPU_WORKER_HOSTNAMES");
  SLUICE_TRY(const auto id, environment_number("TPU_WORKER_ID", 0, 1 << 20));
  settings.workers = hosts.empty() ? 1 : static_cast<int>(hosts.size());
  settings.worker = static_cast<int>(id.value_or(0));
  if (settings.workers > 1 && !id) {
    return fail(Code::kInvalidArgument, "TPU_WORKER_HOSTNAMES names ", settings.workers,
                " hosts, but TPU_WORKER_ID is not set");
  }
  if (settings.worker < settings.workers) return {};
  return fail(Code::kInvalidArgument, "TPU_WORKER_ID is ", settings.worker,
              ", but TPU_WORKER_HOSTNAMES names ", settings.workers, " host(s)");
}

// The port in the process's own address is the one that it is told to listen on.
Status check_port(const std::string& address) {
  const auto port = environment("TPU_PROCESS_PORT");
  if (!port || sluice::base::ends_with(address, ":" + *port)) return {};
  return fail(Code::kInvalidArgument, "TPU_PROCESS_PORT is ", *port, ", but this process's address in ",
              "TPU_PROCESS_ADDRESSES is ", address);
}

Status read_processes(Settings& settings) {
  const std::vector<std::string> addresses = list_of("TPU_PROCESS_ADDRESSES");
  SLUICE_TRY(const int processes, product_of("TPU_PROCESS_BOUNDS"));
  SLUICE_TRY(const int chips, product_of("TPU_CHIPS_PER_PROCESS_BOUNDS"));
  SLUICE_TRY(const auto task, environment_number("CLOUD_TPU_TASK_ID", 0, 1 << 20));
  if (processes == 0 || chips == 0 || !task || addresses.empty()) {
    return fail(Code::kInvalidArgument,
                "one process per chip needs all of CLOUD_TPU_TASK_ID, TPU_PROCESS_BOUNDS, ",
                "TPU_CHIPS_PER_PROCESS_BOUNDS and TPU_PROCESS_ADDRESSES");
  }
  if (addresses.size() != static_cast<size_t>(processes)) {
    return fail(Code::kInvalidArgument, "TPU_PROCESS_BOUNDS is for ", processes,
                " processes, but TPU_PROCESS_ADDRESSES has ", addresses.size(), " addresses");
  }
  if (*task >= processes) {
    return fail(Code::kInvalidArgument, "CLOUD_TPU_TASK_ID is ", *task, ", but TPU_PROCESS_BOUNDS is for ",
                processes, " processes");
  }
  SLUICE_OK(check_port(addresses[static_cast<size_t>(*task)]));
  SLUICE_TRY(const std::vector<int> visible, numbers_of("TPU_VISIBLE_CHIPS"));
  if (!visible.empty() && visible.size() != static_cast<size_t>(chips)) {
    return fail(Code::kInvalidArgument, "TPU_CHIPS_PER_PROCESS_BOUNDS is for ", chips,
                " chips a process, but TPU_VISIBLE_CHIPS names ", visible.size());
  }
  SLUICE_TRY(const auto cores, environment_number("EMULATED_POD_CORES_PER_CHIP", 1, 8));
  settings.cores = static_cast<int>(cores.value_or(1));
  settings.devices = chips * settings.cores;
  settings.worker = static_cast<int>(*task);
  settings.workers = processes;
  return {};
}

// The place of this process's slice among several. Before, worker and count are the slice's.
Status read_slices(Settings& settings) {
  SLUICE_TRY(const auto count, environment_number("MEGASCALE_NUM_SLICES", 1, 256));
  SLUICE_TRY(const auto slice, environment_number("MEGASCALE_SLICE_ID", 0, 255));
  if (!count || *count == 1) return {};
  if (!slice || *slice >= *count || !environment("MEGASCALE_COORDINATOR_ADDRESS"))
    return fail(Code::kInvalidArgument, "several slices need MEGASCALE_COORDINATOR_ADDRESS and a ",
                "MEGASCALE_SLICE_ID below MEGASCALE_NUM_SLICES");
  settings.worker += static_cast<int>(*slice) * settings.workers;
  settings.workers *= static_cast<int>(*count);
  settings.slices = static_cast<int>(*count);
  return {};
}

}  // namespace

Status read_tpu(Settings& settings) {
  // A host's own metadata may hold the bounds as well: these two are what makes a process one of several.
  const bool per_chip = environment("CLOUD_TPU_TASK_ID") || environment("TPU_PROCESS_ADDRESSES");
  SLUICE_OK(per_chip ? read_processes(settings) : read_hosts(settings));
  return read_slices(settings);
}

}  // namespace emulated_pod
