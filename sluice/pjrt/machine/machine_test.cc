#include "sluice/pjrt/machine/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sluice/pjrt/testing/machine_folder.h"

namespace sluice::pjrt {
namespace {

using testing::MachineFolder;

TEST(Machine, WithoutAccelerators) {
  const MachineFolder folder;
  const Machine machine = find_machine(folder.path());
  EXPECT_FALSE(machine.has_tpu());
  EXPECT_FALSE(machine.has_gpu());
  EXPECT_EQ(machine.tpu_text(), "no TPU");
  EXPECT_EQ(machine.gpu_text(), "no GPU");
  EXPECT_FALSE(find_machine(folder.path("missing")).has_tpu());
}

TEST(Machine, ChipsOfAV3) {
  MachineFolder folder;
  folder.add_chips(4);
  for (const char* address : {"0000:00:04.0", "0000:00:05.0", "0000:00:06.0", "0000:00:07.0"})
    folder.add_pci(address, "0x0027", "0xff0000", "0x004f");
  folder.add_pci("0000:00:08.0", "0x0042", "0x020000");  // Google's network card
  folder.touch("dev/accelerometer");
  const Machine machine = find_machine(folder.path());
  EXPECT_EQ(machine.tpu_chips, 4);
  EXPECT_EQ(machine.tpu_text(), "4 chips of TPU v3 (" + folder.path("dev/accel0") + "…3)");
}

TEST(Machine, Generations) {
  for (const auto& [device, kind] :
       std::vector<std::pair<std::string, std::string>>{{"0x0027", "TPU v2 or v3"},
                                                        {"0x005e", "TPU v4"},
                                                        {"0x0063", "TPU v5e"},
                                                        {"0x0062", "TPU v5p"},
                                                        {"0x006f", "TPU v6e"},
                                                        {"0x0076", "TPU7x"},
                                                        {"0x0099", "TPU (PCI device 0x0099)"}}) {
    MachineFolder folder;
    folder.add_pci("0000:00:04.0", device, "0x120000");
    folder.touch("dev/vfio/0");
    const Machine machine = find_machine(folder.path());
    EXPECT_EQ(machine.tpu_kind, kind);
    EXPECT_EQ(machine.tpu_text(), "1 chip of " + kind + " (" + folder.path("dev/vfio/0") + ")");
  }
}

TEST(Machine, OfVfioOnlyTheChipsCount) {
  MachineFolder folder;
  for (const char* name : {"dev/vfio/vfio", "dev/vfio/3", "dev/vfio/10", "dev/vfio/11", "dev/vfio/9"})
    folder.touch(name);
  // Other devices are passed on to programs too: without a chip on the bus there is no TPU.
  EXPECT_FALSE(find_machine(folder.path()).has_tpu());
  folder.add_pci("0000:00:04.0", "0x0063", "0x120000", "", 9);
  folder.add_pci("0000:00:05.0", "0x0063", "0x120000", "", 10);
  folder.add_pci("0000:00:06.0", "0x0063", "0x120000", "", 11);
  const Machine machine = find_machine(folder.path());
  EXPECT_EQ(machine.tpu_chips, 3);
  EXPECT_EQ(machine.tpu_text(), "3 chips of TPU v5e (" + folder.path("dev/vfio/9") + "…11)");
}

TEST(Machine, ChipsWithoutDeviceFiles) {
  MachineFolder folder;
  folder.add_pci("0000:00:04.0", "0x005e", "0x120000");
  folder.add_pci("0000:00:05.0", "0x005e", "0x120000");
  EXPECT_EQ(find_machine(folder.path()).tpu_text(),
            "2 chips of TPU v4 (on the PCI bus, without device files)");
}

TEST(Machine, ChipsWithoutABus) {
  MachineFolder folder;
  folder.add_chips(1);
  EXPECT_EQ(find_machine(folder.path()).tpu_text(), "1 chip of TPU (" + folder.path("dev/accel0") + ")");
}

TEST(Machine, Gpus) {
  MachineFolder folder;
  for (const char* name : {"dev/nvidia1", "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm"})
    folder.touch(name);
  EXPECT_EQ(find_machine(folder.path()).gpu_text(), "2 NVIDIA GPUs (" + folder.path("dev/nvidia0") + "…1)");
}

TEST(Machine, RangesWithGapsAreListed) {
  EXPECT_EQ(range_text({}), "");
  EXPECT_EQ(range_text({"/dev/accel2"}), "/dev/accel2");
  EXPECT_EQ(range_text({"/dev/vfio/2", "/dev/vfio/3"}), "/dev/vfio/2…3");
  EXPECT_EQ(range_text({"/dev/vfio/2", "/dev/vfio/4"}), "/dev/vfio/2, /dev/vfio/4");
}

TEST(Machine, TheVariableNamesTheRoot) {
  MachineFolder folder;
  folder.add_chips(2);
  const MachineFolder::Root root(folder.path() + "/.");
  EXPECT_EQ(find_machine().tpu_files.front(), folder.path("dev/accel0"));
}

}  // namespace
}  // namespace sluice::pjrt
