// The accelerators of this machine, according to its device files and its PCI bus. Nothing is opened, and
// neither the chips nor Google's metadata server are asked.
#pragma once

#include <string>
#include <vector>

namespace sluice::pjrt {

struct Machine {
  // TPU chips that this process could open: the device files if there are any, else the chips on the PCI bus.
  int tpu_chips = 0;
  std::string tpu_kind;                // "TPU v3"; "TPU" if the bus does not show the generation
  std::vector<std::string> tpu_files;  // "/dev/accel0" … or "/dev/vfio/0" …; in the order of the chips
  std::vector<std::string> gpu_files;  // "/dev/nvidia0" …, one for each GPU
  std::string lock_file;               // the process that uses the chips holds a lock on it
  bool has_tpu() const { return tpu_chips > 0; }
  bool has_gpu() const { return !gpu_files.empty(); }
  // Returns "4 chips of TPU v3 (/dev/accel0…3)", or "no TPU" for a machine without chips.
  std::string tpu_text() const;
  // Returns "2 NVIDIA GPUs (/dev/nvidia0…1)", or "no GPU".
  std::string gpu_text() const;
};

// Looks at /dev, /sys, /proc and /tmp below `root`.
Machine find_machine(const std::string& root);
// Looks below $SLUICE_MACHINE_ROOT, else "/". The variable is for tests; an empty folder hides the
// accelerators, as in a container without them.
Machine find_machine();

// Returns "/dev/accel0…3" for files that are numbered without a gap; else all of them, separated by commas.
std::string range_text(const std::vector<std::string>& files);

}  // namespace sluice::pjrt
