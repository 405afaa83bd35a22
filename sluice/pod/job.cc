#include "sluice/pod/job.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <random>

#include "sluice/base/files/file.h"
#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::pod {
namespace {

// Returns the names in a file as one list.
base::Result<std::string> hosts_of_file(const std::string& path) {
  SLUICE_TRY(const std::string text, base::read_file(base::expand_home(path)));
  std::vector<std::string> names;
  int number = 0;
  for (const std::string& line : base::split(text, '\n')) {
    ++number;
    const std::string_view name = base::trim(std::string_view(line).substr(0, line.find('#')));
    // Lines like "node1 slots=4" belong to mpirun.
    if (name.find('=') != std::string_view::npos)
      return base::fail(
          Code::kInvalidArgument, path, ", line ", number, ": '", name,
          "' is a line of mpirun's host files: expected only a host. --processes-per-host 4 starts "
          "several processes on each host");
    if (!name.empty()) names.emplace_back(name);
  }
  if (names.empty()) return base::fail(Code::kInvalidArgument, "no host in ", path);
  return base::join(names, ",");
}

}  // namespace

std::vector<Worker> local_workers(int count) {
  std::vector<Worker> workers;
  for (int i = 0; i < count; ++i) workers.push_back({"", "127.0.0.1", 0, i, count});
  return workers;
}

base::Result<std::vector<Worker>> remote_workers(std::string_view hosts, int per_host) {
  std::string list(hosts);
  if (hosts.starts_with('@')) {
    SLUICE_TRY(list, hosts_of_file(list.substr(1)));
  }
  SLUICE_TRY(const auto names, base::expand_hostlist(list));
  std::vector<Worker> workers;
  std::map<std::string, std::vector<size_t>> workers_of;
  for (const std::string& name : names) {
    if (name.starts_with('-')) return base::fail(Code::kInvalidArgument, "\"", name, "\" is not a host name");
    auto& here = workers_of[name];
    if (!here.empty() && per_host > 1)
      return base::fail(Code::kInvalidArgument, "host ", name,
                        " comes twice: with several processes per host, name each host once");
    for (int i = 0; i < per_host; ++i) {
      here.push_back(workers.size());
      const int host_index =
          here.size() > 1 ? workers[here.front()].host_index : static_cast<int>(workers_of.size()) - 1;
      workers.push_back(
          {name, name.substr(name.find('@') + 1), host_index, static_cast<int>(here.size()) - 1, 1});
    }
  }
  for (const auto& [name, here] : workers_of)
    for (const size_t worker : here) workers[worker].local_count = static_cast<int>(here.size());
  return workers;
}

base::Status divide_into_slices(Job& job, int slices) {
  const auto count = static_cast<int>(job.workers.size());
  int hosts = 0;
  for (const Worker& worker : job.workers) hosts = std::max(hosts, worker.host_index + 1);
  if (hosts % slices != 0)
    return base::fail(Code::kInvalidArgument, hosts, " hosts cannot be divided among ", slices,
                      " slices: expected the same number of hosts for each, slice 0's first");
  for (int i = 0; i < count; ++i) {
    Worker& worker = job.workers[static_cast<size_t>(i)];
    if (slices > 1 && i > 0 && worker.host_index < job.workers[static_cast<size_t>(i) - 1].host_index)
      return base::fail(Code::kInvalidArgument, "host ", worker.address,
                        " comes again after others: name each host of several slices once");
    worker.slice = worker.host_index / (hosts / slices);
  }
  job.slices = slices;
  return {};
}

std::vector<std::string> host_addresses(const Job& job, int slice) {
  std::vector<std::string> addresses;
  for (const Worker& worker : job.workers)
    if (worker.local_index == 0 && worker.slice == slice) addresses.push_back(worker.address);
  return addresses;
}

std::string slice_text(const Job& job, int worker) {
  return job.slices == 1 ? "" : base::str(" of slice ", job.workers[static_cast<size_t>(worker)].slice);
}

std::string new_run_id() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  ::localtime_r(&now, &time);
  char text[32];
  std::strftime(text, sizeof text, "%m%d-%H%M%S-", &time);
  std::string id = text;
  std::random_device random;
  for (int i = 0; i < 4; ++i) id += "abcdefghijkmnpqrstuvwxyz23456789"[random() % 32];
  return id;
}

}  // namespace sluice::pod
