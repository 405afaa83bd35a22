#include "sluice/device/agree.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"

namespace sluice::device {
namespace {

// The start of another process's text, printable, for a message.
std::string shown(std::string_view text) { return base::printable(text.substr(0, 200)); }

base::Result<std::vector<int>> numbers_of(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& word : base::split(std::string(text), ' ')) {
    if (word.empty()) continue;
    const auto number = base::number_of<int>(word);
    if (!number)
      return base::fail(Code::kInternal, "another process told \"", shown(text), "\" in place of numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

template <typename... Pieces>
tl::unexpected<Error> refuse(const Pieces&... pieces) {
  return base::fail(Code::kFailedPrecondition, pieces...);
}

base::Status check_plugins(const std::vector<Opened>& all) {
  for (size_t p = 1; p < all.size(); ++p) {
    if (all[p].plugin != all[0].plugin)
      return refuse("the processes have different plugins: process 0 has ", all[0].plugin, "; process ", p,
                    " has ", all[p].plugin, ". Install the same version on all hosts");
    if (all[p].devices.size() != all[0].devices.size())
      return refuse("process 0 drives ", all[0].devices.size(), " devices, process ", p, " drives ",
                    all[p].devices.size(), ": give each process equally many (--devices)");
    if (all[0].told_slices > 1 && all[p].kind != all[0].kind)
      return refuse("process 0 has devices of ", all[0].kind, ", process ", p, " of ", all[p].kind,
                    ": all slices of a run must be of one type");
  }
  return {};
}

base::Status check_numbers(const std::vector<Opened>& all, const std::string& launcher) {
  std::vector<int> process_of(all.size(), -1);
  for (size_t p = 0; p < all.size(); ++p) {
    const Opened& one = all[p];
    if (one.processes != static_cast<int>(all.size()))
      return refuse(
          launcher, " started ", all.size(), " processes, but the plugin of process ", p, " (", one.plugin,
          ") knows the devices of ", one.processes,
          ". Start one process on each host of the slice, all hosts of it and no others; the plugin reads "
          "the slice from the host's metadata, or from TPU_WORKER_ID and TPU_WORKER_HOSTNAMES");
    if (one.process_index < 0 || one.process_index >= one.processes)
      return refuse("the plugin says that process ", p, " of ", launcher, " is its number ",
                    one.process_index, " of ", one.processes, ": expected numbers from 0 to ",
                    one.processes - 1);
    int& known = process_of[static_cast<size_t>(one.process_index)];
    if (known >= 0)
      return refuse("processes ", known, " and ", p, " of ", launcher, " are both number ", one.process_index,
                    " to the plugin: each needs a number of its own (TPU_WORKER_ID, CLOUD_TPU_TASK_ID)");
    known = static_cast<int>(p);
  }
  return {};
}

// Returns the slice of a process: the plugin's number, else the launcher's.
int slice_of(const Opened& one) { return one.slice >= 0 ? one.slice : one.told_slice; }

// Compares what the plugin knows of slices with what the launcher says.
base::Status check_slices(const std::vector<Opened>& all, const std::string& launcher) {
  std::map<int, size_t> processes;  // of each slice
  for (const Opened& one : all) ++processes[slice_of(one)];
  const int told = all[0].told_slices;
  const bool plugin_knows = all[0].slice >= 0;
  if (told > 1 && plugin_knows && processes.size() != static_cast<size_t>(told))
    return refuse(launcher, " started processes for ", told,
                  " slices (MEGASCALE_NUM_SLICES), but the plugin (", all[0].plugin,
                  ") knows the devices of ", processes.size(),
                  ": start the processes of all slices, and of no others");
  for (size_t p = 0; p < all.size(); ++p) {
    const Opened& one = all[p];
    if (told > 1 && plugin_knows && one.slice != one.told_slice)
      return refuse("process ", p, " of ", launcher, " is in slice ", one.slice,
                    " by its plugin, but in slice ", one.told_slice,
                    " by MEGASCALE_SLICE_ID: number the slices as the plugin does");
    if (processes[slice_of(one)] != processes[slice_of(all[0])])
      return refuse("slice ", slice_of(all[0]), " has ", processes[slice_of(all[0])], " processes, slice ",
                    slice_of(one), " has ", processes[slice_of(one)],
                    ": all slices of a run must have the same topology");
  }
  return {};
}

base::Status check_driven_once(const std::vector<Opened>& all) {
  std::set<int> seen;
  for (const Opened& one : all) {
    for (int device : one.devices) {
      if (!seen.insert(device).second)
        return refuse("device ", device, " is driven by two replicas: give each process devices of its own");
    }
  }
  return {};
}

}  // namespace

std::string to_text(const Opened& opened) {
  return base::str(opened.process_index, ' ', opened.processes, ' ', opened.spans_processes ? 1 : 0, ' ',
                   opened.slice, ' ', opened.told_slice, ' ', opened.told_slices, '\n',
                   base::join(opened.devices, " "), '\n', base::printable_line(opened.kind), '\n',
                   opened.plugin);
}

base::Result<Opened> opened_from(std::string_view text) {
  const size_t first = text.find('\n');
  const size_t second = first == std::string_view::npos ? first : text.find('\n', first + 1);
  const size_t third = second == std::string_view::npos ? second : text.find('\n', second + 1);
  if (third == std::string_view::npos)
    return base::fail(Code::kInternal, "another process told \"", shown(text), "\" of its devices");
  SLUICE_TRY(const std::vector<int> head, numbers_of(text.substr(0, first)));
  if (head.size() != 6)
    return base::fail(Code::kInternal, "another process told \"", shown(text), "\" of its devices");
  Opened opened;
  opened.process_index = head[0];
  opened.processes = head[1];
  opened.spans_processes = head[2] != 0;
  opened.slice = head[3];
  opened.told_slice = head[4];
  opened.told_slices = head[5];
  SLUICE_TRY(opened.devices, numbers_of(text.substr(first + 1, second - first - 1)));
  opened.kind = base::printable(text.substr(second + 1, std::min<size_t>(third - second - 1, 200)));
  opened.plugin = base::printable(text.substr(third + 1));
  return opened;
}

base::Result<Agreement> agree(const std::vector<Opened>& all, int self, const std::string& launcher) {
  SLUICE_OK(check_plugins(all));
  const Opened& own = all[static_cast<size_t>(self)];
  if (!own.spans_processes) return Agreement{self, own.devices, {}, {}};
  SLUICE_OK(check_numbers(all, launcher));
  SLUICE_OK(check_slices(all, launcher));
  SLUICE_OK(check_driven_once(all));
  std::vector<const Opened*> in_order;
  for (const Opened& one : all) in_order.push_back(&one);
  std::sort(in_order.begin(), in_order.end(), [](const Opened* a, const Opened* b) {
    return std::pair(slice_of(*a), a->process_index) < std::pair(slice_of(*b), b->process_index);
  });
  Agreement result;
  for (size_t p = 0; p < in_order.size(); ++p) {
    const Opened& one = *in_order[p];
    if (&one == &own) result.process_index = static_cast<int>(p);
    result.devices.insert(result.devices.end(), one.devices.begin(), one.devices.end());
    result.slice_of.insert(result.slice_of.end(), one.devices.size(), slice_of(one));
    result.process_of.insert(result.process_of.end(), one.devices.size(), static_cast<int64_t>(p));
  }
  if (result.process_index != self)
    base::info("process ", self, " of ", launcher, " is number ", result.process_index,
               " to the plugin, whose numbers decide which replica is which");
  return result;
}

base::Result<std::vector<int>> choose_devices(const std::vector<int>& local, const std::vector<int>& numbers,
                                              int count, bool several_processes) {
  if (numbers.empty()) {
    if (count > static_cast<int>(local.size()))
      return base::fail(Code::kInvalidArgument, "expected at most ", local.size(),
                        " devices, which is what this process has, found --devices ", count);
    return std::vector<int>(local.begin(), local.begin() + count);
  }
  std::vector<int> chosen;
  for (int number : numbers) {
    const bool there = several_processes ? number >= 0 && number < static_cast<int>(local.size())
                                         : std::find(local.begin(), local.end(), number) != local.end();
    if (!there && several_processes)
      return base::fail(Code::kNotFound, "there is no device ", number, " in this process, which has ",
                        local.size(), ": with several processes --device-ids counts within each, from 0 to ",
                        local.size() - 1);
    if (!there)
      return base::fail(Code::kNotFound, "there is no device ", number, " on this host, which has ",
                        base::join(local, ", "), "; `sluice devices` lists them");
    const int device = several_processes ? local[static_cast<size_t>(number)] : number;
    if (std::find(chosen.begin(), chosen.end(), device) != chosen.end())
      return base::fail(Code::kInvalidArgument, "device ", number, " is given twice in --device-ids");
    chosen.push_back(device);
  }
  return chosen;
}

}  // namespace sluice::device
