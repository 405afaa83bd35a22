// A program and the compiler's options in the form in which plugins take them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// The text of a StableHLO module as a plugin's compiler takes it. It points into `text`.
c::PJRT_Program mlir_program(std::string_view text);

// A serialised CompileOptionsProto for one replica on each of the devices: no partitions, replica i on
// device_ids[i].
std::string serialize_compile_options(std::span<const int> device_ids);
// The same for replicas on devices that are not here: the compiler places them.
std::string serialize_compile_options(int num_replicas);

}  // namespace sluice::pjrt
