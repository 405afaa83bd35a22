#include "sluice/pjrt/machine/machine.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/strings.h"

namespace sluice::pjrt {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kGoogle = "0x1ae0";

// Returns 12 for "accel12" with the prefix "accel"; nullopt for other names.
std::optional<int> number_behind(std::string_view name, std::string_view prefix) {
  if (!base::starts_with(name, prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return base::number_of<int>(name);
}

std::vector<std::string> names_in(const std::string& folder) {
  const auto names = base::list_directory(folder);
  return names ? *names : std::vector<std::string>();
}

// Returns the files folder/prefixN in the order of N.
std::vector<std::string> numbered_files(const std::string& folder, std::string_view prefix) {
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& name : names_in(folder)) {
    if (const auto number = number_behind(name, prefix)) found.emplace_back(*number, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  for (const auto& [number, name] : found) files.push_back(base::join_path(folder, name));
  return files;
}

// Returns the one word in a file of /sys; empty if it cannot be read.
std::string word_of(const std::string& folder, const char* name) {
  const auto text = base::read_file(base::join_path(folder, name));
  return text ? std::string(base::trim(*text)) : std::string();
}

// Returns the generation of a Google device on the PCI bus; empty if it is not a TPU (a network card, a
// disk).
std::string kind_of(const std::string& folder) {
  const std::string device = word_of(folder, "device");
  if (device == "0x0027") {
    const std::string board = word_of(folder, "subsystem_device");
    return board == "0x004e" ? "TPU v2" : board == "0x004f" ? "TPU v3" : "TPU v2 or v3";
  }
  for (const auto& [id, kind] :
       {std::pair("0x0056", "TPU"), std::pair("0x005e", "TPU v4"), std::pair("0x0062", "TPU v5p"),
        std::pair("0x0063", "TPU v5e"), std::pair("0x006f", "TPU v6e"), std::pair("0x0076", "TPU7x")}) {
    if (device == id) return kind;
  }
  // A later generation is recognized by its PCI class: an accelerator, or an unassigned class.
  const std::string kind = word_of(folder, "class");
  const bool accelerator = base::starts_with(kind, "0x12") || base::starts_with(kind, "0xff");
  return accelerator ? base::str("TPU (PCI device ", device, ")") : "";
}

struct PciTpus {
  int chips = 0;
  std::string kind;
  std::set<std::string> groups;  // the numbers of their files in /dev/vfio
};

PciTpus tpus_on_bus(const std::string& root) {
  PciTpus found;
  const std::string bus = base::join_path(root, "sys/bus/pci/devices");
  for (const std::string& name : names_in(bus)) {
    const std::string folder = base::join_path(bus, name);
    if (word_of(folder, "vendor") != kGoogle) continue;
    const std::string kind = kind_of(folder);
    if (kind.empty()) continue;
    ++found.chips;
    found.kind = kind;
    std::error_code error;
    const fs::path group = fs::read_symlink(base::join_path(folder, "iommu_group"), error);
    if (!error) found.groups.insert(group.filename().string());
  }
  return found;
}

// /dev/vfio also has other devices for programs: if the bus shows the chips, only the chips' files count.
std::vector<std::string> vfio_files(const std::string& root, const PciTpus& tpus) {
  std::vector<std::string> files = numbered_files(base::join_path(root, "dev/vfio"), "");
  if (tpus.groups.empty()) return files;
  std::erase_if(files, [&](const std::string& file) {
    return tpus.groups.count(fs::path(file).filename().string()) == 0;
  });
  return files;
}

}  // namespace

Machine find_machine(const std::string& root) {
  Machine machine;
  const PciTpus tpus = tpus_on_bus(root);
  machine.tpu_files = numbered_files(base::join_path(root, "dev"), "accel");
  if (machine.tpu_files.empty() && tpus.chips > 0) machine.tpu_files = vfio_files(root, tpus);
  machine.tpu_chips = machine.tpu_files.empty() ? tpus.chips : static_cast<int>(machine.tpu_files.size());
  if (machine.has_tpu()) machine.tpu_kind = tpus.kind.empty() ? "TPU" : tpus.kind;
  machine.gpu_files = numbered_files(base::join_path(root, "dev"), "nvidia");
  // WSL has one file for all GPUs.
  const std::string windows = base::join_path(root, "dev/dxg");
  if (machine.gpu_files.empty() && base::path_exists(windows)) machine.gpu_files = {windows};
  machine.lock_file = base::join_path(root, "tmp/libtpu_lockfile");
  return machine;
}

Machine find_machine() {
  const std::string root = base::environment("SLUICE_MACHINE_ROOT").value_or("/");
  std::error_code error;
  const fs::path found = fs::canonical(root, error);  // the spelling in which the system names open files
  return find_machine(error ? root : found.string());
}

std::string range_text(const std::vector<std::string>& files) {
  if (files.size() < 2) return base::join(files, ", ");
  const std::string& first = files.front();
  const size_t digits = first.find_last_not_of("0123456789") + 1;
  const auto begin = number_behind(first, first.substr(0, digits));
  for (size_t i = 0; i < files.size(); ++i) {
    const auto number = number_behind(files[i], first.substr(0, digits));
    if (!begin || !number || *number != *begin + static_cast<int>(i)) return base::join(files, ", ");
  }
  return base::str(first, "…", *begin + static_cast<int>(files.size()) - 1);
}

std::string Machine::tpu_text() const {
  if (!has_tpu()) return "no TPU";
  return base::str(base::counted(tpu_chips, "chip"), " of ", tpu_kind, " (",
                   tpu_files.empty() ? "on the PCI bus, without device files" : range_text(tpu_files), ")");
}

std::string Machine::gpu_text() const {
  if (!has_gpu()) return "no GPU";
  return base::str(base::counted(static_cast<int64_t>(gpu_files.size()), "NVIDIA GPU"), " (",
                   range_text(gpu_files), ")");
}

}  // namespace sluice::pjrt
