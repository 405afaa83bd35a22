// For tests: a folder that stands in for a machine's root, with device files and a PCI bus.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/environment.h"
#include "sluice/base/files/file.h"

namespace sluice::pjrt::testing {

// Sets a variable for its own lifetime; nullopt unsets it.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value)
      : name_(name), before_(base::environment(name)) {
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

class MachineFolder {
 public:
  // This folder is the machine's root while the object exists.
  struct Root : Variable {
    explicit Root(const std::string& path) : Variable("SLUICE_MACHINE_ROOT", path) {}
  };

  std::string path(const std::string& name = "") const {
    return name.empty() ? root_.path() : root_.path(name);
  }

  // Makes an empty file at this place, with the folders above it.
  std::string touch(const std::string& name) const { return write(name, ""); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = path(name);
    base::value_or_throw(base::make_directories(base::parent_path(file)));
    base::value_or_throw(base::write_file_atomically(file, text));
    return file;
  }

  // Adds /dev/accel0 …, as v2 to v4 have them.
  void add_chips(int count) const {
    for (int i = 0; i < count; ++i) touch("dev/accel" + std::to_string(i));
  }

  // Adds a Google device on the bus; `group` is its number under /dev/vfio.
  void add_pci(const std::string& address, const std::string& device, const std::string& device_class,
               const std::string& board = "", int group = -1) const {
    const std::string folder = "sys/bus/pci/devices/" + address;
    write(folder + "/vendor", "0x1ae0\n");
    write(folder + "/device", device + "\n");
    write(folder + "/class", device_class + "\n");
    if (!board.empty()) write(folder + "/subsystem_device", board + "\n");
    if (group >= 0)
      std::filesystem::create_symlink("../../../kernel/iommu_groups/" + std::to_string(group),
                                      path(folder + "/iommu_group"));
  }

 private:
  base::TemporaryDirectory root_ = base::value_or_throw(base::TemporaryDirectory::create("sluice-machine"));
};

}  // namespace sluice::pjrt::testing
