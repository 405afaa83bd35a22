// Element-wise updates of many tensors in one call: an optimizer's step for each parameter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/kernels/call.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// The update of one tensor. `tensors` has code.tensors entries; the first code.results of them are
// overwritten with the results. `numbers` has code.units + code.numbers entries.
struct UpdateMember {
  std::vector<float*> tensors;
  std::vector<float> numbers;
  size_t elements = 0;
};

// Runs the code for each element of each member, on the threads of a call. Tensors that are not overwritten
// may share memory between members.
void run_updates(const stablehlo::UpdateCode& code, std::span<const UpdateMember> members);

// Runs the code for a piece of a matrix with `columns` columns, on the calling thread. The piece is used in
// place of the member's tensor of this number, whose own entry is not read.
void update_piece(const stablehlo::UpdateCode& code, const UpdateMember& member, size_t number,
                  size_t columns, const Piece& piece);

// Reads the attribute `code`; this and the functions below read calls of updates.
base::Result<stablehlo::UpdateCode> code_of(const Call& call);
// Reads operand i, which must have `elements` elements.
base::Result<float*> member_tensor(const Call& call, size_t i, size_t elements);
// Appends operand i, a tensor of one element.
base::Status append_unit(const Call& call, size_t i, std::vector<float>& numbers);
// Reads `count` numbers of the vector that is operand i, at the positions in the attribute `numbers`. With a
// count of 0 the call has no such operand.
base::Result<std::vector<float>> read_numbers(const Call& call, size_t i, size_t count);

base::Status call_update(const Call& call);

}  // namespace sluice::kernels
