#include "sluice/replica/slices.h"

#include <algorithm>

#include "sluice/base/text/hostlist.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"

namespace sluice::replica {
namespace slices_detail {

constexpr int kMaxSlices = 4096;
constexpr const char* kRemedy =
    ". Start the processes with `sluice run`, or set MEGASCALE_NUM_SLICES, MEGASCALE_SLICE_ID (from 0) and "
    "MEGASCALE_COORDINATOR_ADDRESS (worker 0 of slice 0, the same in all processes), or none of them for one "
    "slice";

template <typename... Pieces>
tl::unexpected<Error> wrong(const Pieces&... pieces) {
  return base::fail(Code::kFailedPrecondition,
                    "the environment of several TPU slices is not usable: ", pieces..., kRemedy);
}

base::Result<int> number(const Getter& get, const char* name, int smallest, int largest) {
  const auto text = get(name);
  if (!text) return wrong(name, " is not set although other MEGASCALE variables are");
  const auto value = base::number_of<int>(*text);
  if (value && *value >= smallest && *value <= largest) return *value;
  return wrong(name, " is \"", base::printable_line(*text), "\": expected a whole number from ", smallest,
               " to ", largest);
}

// Returns the host of the coordinator, where Sluice's processes meet too.
std::string host_of(const SlicePlace& slice) { return base::split_host_and_port(slice.coordinator)->host; }

// Numbers the processes of one slice among the processes of all slices.
void count_all(Placement& placement, const SlicePlace& slice) {
  const int own = placement.processes;
  const auto before = base::split_host_and_port(placement.coordinator);
  const int port = before && before->port > 0 ? before->port : kTpuMeetingPort;
  placement.coordinator = base::host_and_port(host_of(slice), port);
  placement.processes = own * slice.count;
  placement.process_id += own * slice.index;
  std::vector<std::string> hosts(static_cast<size_t>(placement.processes));
  std::copy(placement.hosts.begin(), placement.hosts.end(), hosts.begin() + own * slice.index);
  placement.hosts = std::move(hosts);
}

// Returns "worker 1", "workers 0 to 3, 7".
std::string workers_text(const std::vector<int>& workers) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < workers.size();) {
    size_t last = i;
    while (last + 1 < workers.size() && workers[last + 1] == workers[last] + 1) ++last;
    ranges.push_back(last - i < 2 ? base::str(workers[i]) : base::str(workers[i], " to ", workers[last]));
    i = last - i < 2 ? i + 1 : last + 1;
  }
  return base::str(base::plural(static_cast<int64_t>(workers.size()), "worker"), " ",
                   base::join(ranges, ", "));
}

// Returns " (a, b)" with the hosts that are known of them; "" if none is.
std::string hosts_text(const Placement& placement, const std::vector<int>& processes) {
  std::vector<std::string> names;
  for (const int process : processes)
    if (static_cast<size_t>(process) < placement.hosts.size() &&
        !placement.hosts[static_cast<size_t>(process)].empty())
      names.push_back(placement.hosts[static_cast<size_t>(process)]);
  return names.empty() ? "" : base::str(" (", base::join(names, ", "), ")");
}

// Describes these processes of one slice.
std::string part_text(const Placement& placement, int slice, const std::vector<int>& processes) {
  std::vector<int> workers;
  for (const int process : processes) workers.push_back(process - slice * processes_of_slice(placement));
  const bool all = static_cast<int>(workers.size()) == processes_of_slice(placement);
  return base::str(
      all && workers.size() > 1 ? base::str("all ", workers.size(), " workers") : workers_text(workers),
      " of slice ", slice, hosts_text(placement, processes));
}

}  // namespace slices_detail

base::Result<SlicePlace> find_slice(const Getter& get) {
  namespace detail = slices_detail;
  SlicePlace slice;
  slice.type = base::printable_line(get("TPU_ACCELERATOR_TYPE").value_or(""));
  const char* const names[] = {"MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID", "MEGASCALE_COORDINATOR_ADDRESS"};
  if (std::none_of(std::begin(names), std::end(names), [&](const char* name) { return get(name); }))
    return slice;
  SLUICE_TRY(slice.count, detail::number(get, names[0], 1, detail::kMaxSlices));
  SLUICE_TRY(slice.index, detail::number(get, names[1], 0, detail::kMaxSlices));
  if (slice.index >= slice.count)
    return detail::wrong("MEGASCALE_SLICE_ID is ", slice.index, ", but MEGASCALE_NUM_SLICES is ", slice.count,
                         ": slices are numbered from 0 to ", slice.count - 1);
  if (slice.count == 1) return slice;
  slice.coordinator = get(names[2]).value_or("");
  if (slice.coordinator.empty())
    return detail::wrong(names[2], " is not set although other MEGASCALE variables are");
  const auto place = base::split_host_and_port(slice.coordinator);
  if (!place)
    return detail::wrong(names[2], " is \"", base::printable_line(slice.coordinator),
                         "\": expected host or host:port");
  return slice;
}

