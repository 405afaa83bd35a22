// Converts a program and the compiler's options to the form that plugins take.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// Returns the text of a StableHLO module in the form of a plugin's compiler. It points into `text`.
c::PJRT_Program mlir_program(std::string_view text);

// XLA's flags for one program, named as in $XLA_FLAGS without the dashes ("xla_gpu_cuda_data_dir"). A
// compiler that does not know one refuses the program.
using XlaFlags = std::map<std::string, std::string>;

// Serialises a CompileOptionsProto without partitions, with replica i on device_ids[i].
std::string serialize_compile_options(std::span<const int> device_ids, const XlaFlags& flags = {});
// Serialises one for one replica, with partition i on device_ids[i], made by XLA's partitioner from the
// layouts in the program (Shardy).
std::string serialize_partitioned_options(std::span<const int> device_ids, const XlaFlags& flags = {});
// Serialises one for replicas on devices that are not here: the compiler places them.
std::string serialize_compile_options(int num_replicas, const XlaFlags& flags = {});

}  // namespace sluice::pjrt
