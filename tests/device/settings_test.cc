// Where the device's settings come from: the default, the environment, a program's own options.
#include "sluice/device/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "sluice/base/error.h"
#include "sluice/device/open.h"

namespace sluice::device {
namespace {

using ::testing::HasSubstr;

// A variable that is as it was before at the end.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) before_ = value;
    ::unsetenv(name);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  void set(const char* value) { ::setenv(name_, value, 1); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

struct Switch {
  const char* variable;
  std::optional<bool> DeviceOptions::*option;
  bool Settings::*setting;
  bool usual;
};

constexpr Switch kSwitches[] = {
    {"SLUICE_STRICT", &DeviceOptions::strict, &Settings::strict, false},
    {"SLUICE_EAGER", &DeviceOptions::eager, &Settings::eager, false},
    {"SLUICE_DONATE", &DeviceOptions::donate, &Settings::donate, true},
    {"SLUICE_CPU_KERNELS", &DeviceOptions::cpu_kernels, &Settings::cpu_kernels, true},
    {"SLUICE_CACHE", &DeviceOptions::cache, &Settings::cache, true},
    {"SLUICE_CHECK", &DeviceOptions::check, &Settings::check, true},
    {"SLUICE_DETECT_ANOMALY", &DeviceOptions::detect_anomaly, &Settings::detect_anomaly, false},
    {"SLUICE_EXACT", &DeviceOptions::exact, &Settings::exact, false},
    {"SLUICE_LOOPS", &DeviceOptions::loops, &Settings::loops, true},
    {"SLUICE_HOST_SHAPES", &DeviceOptions::host_shapes, &Settings::host_shapes, true},
    {"SLUICE_GPU_PREALLOCATE", &DeviceOptions::gpu_preallocate, &Settings::gpu_preallocate, true},
};

TEST(Settings, Meshes) {
  Variable variable("SLUICE_MESH");
  EXPECT_TRUE(settings_of({}).mesh.empty());
  variable.set("data=2,fsdp=4");
  EXPECT_EQ(settings_of({}).mesh.str(), "data=2,fsdp=4");
  EXPECT_EQ(settings_of({}).devices, 8) << "the mesh says how many";
  DeviceOptions of_two;
  of_two.processes = 2;
  EXPECT_EQ(settings_of(of_two).devices, 4) << "each process has its part of them";
  DeviceOptions options;
  options.devices = 16;
  EXPECT_EQ(settings_of(options).devices, 16) << "and init() refuses the mesh";
  EXPECT_EQ(settings_of({}, Mesh({{"fsdp", -1}})).mesh.str(), "fsdp=-1");
  EXPECT_EQ(settings_of({}, Mesh({{"fsdp", -1}})).devices, 0);
  variable.set("fsdq=4");
  EXPECT_ANY_THROW(settings_of({}));
}

TEST(Settings, WithoutKernels) {
  Variable variable("SLUICE_WITHOUT_KERNELS");
  EXPECT_THAT(settings_of({}).without_kernels, testing::IsEmpty());
  variable.set("winograd,attention");
  EXPECT_THAT(settings_of({}).without_kernels, testing::ElementsAre("winograd", "attention"));
  DeviceOptions options;
  options.without_kernels = {"softmax"};
  EXPECT_THAT(settings_of(options).without_kernels, testing::ElementsAre("softmax"));
}

TEST(Settings, KeptOperations) {
  Variable variable("SLUICE_KEPT_OPERATIONS");
  EXPECT_EQ(settings_of({}).kept_operations, 200'000);
  variable.set("5000");
  EXPECT_EQ(settings_of({}).kept_operations, 5000);
  DeviceOptions options;
  options.kept_operations = 70;
  EXPECT_EQ(settings_of(options).kept_operations, 70);
  for (const char* text : {"0", "-3", "many"}) {
    variable.set(text);
    try {
      settings_of({});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("SLUICE_KEPT_OPERATIONS is \"")) << text;
    }
  }
}

TEST(Settings, SwitchesAreTheDefaultThenTheEnvironmentThenTheOptions) {
  for (const Switch& row : kSwitches) {
    SCOPED_TRACE(row.variable);
    Variable variable(row.variable);
    const auto setting = [&](const DeviceOptions& options) { return settings_of(options).*row.setting; };
    DeviceOptions on, off;
    on.*row.option = true;
    off.*row.option = false;
    EXPECT_EQ(setting({}), row.usual);
    EXPECT_TRUE(setting(on));
    EXPECT_FALSE(setting(off));
    for (const char* text : {"1", "on"}) {
      variable.set(text);
      EXPECT_TRUE(setting({})) << text;
      EXPECT_TRUE(setting(on)) << text;
      EXPECT_FALSE(setting(off)) << text;
    }
    for (const char* text : {"0", "off"}) {
      variable.set(text);
      EXPECT_FALSE(setting({})) << text;
      EXPECT_TRUE(setting(on)) << text;
      EXPECT_FALSE(setting(off)) << text;
    }
    for (const char* text : {"", "maybe"}) {
      variable.set(text);
      EXPECT_EQ(setting({}), row.usual) << text;
    }
  }
}

TEST(Settings, LoopsOfLayersAreForTpusAndGpus) {
  Variable variable("SLUICE_LAYER_LOOPS");
  const auto loops = [](const DeviceOptions& options, bool cpu) {
    return layer_loops(settings_of(options), cpu);
  };
  EXPECT_FALSE(loops({}, true));
  EXPECT_TRUE(loops({}, false));
  variable.set("1");
  EXPECT_TRUE(loops({}, true));
  variable.set("0");
  EXPECT_FALSE(loops({}, false));
  DeviceOptions on;
  on.layer_loops = true;
  EXPECT_TRUE(loops(on, true)) << "the option comes before the environment";
  on.detect_anomaly = true;
  EXPECT_FALSE(loops(on, true)) << "every layer's values are checked";
  variable.set("maybe");
  EXPECT_FALSE(loops({}, true));
  EXPECT_TRUE(loops({}, false));
}

TEST(Settings, ScoresAtOnce) {
  Variable variable("SLUICE_ATTENTION_BYTES");
  EXPECT_EQ(attention_bytes(""), 0);
  EXPECT_EQ(attention_bytes("NVIDIA H100 80GB HBM3"), 512 << 20);
  EXPECT_EQ(attention_bytes("TPU v5 lite"), 16 << 20);
  EXPECT_EQ(attention_bytes("TPU v6 lite"), 8 << 20);
  EXPECT_EQ(attention_bytes("TPU v3"), 512 << 20);
  EXPECT_EQ(attention_bytes("TPU v5"), 512 << 20);
  EXPECT_EQ(attention_bytes("TPU of a later generation"), 8 << 20);
  variable.set("5000");
  EXPECT_EQ(attention_bytes("TPU v3"), 5000);
  EXPECT_EQ(attention_bytes(""), 5000);
  variable.set("0");
  EXPECT_EQ(attention_bytes("TPU v3"), 0);
  for (const char* text : {"-1", "8 MB"}) {
    variable.set(text);
    try {
      attention_bytes("");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("SLUICE_ATTENTION_BYTES is \"")) << text;
    }
  }
}

TEST(Settings, KeysThatAreGathered) {
  Variable variable("SLUICE_GATHER_BYTES");
  EXPECT_EQ(gather_bytes(), 256 << 20);
  for (const int64_t bytes : {0, 5000}) {
    variable.set(std::to_string(bytes).c_str());
    EXPECT_EQ(gather_bytes(), bytes);
  }
  for (const char* text : {"-1", "8 MB"}) {
    variable.set(text);
    try {
      gather_bytes();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("SLUICE_GATHER_BYTES is \"")) << text;
    }
  }
}

TEST(Settings, TheFolderOfPrograms) {
  Variable variable("SLUICE_DUMP");
  DeviceOptions options;
  EXPECT_EQ(settings_of(options).dump, "");
  variable.set("/there");
  EXPECT_EQ(settings_of(options).dump, "/there");
  options.dump = "/here";
  EXPECT_EQ(settings_of(options).dump, "/here");
}

TEST(Settings, ThePrecisionOfProducts) {
  Variable variable("SLUICE_MATMUL_PRECISION");
  DeviceOptions options;
  EXPECT_EQ(settings_of(options).matmul_precision, "default");
  variable.set("highest");
  EXPECT_EQ(settings_of(options).matmul_precision, "highest");
  options.matmul_precision = "high";
  EXPECT_EQ(settings_of(options).matmul_precision, "high");
  for (const char* text : {"f32", "HIGHEST", " high"}) {
    options.matmul_precision = text;
    try {
      settings_of(options);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected default, high or highest")) << text;
    }
  }
}

TEST(Settings, APartOfTheGpusMemory) {
  Variable variable("SLUICE_GPU_MEMORY");
  DeviceOptions options;
  EXPECT_EQ(settings_of(options).gpu_memory, 0);
  variable.set("0.5");
  EXPECT_EQ(settings_of(options).gpu_memory, 0.5);
  for (const char* text : {"0", "1.5", "-1", "half", "0.5x"}) {
    variable.set(text);
    try {
      settings_of(options);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a part of the GPU's memory")) << text;
    }
  }
  options.gpu_memory = 0.25;
  EXPECT_EQ(settings_of(options).gpu_memory, 0.25);
}

TEST(Settings, ChosenDevicesAreCounted) {
  DeviceOptions options;
  options.devices = 2;
  EXPECT_EQ(settings_of(options).devices, 2);
  options.device_ids = {0, 1, 4};
  EXPECT_EQ(settings_of(options).devices, 3);
  EXPECT_EQ(settings_of(options).device_ids, options.device_ids);
}

}  // namespace
}  // namespace sluice::device
