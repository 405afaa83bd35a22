#include "sluice/base/variables.h"

#include <unistd.h>

#include <algorithm>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

// A variable of PyTorch/XLA, and what does here what it did there.
struct Foreign {
  const char* name;
  const char* instead;
};

constexpr Foreign kForeign[] = {
    {"PJRT_DEVICE", "the machine decides; --plugin or SLUICE_PLUGIN (cpu, tpu, cuda) insist"},
    {"PT_XLA_DEBUG", "recompiles and fallbacks are always reported; --report tells the rest"},
    {"PT_XLA_DEBUG_LEVEL", "recompiles and fallbacks are always reported; --report tells the rest"},
    {"XLA_DOWNCAST_BF16", "--precision bf16 computes in bf16 (weights stay f32)"},
    {"XLA_HLO_DEBUG", "SLUICE_DUMP=FOLDER writes the programs"},
    {"XLA_IR_DEBUG", "SLUICE_DUMP=FOLDER writes the programs"},
    {"XLA_METRICS_FILE", "--report prints the metrics"},
    {"XLA_PERSISTENT_CACHE_PATH", "SLUICE_CACHE_DIR is the folder of compiled programs"},
    {"XLA_SAVE_TENSORS_FILE", "SLUICE_DUMP=FOLDER writes the programs"},
    {"XLA_USE_BF16", "--precision bf16 computes in bf16 (weights stay f32)"},
    {"XRT_TPU_CONFIG", "nothing has to be said: the TPU's own plugin finds the slice"},
};

}  // namespace

const std::vector<std::string>& known_variables() {
  static const std::vector<std::string> names = {
      "SLUICE_AHEAD",
      "SLUICE_ALLOW_PIPE",
      "SLUICE_ATTENTION_BYTES",
      "SLUICE_BUILD_BUDGET",
      "SLUICE_CACHE",
      "SLUICE_CACHE_DIR",
      "SLUICE_CACHE_TRUST",
      "SLUICE_CACHE_WAIT",
      "SLUICE_CHECK",
      "SLUICE_CLOUD_RETRY",
      "SLUICE_COLLECTIVE_TIMEOUT",
      "SLUICE_COORDINATOR_ADDRESS",
      "SLUICE_CPU_KERNELS",
      "SLUICE_DEPS",
      "SLUICE_DETECT_ANOMALY",
      "SLUICE_DEVICE",
      "SLUICE_DEVICES",
      "SLUICE_DIST_LEVEL",
      "SLUICE_DONATE",
      "SLUICE_DUMP",
      "SLUICE_EAGER",
      "SLUICE_ESTIMATE",
      "SLUICE_EXACT",
      "SLUICE_GATHER_BYTES",
      "SLUICE_GOOGLE_ENDPOINT",
      "SLUICE_GOOGLE_PROJECT",
      "SLUICE_GOOGLE_TOKEN",
      "SLUICE_GPU_MEMORY",
      "SLUICE_GPU_PREALLOCATE",
      "SLUICE_HEARTBEAT_FILE",
      "SLUICE_HOST_SHAPES",
      "SLUICE_JOIN_TIMEOUT",
      "SLUICE_KEPT_OPERATIONS",
      "SLUICE_LAYER_LOOPS",
      "SLUICE_LOG",
      "SLUICE_LOOPS",
      "SLUICE_LOST_AFTER",
      "SLUICE_MACHINE_ROOT",
      "SLUICE_MATMUL_PRECISION",
      "SLUICE_MESH",
      "SLUICE_OS_RELEASE",
      "SLUICE_OUT",
      "SLUICE_PLUGIN",
      "SLUICE_PROCESS_COUNT",
      "SLUICE_PROCESS_HOSTS",
      "SLUICE_PROCESS_ID",
      "SLUICE_PROFILER_PORT",
      "SLUICE_PROGRAM",
      "SLUICE_RESTART",
      "SLUICE_RUN_ID",
      "SLUICE_RUN_KEY",
      "SLUICE_SAME_BUILD",
      "SLUICE_SLOW_COMPILE",
      "SLUICE_STATUS_DIR",
      "SLUICE_STATUS_PORT",
      "SLUICE_STRICT",
      "SLUICE_TORCH_INDEX",
      "SLUICE_TRANSPORT",
      "SLUICE_WITHOUT_KERNELS",
  };
  return names;
}

std::string idle_variables(const std::vector<std::string>& settings) {
  std::vector<std::string> lines;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : setting.substr(equals + 1);
    if (value.empty()) continue;
    const auto* foreign = std::find_if(std::begin(kForeign), std::end(kForeign),
                                       [&](const Foreign& f) { return f.name == name; });
    if (foreign != std::end(kForeign) && value != "0")
      lines.push_back(base::str(name, ": ", foreign->instead));
    if (!starts_with(name, "SLUICE_") || starts_with(name, "SLUICE_TEST_")) continue;
    const auto& known = known_variables();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    lines.push_back(near.empty() ? base::str(name, ": there is no such variable")
                                 : base::str(name, ": did you mean ", near, "?"));
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

std::string idle_variables() {
  std::vector<std::string> settings;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) settings.emplace_back(*at);
  return idle_variables(settings);
}

}  // namespace sluice::base
