// The accelerators that this machine has, as its device files and its PCI bus show them. Nothing is opened
// and nobody is asked: neither the chips nor Google's metadata server.
#pragma once

#include <string>
#include <vector>

namespace sluice::pjrt {

struct Machine {
  // TPU chips that this process could open: the device files if there are any, else what the PCI bus shows.
  int tpu_chips = 0;
  std::string tpu_kind;                // "TPU v3"; "TPU" where the bus does not say which
  std::vector<std::string> tpu_files;  // "/dev/accel0" … or "/dev/vfio/0" …; in the order of the chips
  std::vector<std::string> gpu_files;  // "/dev/nvidia0" …, one a GPU
  std::string lock_file;               // which the process that uses the chips holds a lock on
  bool has_tpu() const { return tpu_chips > 0; }
  bool has_gpu() const { return !gpu_files.empty(); }
  // "4 chips of TPU v3 (/dev/accel0…3)"; of a machine without chips "no TPU".
  std::string tpu_text() const;
  // "2 NVIDIA GPUs (/dev/nvidia0…1)", or "no GPU".
  std::string gpu_text() const;
};

// Looks below `root`, where /dev, /sys, /proc and /tmp are looked for.
Machine find_machine(const std::string& root);
// The same below $SLUICE_MACHINE_ROOT, else "/". The variable is for tests, and an empty folder hides the
// accelerators, as in a container that was not meant to have them.
Machine find_machine();

// "/dev/accel0…3" for files that are numbered without a gap; else all of them, separated by commas.
std::string range_text(const std::vector<std::string>& files);

}  // namespace sluice::pjrt
