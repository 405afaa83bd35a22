// What a compiled program says of itself, loaded on devices or not.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/api.h"
#include "sluice/pjrt/executable.h"

namespace sluice::pjrt {

base::Result<ProgramMemory> read_memory(const Api& api, c::PJRT_Executable* executable);
// Bytes of device memory that running it takes, arguments, results and code included; 0 where the plugin does
// not say (libtpu does).
base::Result<int64_t> read_total_memory(const Api& api, c::PJRT_Executable* executable);
base::Result<ProgramCost> read_cost(const Api& api, c::PJRT_Executable* executable);
// The bytes from which a client can load it.
base::Result<std::string> read_serialized(const Api& api, c::PJRT_Executable* executable);
// The program after the compiler's optimisations, in the plugin's own format, whose name goes to `format`
// (libtpu: "hlo_with_config").
base::Result<std::string> read_optimized(const Api& api, c::PJRT_Executable* executable, std::string& format);

}  // namespace sluice::pjrt
