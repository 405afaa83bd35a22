#include "sluice/kernels/update.h"

#include <algorithm>
#include <cmath>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/handler.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::UpdateCode;

// Elements that go through all steps at once: what the steps make of them stays in the first cache.
constexpr size_t kBlock = 512;
// Elements of a thread's piece of work.
constexpr size_t kPiece = 64 * kBlock;

// A step's operand: as many floats as the block has, or one number.
struct Source {
  const float* vector = nullptr;
  float number = 0;
};

template <typename Function>
SLUICE_INLINE void combine(const Function& f, const Source& a, const Source& b, float* out, size_t count) {
  const float *const x = a.vector, *const y = b.vector;
  const float first = a.number, second = b.number;
  // A result may lie where an operand does, but then element for element.
  if (x != nullptr && y != nullptr) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) out[i] = f(x[i], y[i]);
  } else if (x != nullptr) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) out[i] = f(x[i], second);
  } else if (y != nullptr) {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) out[i] = f(first, y[i]);
  } else {
    std::fill(out, out + count, f(first, second));
  }
}

SLUICE_EACH_CPU
void run_step(UpdateCode::Op op, const Source& a, const Source& b, float* out, size_t count) {
  switch (op) {
    case UpdateCode::Op::kAdd:
      return combine([](float x, float y) { return x + y; }, a, b, out, count);
    case UpdateCode::Op::kSubtract:
      return combine([](float x, float y) { return x - y; }, a, b, out, count);
    case UpdateCode::Op::kMultiply:
      return combine([](float x, float y) { return x * y; }, a, b, out, count);
    case UpdateCode::Op::kDivide:
      return combine([](float x, float y) { return x / y; }, a, b, out, count);
    case UpdateCode::Op::kMaximum:  // a NaN wins
      return combine([](float x, float y) { return x > y || x != x ? x : y; }, a, b, out, count);
    case UpdateCode::Op::kSqrt:
      return combine([](float x, float) { return std::sqrt(x); }, a, a, out, count);
  }
}

// Where a step writes: to its result's memory, unless a later step still reads what is there.
class Targets {
 public:
  explicit Targets(const UpdateCode& code) : direct_(code.steps.size(), kNowhere) {
    const int64_t first = code.first_step();
    for (size_t r = 0; r < code.results.size(); ++r) {
      const auto step = static_cast<size_t>(code.results[r] - first);
      const auto tensor = static_cast<int64_t>(r);
      const bool read_later = std::any_of(
          code.steps.begin() + static_cast<int64_t>(step) + 1, code.steps.end(),
          [tensor](const UpdateCode::Step& later) { return later.a == tensor || later.b == tensor; });
      if (read_later) {
        copied_.push_back({step, r});
      } else {
        direct_[step] = r;
      }
    }
  }

  static constexpr size_t kNowhere = ~size_t{0};
  struct Copied {
    size_t step, tensor;
  };
  size_t direct(size_t step) const { return direct_[step]; }
  const std::vector<Copied>& copied() const { return copied_; }

 private:
  std::vector<size_t> direct_;
  std::vector<Copied> copied_;
};

// `values` has an entry for each register; those of the steps are filled in. `scratch`: kBlock floats a step.
void run_block(const UpdateCode& code, const Targets& targets, const UpdateMember& member, size_t offset,
               size_t count, std::vector<Source>& values, float* scratch) {
  for (size_t i = 0; i < member.tensors.size(); ++i) values[i].vector = member.tensors[i] + offset;
  const auto first = static_cast<size_t>(code.first_step());
  for (size_t s = 0; s < code.steps.size(); ++s) {
    const size_t direct = targets.direct(s);
    float* const out = direct == Targets::kNowhere ? scratch + s * kBlock : member.tensors[direct] + offset;
    const UpdateCode::Step& step = code.steps[s];
    run_step(step.op, values[static_cast<size_t>(step.a)], values[static_cast<size_t>(step.b)], out, count);
    values[first + s].vector = out;
  }
  for (const auto& [step, tensor] : targets.copied())
    std::copy_n(scratch + step * kBlock, count, member.tensors[tensor] + offset);
}

struct Piece {
  const UpdateMember* member;
  size_t first, count;
};

}  // namespace

void run_updates(const UpdateCode& code, std::span<const UpdateMember> members) {
  std::vector<Piece> pieces;
  for (const UpdateMember& member : members)
    for (size_t first = 0; first < member.elements; first += kPiece)
      pieces.push_back({&member, first, std::min(kPiece, member.elements - first)});
  const Targets targets(code);
  const auto registers = static_cast<size_t>(code.first_step()) + code.steps.size();
  parallel_for(pieces.size(), [&](size_t p) {
    const UpdateMember& member = *pieces[p].member;
    std::vector<Source> values(registers);
    const Scratch scratch(code.steps.size() * kBlock * sizeof(float));
    for (size_t i = 0; i < member.numbers.size(); ++i)
      values[member.tensors.size() + i].number = member.numbers[i];
    const size_t end = pieces[p].first + pieces[p].count;
    for (size_t first = pieces[p].first; first < end; first += kBlock)
      run_block(code, targets, member, first, std::min(kBlock, end - first), values, scratch.floats());
  });
}

base::Status call_update(const pjrt::CustomCall& call) {
  SLUICE_TRY(const stablehlo::Dims words, list_of(call, "code"));
  SLUICE_TRY(const stablehlo::Dims positions, list_of(call, "numbers"));
  const auto code = UpdateCode::from_words(words);
  if (!code) return base::fail(Code::kInvalidArgument, "the code of an update cannot be read");
  const size_t per_member = code->tensors + code->units, results = code->results.size();
  const size_t tensor_operands = call.num_operands() - (code->numbers > 0 ? 1 : 0);
  if (per_member == 0 || tensor_operands % per_member != 0 ||
      positions.size() != tensor_operands / per_member * code->numbers)
    return base::fail(Code::kInvalidArgument, "an update of ", per_member, " operands a tensor has ",
                      tensor_operands, " of them and ", positions.size(), " numbers");
  std::vector<UpdateMember> members(tensor_operands / per_member);
  // First the tensors that become results, member by member, then the others, then the single numbers.
  size_t next = 0;
  const auto tensors_of_all = [&](size_t count) -> base::Status {
    for (UpdateMember& member : members) {
      for (size_t i = 0; i < count; ++i) {
        SLUICE_TRY(const pjrt::CallBuffer buffer, call.operand(next++));
        member.tensors.push_back(static_cast<float*>(buffer.data));
        member.elements = buffer.elements();
      }
    }
    return {};
  };
  SLUICE_OK(tensors_of_all(results));
  SLUICE_OK(tensors_of_all(code->tensors - results));
  for (UpdateMember& member : members) {
    for (size_t i = 0; i < code->units; ++i) {
      SLUICE_TRY(const pjrt::CallBuffer unit, call.operand(next++));
      member.numbers.push_back(*static_cast<const float*>(unit.data));
    }
  }
  if (code->numbers > 0) {
    SLUICE_TRY(const pjrt::CallBuffer all, call.operand(next));
    size_t position = 0;
    for (UpdateMember& member : members)
      for (size_t i = 0; i < code->numbers; ++i)
        member.numbers.push_back(static_cast<const float*>(all.data)[positions[position++]]);
  }
  const UseThreads threads(call);
  run_updates(*code, members);
  return {};
}

}  // namespace sluice::kernels
