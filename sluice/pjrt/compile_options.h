// A program and the compiler's options in the form in which plugins take them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// The text of a StableHLO module as a plugin's compiler takes it. It points into `text`.
c::PJRT_Program mlir_program(std::string_view text);

// XLA's flags for one program, by the names that they have in $XLA_FLAGS without the dashes
// ("xla_gpu_cuda_data_dir"). A compiler that does not know one refuses the program.
using XlaFlags = std::map<std::string, std::string>;

// A serialised CompileOptionsProto for one replica on each of the devices: no partitions, replica i on
// device_ids[i].
std::string serialize_compile_options(std::span<const int> device_ids, const XlaFlags& flags = {});
// The same for replicas on devices that are not here: the compiler places them.
std::string serialize_compile_options(int num_replicas, const XlaFlags& flags = {});

}  // namespace sluice::pjrt
