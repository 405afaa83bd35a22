// Element-wise updates of many tensors in one call: what an optimizer does to each parameter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/kernels/call.h"
#include "sluice/kernels/gemm/gemm.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// One tensor's update. `tensors` has code.tensors entries; the first code.results of them are overwritten
// with the results. `numbers` has code.units + code.numbers entries.
struct UpdateMember {
  std::vector<float*> tensors;
  std::vector<float> numbers;
  size_t elements = 0;
};

// Runs the code for each element of each member, on the threads of a call. Other tensors than a member's
// first may be the same memory; they are not written.
void run_updates(const stablehlo::UpdateCode& code, std::span<const UpdateMember> members);

// The same for a piece of a matrix of so many columns, which is the member's tensor of this number; its own
// entry is not read. On the calling thread.
void update_piece(const stablehlo::UpdateCode& code, const UpdateMember& member, size_t number,
                  size_t columns, const Piece& piece);

// What the calls of updates read. The attribute code.
base::Result<stablehlo::UpdateCode> code_of(const Call& call);
// Operand i, of so many elements.
base::Result<float*> member_tensor(const Call& call, size_t i, size_t elements);
// Appends operand i, a tensor of one element.
base::Status append_unit(const Call& call, size_t i, std::vector<float>& numbers);
// So many numbers of the vector that is operand i, at the positions of the attribute numbers. Without any
// there is no such operand.
base::Result<std::vector<float>> read_numbers(const Call& call, size_t i, size_t count);

base::Status call_update(const Call& call);

}  // namespace sluice::kernels
