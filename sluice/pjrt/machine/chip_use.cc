#include "sluice/pjrt/machine/chip_use.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sluice/base/environment.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::pjrt {
namespace {

// Returns the files of the chips that the environment chooses for this process; all chips if it chooses none.
std::vector<std::string> visible_files(const Machine& machine) {
  for (const char* variable : {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"}) {
    const auto chosen = base::environment(variable);
    if (!chosen) continue;
    std::vector<std::string> files;
    for (const std::string& part : base::split(*chosen, ',')) {
      const std::string_view number = base::trim(part);
      const auto chip = base::number_of<size_t>(number);
      if (chip && *chip < machine.tpu_files.size()) files.push_back(machine.tpu_files[*chip]);
    }
    return files;
  }
  return machine.tpu_files;
}

// libtpu takes its lock only if the process uses all chips.
bool wants_lock() {
  for (const char* variable : {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "TPU_CHIPS_PER_PROCESS_BOUNDS"}) {
    if (base::environment(variable)) return false;
  }
  return true;
}

// Returns the mode in octal, as chmod takes it: "0660".
std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

bool allowed(const std::string& file) {
  return ::faccessat(AT_FDCWD, file.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
}

std::string how_to_get_rights(const std::string& file, const struct stat& status) {
  const std::string user = name_of_user(::geteuid());
  if (status.st_gid != 0 && (status.st_mode & 0060) == 0060)
    return base::str("run `sudo usermod -aG ", name_of_group(status.st_gid), " ", user,
                     "` and log in again, or run as root");
  const bool vfio = file.find("/vfio/") != std::string::npos;
  return base::str("run as root, or give all users the chips: `echo '",
                   vfio ? "SUBSYSTEM==\"vfio\"" : "KERNEL==\"accel[0-9]*\"",
                   ", MODE=\"0666\"' | sudo tee /etc/udev/rules.d/99-tpu.rules && sudo udevadm control "
                   "--reload && sudo udevadm trigger`");
}

}  // namespace

base::Status check_rights(const Machine& machine) {
  for (const std::string& file : visible_files(machine)) {
    struct stat status {};
    if (allowed(file) || ::stat(file.c_str(), &status) != 0) continue;
    return base::fail(Code::kPermissionDenied, "no permission to use ", file, ": it belongs to user ",
                      name_of_user(status.st_uid), " and group ", name_of_group(status.st_gid),
                      ", with mode ", octal(status.st_mode), ", and this is user ", name_of_user(::geteuid()),
                      "; ", how_to_get_rights(file, status));
  }
  return {};
}

std::vector<Holder> chip_holders(const Machine& machine) {
  if (!machine.has_tpu() || base::environment_flag("ALLOW_MULTIPLE_LIBTPU_LOAD", false)) return {};
  std::vector<Holder> holders = holders_of(visible_files(machine));
  if (!wants_lock()) return holders;
  const auto locked = holder_of_lock(machine.lock_file);
  const auto same = [&](const Holder& holder) { return holder.process == locked->process; };
  if (locked && std::none_of(holders.begin(), holders.end(), same)) holders.push_back(*locked);
  return holders;
}

base::Status check_chips(const Machine& machine) {
  if (!machine.has_tpu()) return {};
  if (machine.tpu_files.empty()) {
    return base::fail(Code::kFailedPrecondition,
                      "the chips have no device files (/dev/accelN or /dev/vfio/N): "
                      "in a container, start it with `docker run --privileged` or with a --device for each "
                      "file; on a machine of its own, restart it");
  }
  const std::vector<Holder> holders = chip_holders(machine);
  if (!holders.empty()) {
    std::vector<std::string> texts, numbers;
    for (const Holder& holder : holders) {
      texts.push_back(holder.text());
      if (holder.process > 0) numbers.push_back(std::to_string(holder.process));
    }
    return base::fail(Code::kUnavailable, "the chips are held by ", base::join(texts, "; "),
                      ": wait for it, or end it",
                      numbers.empty() ? "" : base::str(" with `kill ", base::join(numbers, " "), "`"));
  }
  return check_rights(machine);
}

std::string chips_finding(const Machine& machine) {
  if (!machine.has_tpu())
    return base::str("; this machine shows no TPU: no chip on its PCI bus, no /dev/accelN");
  if (const auto status = check_chips(machine); !status) return base::str("; ", status.error().what());
  if (::geteuid() == 0) return {};
  return "; processes of other users are not seen by this one: `sudo sluice devices` shows who holds the "
         "chips";
}

}  // namespace sluice::pjrt
