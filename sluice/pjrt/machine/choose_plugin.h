// Chooses the plugin that a program runs on: the requested one, or the one for the machine's accelerator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/machine/find_plugin.h"
#include "sluice/pjrt/machine/machine.h"
#include "sluice/pjrt/plugin.h"

namespace sluice::pjrt {

struct PluginChoice {
  PluginFile file;
  // The reason: "4 chips of TPU v3 (/dev/accel0…3)", "this machine has no accelerator", "asked for".
  std::string reason;
  bool automatic = false;  // no plugin was requested
  // An accelerator of the machine that is not used, why, and what to do; empty: there is no such accelerator.
  std::string unused;
  bool unexpected = false;  // a TPU is unused, although no flag or variable asked for that
  // Returns "plugin: tpu, 4 chips of TPU v3 (/dev/accel0…3), libtpu from /usr/lib/libtpu.so".
  std::string text() const;
};

// Returns the requested plugin: `given`, else $SLUICE_PLUGIN, else "auto".
std::string wanted_plugin(const std::string& given);

// Returns the plugin for work that only records or compiles programs: the requested one, else the CPU's, so
// that no chips are taken.
std::string plugin_without_chips(const std::string& given);

// "auto" is the TPU's plugin if there are chips that this process can use and libtpu is found; else CUDA's if
// there are a GPU (not hidden by $CUDA_VISIBLE_DEVICES) and its plugin; else the CPU's. Other names and paths
// are as in find_plugin; "" is wanted_plugin("").
base::Result<PluginChoice> choose_plugin(const std::string& given);
// Chooses for the given machine, with plugins in these folders.
base::Result<PluginChoice> choose_plugin(const std::string& given, const Machine& machine,
                                         const std::vector<std::string>& folders);

// Chooses a plugin for a program that computes, logs the choice (with a warning if a TPU is unexpectedly left
// unused), and loads it. If the TPU was requested but this process cannot use its chips, the error says which
// process holds them, or which right is missing, before libtpu is loaded. One of several `processes` never
// uses the CPU in place of a TPU that it cannot use: the others would use theirs.
base::Result<std::shared_ptr<Plugin>> open_plugin(const std::string& given, int processes = 1);

}  // namespace sluice::pjrt
