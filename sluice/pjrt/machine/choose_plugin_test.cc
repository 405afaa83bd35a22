#include "sluice/pjrt/machine/choose_plugin.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sluice/pjrt/testing/machine_folder.h"

namespace sluice::pjrt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MachineFolder;
using testing::Variable;

// A machine in a folder, and beside it the plugins that are installed.
class ChoosePluginTest : public ::testing::Test {
 protected:
  ChoosePluginTest() { install("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"); }
  std::string install(const std::string& file) { return folder_.touch("packages/" + file); }
  PluginChoice choose(const std::string& wanted = "") {
    return base::value_or_throw(
        choose_plugin(wanted, find_machine(folder_.path()), {folder_.path("packages")}));
  }

  MachineFolder folder_;
  Variable plugin_{"SLUICE_PLUGIN", {}}, library_{"TPU_LIBRARY_PATH", {}}, chips_{"TPU_VISIBLE_CHIPS", {}},
      devices_{"TPU_VISIBLE_DEVICES", {}}, multiple_{"ALLOW_MULTIPLE_LIBTPU_LOAD", {}},
      gpus_{"CUDA_VISIBLE_DEVICES", {}};
};

TEST_F(ChoosePluginTest, NothingThere) {
  install("libtpu/libtpu.so");  // as a compiler for TPUs elsewhere
  install("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  for (const char* wanted : {"", "auto"}) {
    const PluginChoice choice = choose(wanted);
    EXPECT_EQ(choice.file.name, "cpu");
    EXPECT_TRUE(choice.automatic);
    EXPECT_THAT(choice.unused, IsEmpty());
    EXPECT_EQ(choice.text(), "plugin: cpu, this machine has no accelerator, plugin from " + choice.file.path);
  }
}

