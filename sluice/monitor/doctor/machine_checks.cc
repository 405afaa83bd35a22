#include "sluice/monitor/doctor/machine_checks.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/variables.h"
#include "sluice/monitor/chip_metrics.h"
#include "sluice/pjrt/machine/chip_use.h"

namespace sluice::monitor {
namespace {

using Level = Finding::Level;

constexpr unsigned long long kMiB = 1 << 20, kGiB = 1 << 30;
constexpr rlim_t kOpenFiles = 4096;  // the shards, connections and libraries of a training stay far below

// Says why no user is left who could end the process by Ctrl-C; "" if there may be one.
std::string abandoned(const pjrt::Holder& holder) {
  const auto facts = base::look_at_process(holder.process);
  if (!facts || holder.user != pjrt::name_of_user(::geteuid())) return "";
  if (facts->state == "T") return "it is stopped, as by Ctrl-Z";
  // The session's leader is the shell, or sshd's process, from which it was started.
  if (facts->session > 0 && facts->session != holder.process && !base::look_at_process(facts->session))
    return "the shell that it was started from is gone";
  return "";
}

void check_holders(const pjrt::Machine& machine, const Report& report) {
  const auto holders = pjrt::chip_holders(machine);
  for (const pjrt::Holder& holder : holders) {
    const std::string what =
        holder.files.empty() ? "libtpu's lock on all chips" : pjrt::range_text(holder.files);
    const std::string why = abandoned(holder);
    if (why.empty())
      report({Level::kNote, "holder", base::str(what, " is held by ", holder.text()),
              "one program at a time can use a chip: wait for it, or end it where it was started"});
    else
      report({Level::kProblem, "holder", base::str(what, " is held by ", holder.text(), ", and ", why),
              base::str("if it is not wanted any longer: sluice doctor --fix, or kill ", holder.process)});
  }
  if (!holders.empty()) return;
  const bool lock = base::path_exists(machine.lock_file);
  report({Level::kOk, "holder",
          base::str(
              "no process that is visible here holds a chip",
              lock ? base::str("; ", machine.lock_file, " is there and not locked, which is as it should be")
                   : "",
              ::geteuid() == 0 ? "" : " (only root sees processes of other users)"),
          ""});
}

// Returns the inodes of sockets that listen on the port: address 0100007F:20EF, state 0A in /proc/net/tcp.
std::vector<std::string> listening_sockets(int port) {
  char ending[16];
  std::snprintf(ending, sizeof ending, ":%04X", port);
  std::vector<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto text = base::read_file(table);
    if (!text) continue;
    for (const std::string& line : base::split(*text, '\n')) {
      std::vector<std::string> words = base::split(line, ' ');
      std::erase(words, "");
      if (words.size() > 9 && words[3] == "0A" && base::ends_with(words[1], ending))
        sockets.push_back(base::str("socket:[", words[9], "]"));
    }
  }
  return sockets;
}

struct Port {
  int number;
  std::string purpose;
};

std::vector<Port> ports_of_programs() {
  std::vector<Port> ports = {{8470, "older TPU runtimes"},
                             {8471, "older TPU runtimes"},
                             {8474, "the meeting of `sluice run` with one process per chip"},
                             {8476, "TPU runtimes, and the meeting of `sluice run`"},
                             {8482, "newer JAX"}};
  for (const int port : metrics_ports()) ports.push_back({port, "libtpu's metrics"});
  return ports;
}

void check_disk(const std::string& folder, const Report& report) {
  std::string there = folder;
  while (!base::is_directory(there) && there != "." && there != "/") {
    if (base::path_exists(there)) {
      report({Level::kProblem, "disk",
              base::str(there == folder ? "" : folder + ": ", there, " is a file, not a folder"),
              "choose another folder, or move the file away"});
      return;
    }
    there = base::parent_path(there);
  }
  struct statvfs disk {};
  if (::statvfs(there.c_str(), &disk) != 0) return;
  const bool is_memory = base::starts_with(folder, "/dev/shm");
  Finding finding = disk_finding(folder, disk.f_bavail * disk.f_frsize, is_memory);
  if (disk.f_files > 0 && disk.f_favail == 0)
    finding = {Level::kProblem, "disk", folder + ": no file can be added, all inodes are used",
               "remove files there, or choose another folder"};
  else if (::access(there.c_str(), W_OK | X_OK) != 0)
    finding = {Level::kProblem, "disk", base::str(folder, ": this user may not write in ", there),
               "choose another folder, or have its rights changed"};
  report(finding);
}

}  // namespace

