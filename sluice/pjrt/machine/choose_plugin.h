// Which plugin a program runs on: the one that is asked for, or the one for what the machine has.
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
  // Why: "4 chips of TPU v3 (/dev/accel0…3)", "this machine has no accelerator", "asked for".
  std::string reason;
  bool automatic = false;  // nobody asked for a plugin
  // An accelerator that the machine has and that is not used, why, and what to do; empty: there is none.
  std::string unused;
  bool unexpected = false;  // … and nobody asked for that
  // "plugin: tpu, 4 chips of TPU v3 (/dev/accel0…3), libtpu from /usr/lib/libtpu.so"
  std::string text() const;
};

// What a program asks for: `given`, else $SLUICE_PLUGIN, else "auto".
std::string wanted_plugin(const std::string& given);

// For work that only writes programs down, or compiles them: what is asked for, else the CPU's, so that no
// chips are taken.
std::string plugin_without_chips(const std::string& given);

// "auto" is the TPU's plugin where there are chips that this process can use and libtpu is found; else CUDA's
// where there are a GPU (not hidden by $CUDA_VISIBLE_DEVICES) and its plugin; else the CPU's. Other names and
// paths are as find_plugin takes them; "" is wanted_plugin("").
base::Result<PluginChoice> choose_plugin(const std::string& given);
// The same, on this machine and with plugins in these folders.
base::Result<PluginChoice> choose_plugin(const std::string& given, const Machine& machine,
                                         const std::vector<std::string>& folders);

// Chooses a plugin for a program that computes, says so in the log (loudly where a TPU is left unused against
// expectation), and loads it. Where the TPU was asked for and this process cannot use its chips, the error
// says who holds them, or which right is missing, before libtpu is loaded. One of several `processes` never
// takes the CPU in the place of a TPU that it cannot use: the others would take theirs.
base::Result<std::shared_ptr<Plugin>> open_plugin(const std::string& given, int processes = 1);

}  // namespace sluice::pjrt
