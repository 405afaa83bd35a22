// A mesh over the devices of several processes: what each of them gives to a value and holds of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"
#include "sluice/device/value.h"

namespace sluice::device {

// The rows of a batch that a host tensor has: part `part` of `parts` equal parts of its first dimension.
struct RowPart {
  int64_t part = 0, parts = 1;
};
// Returns the part of each batch that this process gives. Processes whose devices differ only along the axes
// sequence and tensor give the same rows.
RowPart row_part(const World& world);

// Throws kFailedPrecondition, in all processes, unless each tensor has the same value in all of them; it
// names the first that differs. All processes call it, with the same names. Only hashes are exchanged.
void check_equal_in_processes(const std::string& what,
                              const std::vector<std::pair<std::string, at::Tensor>>& hosts);

// Returns the place and the hash of each different block that this process's devices hold of a laid-out
// value. Waits.
std::vector<std::string> hashes_of_blocks(const Data& data);

// Returns whether this process's devices hold all blocks of a value.
bool is_all_here(const Data& data);
// Returns a value with all of its blocks on this process's devices: itself, or what a program has gathered,
// which all processes must launch (`what` names the read in messages). The caller holds the trace's lock.
DataPtr all_here(DataPtr data);
// Does so for a value that is read later: returns it, or what the next program will gather of it. The caller
// holds the trace's lock.
Operand all_here_later(const Operand& value);

}  // namespace sluice::device