TEST_F(ChoosePluginTest, ATpuWithLibtpu) {
  folder_.add_chips(4);
  folder_.touch("dev/nvidia0");  // a TPU comes first
  install("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  const std::string library = install("libtpu/libtpu.so");
  const PluginChoice choice = choose();
  EXPECT_EQ(choice.file.name, "tpu");
  EXPECT_TRUE(choice.automatic);
  EXPECT_THAT(choice.unused, IsEmpty());
  EXPECT_EQ(choice.text(),
            "plugin: tpu, 4 chips of TPU (" + folder_.path("dev/accel0") + "…3), libtpu from " + library);
}

TEST_F(ChoosePluginTest, TheLibraryOfTheVariableAndOfTheSystem) {
  folder_.add_chips(1);
  const std::string system = install("libtpu.so");
  EXPECT_EQ(choose().file.path, system);
  const std::string chosen = folder_.touch("my/libemulated.so");
  const Variable library("TPU_LIBRARY_PATH", chosen);
  EXPECT_EQ(choose().file.path, chosen);
  EXPECT_EQ(choose().file.name, "tpu");
}

TEST_F(ChoosePluginTest, ATpuWithoutLibtpuIsALoudWarning) {
  folder_.add_chips(4);
  const PluginChoice choice = choose();
  EXPECT_EQ(choice.file.name, "cpu");
  EXPECT_TRUE(choice.unexpected);
  EXPECT_THAT(choice.unused, AllOf(HasSubstr("4 chips of TPU"), HasSubstr("pip install libtpu"),
                                   HasSubstr("Looked in " + folder_.path("packages"))));
}

TEST_F(ChoosePluginTest, AWrongLibraryIsNamed) {
  folder_.add_chips(4);
  const Variable library("TPU_LIBRARY_PATH", "/no/such/libtpu.so");
  const PluginChoice choice = choose();
  EXPECT_EQ(choice.file.name, "cpu");
  EXPECT_THAT(choice.unused, HasSubstr("TPU_LIBRARY_PATH=/no/such/libtpu.so: there is no plugin at"));
}

TEST_F(ChoosePluginTest, ChipsThatCannotBeUsed) {
  install("libtpu/libtpu.so");
  folder_.add_pci("0000:00:04.0", "0x0063", "0x120000");
  const PluginChoice choice = choose();
  EXPECT_EQ(choice.file.name, "cpu");
  EXPECT_TRUE(choice.unexpected);
  EXPECT_THAT(choice.unused, AllOf(HasSubstr("1 chip of TPU v5e"), HasSubstr("no device files")));
  EXPECT_EQ(choose("tpu").file.name, "tpu");  // who asks for it gets it, or its error
}

TEST_F(ChoosePluginTest, TheCpuOnATpuMachineIsAMildRemark) {
  folder_.add_chips(4);
  install("libtpu/libtpu.so");
  const PluginChoice choice = choose("cpu");
  EXPECT_EQ(choice.file.name, "cpu");
  EXPECT_FALSE(choice.automatic);
  EXPECT_FALSE(choice.unexpected);
  EXPECT_THAT(choice.unused, AllOf(HasSubstr("4 chips of TPU"), HasSubstr("as the cpu plugin is asked for")));
  const Variable plugin("SLUICE_PLUGIN", "cpu");
  EXPECT_THAT(choose().unused, HasSubstr("asked for by SLUICE_PLUGIN"));
  EXPECT_EQ(choose("tpu").file.name, "tpu");  // a name that is given wins
}

TEST_F(ChoosePluginTest, Gpus) {
  folder_.touch("dev/nvidia0");
  PluginChoice choice = choose();
  EXPECT_EQ(choice.file.name, "cpu");
  EXPECT_FALSE(choice.unexpected);
  EXPECT_THAT(choice.unused, AllOf(HasSubstr("1 NVIDIA GPU"), HasSubstr("pip install jax-cuda13-pjrt")));
  install("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  choice = choose();
  EXPECT_EQ(choice.file.name, "cuda");
  EXPECT_THAT(choice.text(), HasSubstr("plugin: cuda, 1 NVIDIA GPU ("));
  for (const char* hidden : {"", "-1"}) {
    const Variable visible("CUDA_VISIBLE_DEVICES", hidden);
    EXPECT_EQ(choose().file.name, "cpu");
    EXPECT_THAT(choose().unused, IsEmpty());
  }
}

TEST_F(ChoosePluginTest, TheVariableTakesNamesAndPaths) {
  const std::string file = folder_.touch("my/libother_pjrt.so");
  const Variable path("SLUICE_PLUGIN", file);
  EXPECT_EQ(choose().file.path, file);
  EXPECT_EQ(choose().file.name, "other_pjrt");
  EXPECT_EQ(choose("cpu").file.name, "cpu");
  EXPECT_EQ(choose("auto").file.name, "cpu");
  const Variable unknown("SLUICE_PLUGIN", "quantum");
  const auto refused = choose_plugin("", find_machine(folder_.path()), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(), HasSubstr("unknown plugin 'quantum': expected auto, cpu, tpu, cuda"));
}

TEST_F(ChoosePluginTest, AnAskedForTpuThatCannotBeUsedIsAnErrorBeforeItIsLoaded) {
  folder_.add_pci("0000:00:04.0", "0x0063", "0x120000");
  const MachineFolder::Root root(folder_.path());
  const Variable library("TPU_LIBRARY_PATH",
                         install("libtpu/libtpu.so"));  // no library: loading it would fail
  const auto refused = open_plugin("tpu");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().what(),
              HasSubstr("cannot use 1 chip of TPU v5e (on the PCI bus, without device "
                        "files): the chips have no device files"));
}

TEST_F(ChoosePluginTest, AnAskedForTpuThatIsNotThereIsAnErrorButForAPath) {
  const std::string library = install("libtpu/libtpu.so");
  const auto refused = choose_plugin("tpu", find_machine(folder_.path()), {folder_.path("packages")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().what(),
              AllOf(HasSubstr("the plugin tpu is asked for, and this machine shows no TPU"),
                    HasSubstr("--plugin cpu"), HasSubstr("path of libtpu.so")));
  EXPECT_EQ(choose(library).file.name, "tpu");
  const Variable variable("TPU_LIBRARY_PATH", library);
  EXPECT_EQ(choose("tpu").file.name, "tpu");
}

TEST_F(ChoosePluginTest, OneOfSeveralProcessesDoesNotFallBack) {
  folder_.add_pci("0000:00:04.0", "0x0063", "0x120000");
  const MachineFolder::Root root(folder_.path());
  const auto refused = open_plugin("", /*processes=*/4);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(), AllOf(HasSubstr("one of 4"), HasSubstr("SLUICE_PLUGIN=cpu")));
  // Alone it goes on with the CPU, and says so.
  ::testing::internal::CaptureStderr();
  const auto opened = open_plugin("");
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(opened) << opened.error().what();
  EXPECT_EQ((*opened)->name(), "cpu");
  EXPECT_THAT(said, AllOf(HasSubstr("THE TPU IS NOT USED"), HasSubstr("--plugin cpu")));
}

}  // namespace
}  // namespace sluice::pjrt
