// Reads the plugin's facts about a compiled program, whether loaded on devices or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/pjrt/api.h"
#include "sluice/pjrt/program/executable.h"

namespace sluice::pjrt {

base::Result<ProgramMemory> read_memory(const Api& api, c::PJRT_Executable* executable);
// Returns the bytes of device memory that a run takes, including arguments, results and code; 0 if the plugin
// does not report them (libtpu does).
base::Result<int64_t> read_total_memory(const Api& api, c::PJRT_Executable* executable);
base::Result<ProgramCost> read_cost(const Api& api, c::PJRT_Executable* executable);
// Returns the types of the results on one device: "tensor<256x1024xf32>".
base::Result<std::vector<std::string>> read_output_types(const Api& api, c::PJRT_Executable* executable);
// Returns the bytes from which a client can load the program.
base::Result<std::string> read_serialized(const Api& api, c::PJRT_Executable* executable);
// Returns the program after the compiler's optimisations, in the plugin's own format, and the format's name
// in `format` (libtpu: "hlo_with_config").
base::Result<std::string> read_optimized(const Api& api, c::PJRT_Executable* executable, std::string& format);

}  // namespace sluice::pjrt
