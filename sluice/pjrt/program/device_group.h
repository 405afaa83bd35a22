// The devices that exchange data in one instruction of a compiled program.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::pjrt {

// Returns the group that the first device is in, ascending; empty if the instruction has no groups. A device
// is its place in the program's device assignment. `instruction`: a serialised HloInstructionProto, whose
// groups are a list, a list in the form of an array, axes of a mesh, or pairs (a permutation: the group is
// then the devices that the pairs connect). Sets `broken` for bytes of another form.
std::vector<int64_t> device_group(std::string_view instruction, bool& broken);

}  // namespace sluice::pjrt
