#include "sluice/monitor/doctor/plugin_checks.h"

#include <algorithm>

#include "sluice/base/files/file.h"
#include "sluice/base/process.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/pjrt/machine/find_plugin.h"

namespace sluice::monitor {
namespace {

using Level = Finding::Level;

constexpr double kProbeSeconds = 60;

// Finds the plugin, and tries to load it.
void check_plugin(const std::string& name, Level if_missing, const std::vector<std::string>& folders,
                  std::vector<std::string> probe, const Report& report) {
  const std::string check = name == "tpu" ? "libtpu" : name + " plugin";
  const auto file = pjrt::find_plugin(name, folders);
  if (!file) {
    const std::string text = file.error().what();
    // The text says what was found before it says what to do.
    const size_t end = std::min(text.find(": run "), text.find("; give "));
    report({if_missing, check, text.substr(0, end), text.substr(std::min(text.size(), end + 2))});
    return;
  }
  const std::string version = package_version(file->path);
  const std::string found = base::str(file->path, version.empty() ? "" : ", version " + version);
  probe.push_back(file->path);
  const auto done = base::run_process(
      probe, {{"TPU_SKIP_MDS_QUERY", "1"}, {"TF_CPP_MIN_LOG_LEVEL", "3"}, {"TPU_STDERR_LOG_LEVEL", "3"}},
      kProbeSeconds);
  if (!done)
    report({Level::kNote, check, base::str(found, "; it was not tried: ", done.error().what()), ""});
  else if (done->timed_out)
    report({Level::kProblem, check, base::str(found, ": it does not load within ", kProbeSeconds, " s"),
            "look at what its folder is mounted from, or install it again"});
  else if (done->status.code() != 0)
    report({Level::kProblem, check, base::str(found, " cannot be used"), done->last_words()});
  else
    report({Level::kOk, check, base::str(found, ", PJRT API ", base::trim(done->output)), ""});
}

// Without these tools the plugin loads and compiles nothing.
void check_cuda_tools(const std::vector<std::string>& folders, const Report& report) {
  const auto file = pjrt::find_plugin("cuda", folders);
  if (!file) return;
  if (const auto folder = pjrt::find_cuda_tools(file->path))
    report({Level::kOk, "cuda tools", base::str("ptxas and libdevice in ", *folder), ""});
  else
    report({Level::kProblem, "cuda tools",
            "no CUDA with bin/ptxas and nvvm/libdevice/libdevice.10.bc, which XLA's compiler for GPUs needs",
            "pip install nvidia-cuda-nvcc, or set CUDA_HOME to the folder of a CUDA"});
}

}  // namespace

void check_plugins(const pjrt::Machine& machine, const std::vector<std::string>& folders,
                   const std::vector<std::string>& probe, const Report& report) {
  if (machine.has_tpu()) check_plugin("tpu", Level::kProblem, folders, probe, report);
  if (machine.has_gpu()) {
    check_plugin("cuda", Level::kNote, folders, probe, report);
    check_cuda_tools(folders, report);
  }
  const bool only = !machine.has_tpu() && !machine.has_gpu();
  check_plugin("cpu", only ? Level::kProblem : Level::kNote, folders, probe, report);
}

std::string package_version(const std::string& file) {
  // …/site-packages/libtpu/libtpu.so is next to …/site-packages/libtpu-0.0.51.dist-info.
  std::vector<std::string> names = {"libtpu", "libtpu_nightly", "jax_cuda12_pjrt", "jax_cuda13_pjrt"};
  std::string folder = base::parent_path(file);
  for (int level = 0; level < 3; ++level) {
    names.push_back(folder.substr(folder.rfind('/') + 1));
    folder = base::parent_path(folder);
    const auto entries = base::list_directory(folder);
    if (!entries) continue;
    for (const std::string& entry : *entries) {
      const size_t dash = entry.find('-');
      constexpr std::string_view kEnding = ".dist-info";
      if (!base::ends_with(entry, kEnding) || dash == std::string::npos ||
          std::find(names.begin(), names.end(), entry.substr(0, dash)) == names.end())
        continue;
      return entry.substr(dash + 1, entry.size() - dash - 1 - kEnding.size());
    }
  }
  return "";
}

}  // namespace sluice::monitor