void check_chips(const pjrt::Machine& machine, const Report& report) {
  const std::string found = base::str(machine.tpu_text(), ", ", machine.gpu_text());
  if (!machine.has_tpu()) {
    report({Level::kOk, "chips", found, ""});
    return;
  }
  if (machine.tpu_files.empty()) {
    report({Level::kProblem, "chips", found,
            "in a container: docker run --privileged, or --device for each file; else restart the machine"});
    return;
  }
  const auto usable = pjrt::check_rights(machine);
  report(usable ? Finding{Level::kOk, "chips", found, ""}
                : Finding{Level::kProblem, "chips", found, usable.error().what()});
  check_holders(machine, report);
}

std::vector<std::string> listeners_of(int port) {
  std::vector<std::string> listeners;
  for (const std::string& socket : listening_sockets(port)) {
    const auto holders = pjrt::holders_of({socket});
    if (holders.empty()) listeners.emplace_back();
    for (const pjrt::Holder& holder : holders) listeners.push_back(holder.text());
  }
  std::sort(listeners.begin(), listeners.end());
  listeners.erase(std::unique(listeners.begin(), listeners.end()), listeners.end());
  return listeners;
}

void check_ports(const pjrt::Machine& machine, const Report& report) {
  std::vector<std::string> users;
  for (const pjrt::Holder& holder : pjrt::chip_holders(machine)) users.push_back(holder.text());
  bool any = false;
  for (const Port& port : ports_of_programs()) {
    for (const std::string& listener : listeners_of(port.number)) {
      any = true;
      const bool is_tpu_program = std::find(users.begin(), users.end(), listener) != users.end();
      report({is_tpu_program ? Level::kOk : Level::kNote, "ports",
              base::str("port ", port.number, " (", port.purpose, ") is taken by ",
                        listener.empty() ? "a process of another user or container" : listener),
              is_tpu_program ? "" : "a program that needs it will fail while that one runs"});
    }
  }
  if (!any) report({Level::kOk, "ports", "the ports of TPU programs are free", ""});
}

Finding disk_finding(const std::string& folder, unsigned long long free, bool is_memory) {
  const std::string found = base::str(folder, ": ", base::memory_text(free), " free");
  const auto problem = is_memory ? 64 * kMiB : kGiB, note = is_memory ? kGiB : 10 * kGiB;
  const std::string advice =
      is_memory
          ? "processes of one machine exchange gradients there: remove what is left over; in a container, "
            "--shm-size 16g"
          : "remove what is not needed, or choose another folder: checkpoints and compiled programs are "
            "written while a training runs";
  if (free < problem) return {Level::kProblem, "disk", found, advice};
  if (free < note) return {Level::kNote, "disk", found, advice};
  return {Level::kOk, "disk", found, ""};
}

void check_disks(const std::vector<std::string>& folders, const Report& report) {
  for (const std::string& folder : folders) check_disk(folder, report);
  for (const char* folder : {"/tmp", "/dev/shm"}) check_disk(folder, report);
}

void check_limits(const pjrt::Machine& machine, const Report& report) {
  rlimit files{}, locked{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  const std::string open = base::str(files.rlim_cur, " open files");
  if (files.rlim_cur < kOpenFiles)
    report({Level::kNote, "limits", open, "ulimit -n 65536, before a program with many shards or workers"});
  else
    report({Level::kOk, "limits", open, ""});
  const bool vfio = !machine.tpu_files.empty() && machine.tpu_files[0].find("/vfio/") != std::string::npos;
  if (vfio && locked.rlim_cur != RLIM_INFINITY)
    report({Level::kNote, "limits",
            base::str(base::memory_text(locked.rlim_cur),
                      " of locked memory, and chips behind VFIO count what the host maps "
                      "for them as such"),
            "ulimit -l unlimited, or in a container --ulimit memlock=-1"});
  if (!machine.has_tpu()) return;
  const auto pages = base::read_file("/sys/kernel/mm/transparent_hugepage/enabled");
  if (pages && pages->find("[always]") == std::string::npos)
    report({Level::kNote, "huge pages", base::str("transparent huge pages: ", base::trim(*pages)),
            "echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled: TPU programs begin "
            "and end faster"});
  else if (pages)
    report({Level::kOk, "huge pages", "transparent huge pages are on", ""});
}

void check_variables(const Report& report) {
  const std::string idle = base::idle_variables();
  if (idle.empty()) {
    report({Level::kOk, "variables", "no variable is mistyped", ""});
    return;
  }
  for (const std::string& line : base::split(idle, '\n')) {
    const size_t colon = line.find(": ");
    const bool own = base::starts_with(line, "SLUICE_");
    report({own ? Level::kProblem : Level::kNote, "variables",
            base::str(line.substr(0, colon), " is set, and nothing here reads it"),
            own ? base::str(line.substr(colon + 2), " (docs/environment.md has all of them)")
                : line.substr(colon + 2)});
  }
}

}  // namespace sluice::monitor
