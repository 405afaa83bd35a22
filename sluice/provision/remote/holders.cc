#include "sluice/provision/remote/holders.h"

#include <algorithm>
#include <charconv>

#include "sluice/base/text/strings.h"

namespace sluice::provision {
namespace {

// Identifies a chip by the end of its path, so that a container's view of it counts too. Users other than
// root try sudo, as only root sees what other users' processes have open.
constexpr char kFindHolders[] = R"SH(
if [ "$(id -u)" = 0 ]; then as_root() { "$@"; }
elif sudo -n true 2>/dev/null; then as_root() { sudo -n "$@"; }
else as_root() { "$@"; }; echo partial; fi
find_holders() {
  as_root find /proc/[0-9]*/fd -maxdepth 1 \( -lname '*/dev/accel[0-9]*' -o -lname '*/dev/vfio/[0-9]*' \
    -o -lname '/tmp/libtpu_lockfile' \) -printf '%p %l\n' 2>/dev/null | sort -u
}
)SH";

constexpr char kShowHolders[] = R"SH(
me=$(id -u)
find_holders | while read -r path device; do
  process=${path#/proc/} process=${process%%/*}
  echo "device $process $device"
done
find_holders | cut -d/ -f3 | sort -un | while read -r process; do
  set -- $(stat -c '%u %U %Y' "/proc/$process" 2>/dev/null) || continue
  own=0
  [ "$1" = "$me" ] && own=1
  command=$(as_root cat "/proc/$process/cmdline" 2>/dev/null | tr '\000-\037' ' ' | head -c 300)
  echo "process $process $own $2 $3 $command"
done
grep -lzx supervise /proc/[0-9]*/cmdline 2>/dev/null | while read -r path; do
  tr '\0' '\n' <"$path" 2>/dev/null | sed -n 's|^.*/sluice/workers/\([^/]*\)/\([^/]*\)/supervisor\.sh$|worker \1 \2|p'
done | sort -u
)SH";

constexpr char kEndHolders[] = R"SH(
mine() { [ "$(stat -c %u "/proc/$1" 2>/dev/null)" = "$(id -u)" ] && find_holders | grep -q "^/proc/$1/"; }
left() { for process in $processes; do mine "$process" && echo "$process"; done; }
waited=0
for signal in INT TERM KILL; do
  for process in $(left); do kill -s $signal "$process" 2>/dev/null; done
  case $signal in INT) until=$((grace * 20 / 3)) ;; TERM) until=$((grace * 10)) ;; KILL) until=$((grace * 10 + 20)) ;; esac
  while [ "$waited" -lt "$until" ] && [ -n "$(left)" ]; do sleep 0.1; waited=$((waited + 1)); done
done
for process in $(left); do echo "left $process"; done
)SH";

bool to_number(const std::string& text, double& number) {
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && at == text.data() + text.size();
}

// Reads "PROCESS OWN USER STARTED COMMAND…".
bool read_process(const std::vector<std::string>& words, const std::string& line, Holder& holder) {
  double process = 0;
  if (words.size() < 5 || !to_number(words[1], process) || !to_number(words[4], holder.started)) return false;
  holder.process = static_cast<int>(process);
  holder.own = words[2] == "1";
  holder.user = words[3];
  size_t at = 0;
  for (int word = 0; word < 5 && at != std::string::npos; ++word)
    at = line.find(' ', at + (word > 0 ? 1 : 0));
  holder.command = at == std::string::npos ? "" : std::string(base::trim(line.substr(at)));
  return true;
}

}  // namespace

std::string look_for_holders_script() { return std::string(kFindHolders) + kShowHolders; }

base::Result<HostUse> parse_host_use(const std::string& output) {
  HostUse use;
  std::vector<std::pair<double, std::string>> devices;
  for (const std::string& line : base::split(output, '\n')) {
    const auto words = base::split(line, ' ');
    Holder holder;
    double process = 0;
    if (line.empty()) continue;
    if (line == "partial") {
      use.sees_all = false;
    } else if (words[0] == "device" && words.size() >= 3 && to_number(words[1], process)) {
      devices.emplace_back(process, words[2]);
    } else if (words[0] == "process" && read_process(words, line, holder)) {
      use.holders.push_back(std::move(holder));
    } else if (words[0] == "worker" && words.size() == 3) {
      use.workers.push_back({words[1], words[2]});
    } else {
      return base::fail(Code::kDataLoss, "the host's answer about its processes is not understood: ", line);
    }
  }
  for (Holder& holder : use.holders)
    for (const auto& [process, device] : devices)
      if (static_cast<int>(process) == holder.process &&
          std::find(holder.devices.begin(), holder.devices.end(), device) == holder.devices.end())
        holder.devices.push_back(device);
  return use;
}

std::string end_holders_script(const std::vector<int>& processes, int grace) {
  return base::str("processes='", base::join(processes, " "), "'\ngrace=", grace, '\n', kFindHolders,
                   kEndHolders);
}

}  // namespace sluice::provision
