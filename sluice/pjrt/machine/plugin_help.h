// The help of --plugin, for all verbs that have it.
#pragma once

namespace sluice::pjrt {

inline constexpr const char* kPluginHelp =
    "auto (a TPU if the machine has one, else a GPU, else the CPU), cpu, tpu, cuda or a path; empty: "
    "$SLUICE_PLUGIN, else auto";

}  // namespace sluice::pjrt