base::Result<Placement> in_slices(Placement placement, const SlicePlace& slice, bool of_one_slice) {
  namespace detail = slices_detail;
  placement.slice = slice;
  if (slice.count == 1) return placement;
  if (of_one_slice) {
    detail::count_all(placement, slice);
    return placement;
  }
  if (placement.processes % slice.count != 0)
    return detail::wrong("MEGASCALE_NUM_SLICES is ", slice.count, ", and ", placement.source, " started ",
                         base::counted(placement.processes, "process"),
                         ": expected the same number of processes for each slice");
  if (const int expected = slice_of(placement, placement.process_id); expected != slice.index)
    return detail::wrong("MEGASCALE_SLICE_ID is ", slice.index, ", but process ", placement.process_id,
                         " of ", placement.processes, " (", placement.source, ") belongs to slice ", expected,
                         ": the processes of slice 0 come first, then those of slice 1");
  return placement;
}

std::string process_text(const Placement& placement, int process) {
  std::vector<std::string> facts;
  if (placement.slice.count > 1)
    facts = {base::str("slice ", slice_of(placement, process)),
             base::str("worker ", process % processes_of_slice(placement))};
  if (static_cast<size_t>(process) < placement.hosts.size() &&
      !placement.hosts[static_cast<size_t>(process)].empty())
    facts.push_back(placement.hosts[static_cast<size_t>(process)]);
  return facts.empty() ? std::to_string(process) : base::str(process, " (", base::join(facts, ", "), ")");
}

std::string processes_text(const Placement& placement, const std::vector<int>& processes) {
  std::vector<std::string> parts;
  if (placement.slice.count == 1) {
    for (const int process : processes) parts.push_back(process_text(placement, process));
    return base::str(base::plural(static_cast<int64_t>(processes.size()), "process"), " ",
                     base::join(parts, ", "));
  }
  for (size_t first = 0; first < processes.size();) {
    const int slice = slice_of(placement, processes[first]);
    size_t end = first;
    while (end < processes.size() && slice_of(placement, processes[end]) == slice) ++end;
    parts.push_back(slices_detail::part_text(
        placement, slice,
        {processes.begin() + static_cast<int64_t>(first), processes.begin() + static_cast<int64_t>(end)}));
    first = end;
  }
  return base::join(parts, ", ");
}

std::string line_of(const SlicePlace& slice) {
  if (slice.count == 1) return "";
  return base::join(
      std::vector<std::string>{base::str(slice.index), base::str(slice.count), slice.coordinator, slice.type},
      "\t");
}

base::Status check_line(const Placement& own, int other, const std::string& line) {
  const SlicePlace& mine = own.slice;
  if (line.empty() && mine.count == 1) return {};
  auto theirs = base::split(line, '\t');
  theirs.resize(4);
  const auto refuse = [&](const std::string& what, const std::string& here, const std::string& there,
                          const char* remedy) -> base::Status {
    return base::fail(Code::kFailedPrecondition, "the TPU slices do not fit together: process ",
                      process_text(own, own.process_id), " has ", what, " ", here, ", process ",
                      process_text(own, other), " has ", base::printable_line(there.substr(0, 200)), remedy);
  };
  const std::string count = theirs[1].empty() ? "1" : theirs[1];
  if (count != std::to_string(mine.count))
    return refuse("MEGASCALE_NUM_SLICES", std::to_string(mine.count), count,
                  ": it must be the same in all processes of all slices");
  if (theirs[2] != mine.coordinator)
    return refuse("MEGASCALE_COORDINATOR_ADDRESS", mine.coordinator, theirs[2],
                  ": it must be worker 0 of slice 0, in the same words in all processes");
  if (!theirs[3].empty() && !mine.type.empty() && theirs[3] != mine.type)
    return refuse("a slice of type", mine.type, theirs[3],
                  ": the slices of a run must be of one type. Choose slices of one type");
  if (theirs[0] != std::to_string(slice_of(own, other)))
    return refuse("MEGASCALE_SLICE_ID", std::to_string(mine.index), theirs[0],
                  base::str(": expected ", slice_of(own, other), " there").c_str());
  return {};
}

}  // namespace sluice::replica
