#include "sluice/pjrt/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/machine/describe.h"
#include "sluice/pjrt/machine/find_plugin.h"

namespace sluice::pjrt {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string load_error(const std::string& name, Code expected) {
  const auto plugin = Plugin::load(name);
  if (plugin) return "loaded";
  EXPECT_EQ(plugin.error().code(), expected) << plugin.error().what();
  return plugin.error().what();
}

TEST(Plugin, LoadsOnce) {
  const auto first = base::value_or_throw(Plugin::load("cpu")), again = base::value_or_throw(Plugin::load());
  EXPECT_EQ(first, again);
  EXPECT_EQ(base::value_or_throw(Plugin::load(first->path())), first);
  EXPECT_EQ(first->name(), "cpu");
  EXPECT_EQ(first->api_major(), 0);
  EXPECT_GE(first->api_minor(), kOldestMinor);
  EXPECT_THAT(first->attributes(), Contains(::testing::Key("stablehlo_current_version")));
  EXPECT_THAT(first->attributes().at("stablehlo_minimum_version"),
              ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Plugin, LoadsOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Plugin>> loaded(4);
  for (auto& plugin : loaded) {
    threads.emplace_back([&plugin] { plugin = base::value_or_throw(Plugin::load("cpu")); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& plugin : loaded) EXPECT_EQ(plugin, loaded[0]);
}

TEST(Plugin, WrongFilesAreNamed) {
  EXPECT_THAT(load_error("/no/such/plugin.so", Code::kNotFound),
              HasSubstr("there is no plugin at /no/such/plugin.so"));
  EXPECT_THAT(load_error("/tmp/", Code::kInvalidArgument), HasSubstr("found the folder /tmp/"));
  EXPECT_THAT(load_error(SLUICE_FAKE_NO_FUNCTION, Code::kInvalidArgument),
              AllOf(HasSubstr("is not a PJRT plugin"), HasSubstr("SLUICE_PLUGIN")));
  EXPECT_THAT(load_error(SLUICE_FAKE_OTHER_MAJOR, Code::kFailedPrecondition),
              HasSubstr("has PJRT version 1.114, expected 0.60 or a later 0.x"));
  EXPECT_THAT(load_error(SLUICE_FAKE_OLD_MINOR, Code::kFailedPrecondition),
              AllOf(HasSubstr("has PJRT version 0.12, expected 0.60"), HasSubstr("install a newer plugin")));
  EXPECT_THAT(load_error(SLUICE_FAKE_FAILS, Code::kUnavailable),
              HasSubstr("cannot be initialised: the chip is in use by another process"));
}

TEST(Plugin, TextIsNoLibrary) {
  const auto directory = base::value_or_throw(base::TemporaryDirectory::create());
  ASSERT_TRUE(base::write_file_atomically(directory.path("text.so"), "not a library"));
  EXPECT_THAT(load_error(directory.path("text.so"), Code::kFailedPrecondition),
              HasSubstr("cannot load the plugin"));
}

TEST(Plugin, UnknownNames) {
  EXPECT_THAT(load_error("cdua", Code::kInvalidArgument),
              AllOf(HasSubstr("unknown plugin 'cdua'"), HasSubstr("did you mean cuda?")));
}

class FindPluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"SLUICE_PLUGIN", "SLUICE_DEPS", "VIRTUAL_ENV", "PYTHONPATH", "TPU_LIBRARY_PATH", "HOME"}) {
      const char* value = ::getenv(name);
      saved_.emplace_back(name, value == nullptr ? "" : value);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_)
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
  // An empty file at that place in the test's folder, with the folders above it.
  std::string touch(const std::string& name) {
    const std::string path = directory_.path(name);
    EXPECT_TRUE(base::make_directories(base::parent_path(path)));
    EXPECT_TRUE(base::write_file_atomically(path, ""));
    return path;
  }
  static std::string found(const std::string& name, const std::vector<std::string>& folders = {}) {
    const auto file = find_plugin(name, folders);
    return file ? file->name + " " + file->path : file.error().what();
  }

  base::TemporaryDirectory directory_ = base::value_or_throw(base::TemporaryDirectory::create());
  std::vector<std::pair<const char*, std::string>> saved_;
};

TEST_F(FindPluginTest, LooksInOwnDependenciesThenInPythons) {
  for (const char* folder :
       {"deps/xla_cpu_pjrt", "venv/lib/python3.11/site-packages", "packages",
        "opt/lib/python3.12/site-packages", "home/.local/lib/python3.13/site-packages"}) {
    ASSERT_TRUE(base::make_directories(directory_.path(folder)));
  }
  touch("opt/bin/python3");
  const std::string path = ::getenv("PATH");
  ::setenv("SLUICE_DEPS", directory_.path("deps").c_str(), 1);
  ::setenv("VIRTUAL_ENV", directory_.path("venv").c_str(), 1);
  ::setenv("PYTHONPATH", (":" + directory_.path("packages")).c_str(), 1);
  ::setenv("PATH", (directory_.path("opt/bin") + ":" + path).c_str(), 1);
  ::setenv("HOME", directory_.path("home").c_str(), 1);
  std::vector<std::string> here;
  for (const std::string& folder : plugin_search_folders()) {
    if (base::starts_with(folder, directory_.path()))
      here.push_back(folder.substr(directory_.path().size() + 1));
  }
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(here,
              ElementsAre("deps", "deps/xla_cpu_pjrt", "venv/lib/python3.11/site-packages", "packages",
                          "opt/lib/python3.12/site-packages", "home/.local/lib/python3.13/site-packages"));
}

TEST_F(FindPluginTest, TheFirstFolderThatHasIt) {
  const std::string first = touch("a/libtpu/libtpu.so");
  touch("b/libtpu/libtpu.so");
  const std::vector<std::string> folders = {directory_.path("empty"), directory_.path("a"),
                                            directory_.path("b")};
  EXPECT_EQ(found("tpu", folders), "tpu " + first);
  const std::string chosen = touch("chosen/libtpu_nightly.so");
  ::setenv("TPU_LIBRARY_PATH", chosen.c_str(), 1);
  EXPECT_EQ(found("tpu", folders), "tpu " + chosen);
}

TEST_F(FindPluginTest, TheNewerOfTwo) {
  touch("v/jax_plugins/xla_cuda12/xla_cuda_plugin.so");
  const std::string newer = touch("v/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  EXPECT_EQ(found("cuda", {directory_.path("v")}), "cuda " + newer);
  EXPECT_EQ(found("gpu", {directory_.path("v")}), "cuda " + newer);
}

TEST_F(FindPluginTest, PathsAreNamedByTheirFile) {
  EXPECT_EQ(found(touch("a/libtpu.so")), "tpu " + directory_.path("a/libtpu.so"));
  EXPECT_EQ(found(touch("a/xla_cuda_plugin.so")), "cuda " + directory_.path("a/xla_cuda_plugin.so"));
  EXPECT_EQ(found(touch("a/libneuron.so.1")), "neuron " + directory_.path("a/libneuron.so.1"));
}

TEST_F(FindPluginTest, OneThatOthersMayWriteIsNotTaken) {
  const std::string path = touch("d/libtpu/libtpu.so");
  ::chmod(path.c_str(), 0666);
  const auto refused = find_plugin("tpu", {directory_.path("d")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(),
              AllOf(HasSubstr("may be written by others"), HasSubstr("set SLUICE_PLUGIN")));
  EXPECT_TRUE(find_plugin(path, {}));  // named by the user
  ::chmod(path.c_str(), 0644);
  EXPECT_TRUE(find_plugin("tpu", {directory_.path("d")}));
}

TEST_F(FindPluginTest, MissingOnesSayWhatToInstall) {
  for (const auto& [name, command] :
       std::vector<std::pair<std::string, std::string>>{{"cpu", "pip install xla-cpu-pjrt"},
                                                        {"tpu", "pip install libtpu"},
                                                        {"cuda", "pip install jax-cuda13-pjrt"}}) {
    const auto missing = find_plugin(name, {directory_.path()});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::kNotFound);
    EXPECT_THAT(missing.error().what(), AllOf(HasSubstr("the " + name + " plugin ("),
                                              HasSubstr(") is not installed: run `" + command + "`"),
                                              HasSubstr("SLUICE_PLUGIN"), HasSubstr(directory_.path())));
  }
}

TEST_F(FindPluginTest, PreloadingNothingIsFine) {
  touch("p/nvidia/cublas/lib/libcublas.so.12");  // no library: skipped
  preload_nvidia_libraries(touch("p/jax_plugins/xla_cuda12/xla_cuda_plugin.so"));
}

TEST_F(FindPluginTest, CudasToolsComeTogether) {
  const char* const before = std::getenv("CUDA_HOME");
  const std::string home = before == nullptr ? "" : before;
  const std::string plugin = touch("p/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  touch("p/nvidia/cu13/bin/ptxas");
  EXPECT_NE(find_cuda_tools(plugin), directory_.path("p/nvidia/cu13"));  // half of them
  touch("p/nvidia/cu13/nvvm/libdevice/libdevice.10.bc");
  ::unsetenv("CUDA_HOME");
  EXPECT_EQ(find_cuda_tools(plugin), directory_.path("p/nvidia/cu13"));
  touch("own/bin/ptxas");
  touch("own/nvvm/libdevice/libdevice.10.bc");
  ::setenv("CUDA_HOME", directory_.path("own").c_str(), 1);
  EXPECT_EQ(find_cuda_tools(plugin), directory_.path("own"));
  home.empty() ? ::unsetenv("CUDA_HOME") : ::setenv("CUDA_HOME", home.c_str(), 1);
}

TEST(Describe, ListsTheDevices) {
  const auto report = base::value_or_throw(describe("cpu", 3));
  EXPECT_EQ(report.plugin_name, "cpu");
  EXPECT_THAT(report.plugin_path, ::testing::EndsWith("xla_cpu_pjrt.so"));
  EXPECT_EQ(report.platform_name, "cpu");
  EXPECT_EQ(report.global_device_count, 3u);
  ASSERT_EQ(report.devices.size(), 3u);
  EXPECT_EQ(report.devices[1].id, 1);
  EXPECT_EQ(report.devices[1].kind, "cpu");
  EXPECT_FALSE(report.devices[1].memory);
  EXPECT_FALSE(describe("/no/such.so", 1));
}

}  // namespace
}  // namespace sluice::pjrt
