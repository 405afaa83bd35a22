#include "sluice/replica/transport/transport.h"

#include <algorithm>
#include <cstdlib>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/replica/transport/shared_transport.h"
#include "sluice/replica/transport/socket_transport.h"

namespace sluice::replica {
namespace {

// Returns the id of this machine until its next start; empty if the system does not report it.
std::string machine() {
  return std::string(base::trim(base::read_file("/proc/sys/kernel/random/boot_id").value_or("")));
}

// Returns a transport through shared memory if all processes can open the same: they are on one machine (and
// in one container). Else nothing.
base::Result<std::shared_ptr<collectives::Transport>> try_shared_memory(
    const std::shared_ptr<Processes>& all_processes) {
  Processes& processes = *all_processes;
  std::unique_ptr<SharedSegment> segment;
  const std::string wanted = base::environment("SLUICE_TRANSPORT").value_or("");
  if (wanted != "" && wanted != "shared" && wanted != "sockets")
    return base::fail(Code::kInvalidArgument, "SLUICE_TRANSPORT is \"", wanted,
                      "\": expected shared (memory), sockets, or nothing for the best that works");
  if (processes.index() == 0 && wanted != "sockets") {
    auto made = SharedSegment::create(processes.count());
    if (made)
      segment = std::move(*made);
    else
      base::warn(made.error().what(), ": collectives between the processes go through sockets");
  }
  const std::string mine = base::str(machine(), '\n', wanted);
  SLUICE_TRY(const auto all,
             processes.gather("machine", base::str(mine, '\n', segment ? segment->name() : "")));
  const std::string name = all[0].substr(all[0].rfind('\n') + 1);
  const bool together =
      name != "" && machine() != "" && std::all_of(all.begin(), all.end(), [&](const auto& other) {
        return other.substr(0, other.rfind('\n')) == mine;
      });
  std::shared_ptr<collectives::Transport> transport;
  if (together && processes.index() != 0) {
    if (auto opened = SharedSegment::open(name, processes.count())) segment = std::move(*opened);
  }
  if (together && segment)
    transport = make_shared_transport(
        std::move(segment), processes.index(), processes.count(), collective_timeout(),
        {[all_processes] { return all_processes->status(); },
         [all_processes](const std::string& reason) { return all_processes->end(reason); }});
  SLUICE_TRY(const auto opened, processes.gather("shared memory", transport ? "open" : ""));
  if (together && processes.index() == 0) SharedSegment::remove(name);
  const bool everywhere =
      std::all_of(opened.begin(), opened.end(), [](const auto& text) { return text == "open"; });
  if (!everywhere) transport.reset();
  if (wanted == "shared" && !everywhere)
    return base::fail(Code::kFailedPrecondition, "SLUICE_TRANSPORT is \"shared\", but not all of the ",
                      processes.count(),
                      " processes can open the same shared memory: they must run on one machine, ",
                      "and with one /dev/shm that has room");
  return transport;
}

}  // namespace

base::Result<std::shared_ptr<collectives::Transport>> make_transport(
    const std::shared_ptr<Processes>& processes) {
  SLUICE_TRY(auto transport, try_shared_memory(processes));
  if (transport != nullptr) return transport;
  return make_socket_transport(processes);
}

std::chrono::milliseconds collective_timeout() {
  const double seconds = base::environment_seconds("SLUICE_COLLECTIVE_TIMEOUT", 1800, 0.001);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace sluice::replica
