#include "sluice/kernels/rows/update.h"

#include <algorithm>
#include <cmath>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::UpdateCode;

// The elements that go through all steps at once: the steps' results stay in the L1 cache.
constexpr size_t kBlock = 512;
// The elements of a thread's part of the work.
constexpr size_t kElementsOfPart = 64 * kBlock;

// A step's operand: a float for each element of the block, or one number.
struct Source {
  const float* vector = nullptr;
  float number = 0;
};

template <typename Function>
SLUICE_INLINE void combine(const Function& f, const Source& a, const Source& b, float* out, size_t count) {
  const float *const x = a.vector, *const y = b.vector;
  const float first = a.number, second = b.number;
  // A result may share an operand's memory, but only element for element.
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

// Where a step writes: to its result's memory, unless a later step still reads the old values there.
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

// Runs the code on elements of one member, on the calling thread.
class Runner {
 public:
  Runner(const UpdateCode& code, const Targets& targets, const UpdateMember& member)
      : code_(code),
        targets_(targets),
        member_(member),
        values_(static_cast<size_t>(code.first_step()) + code.steps.size()),
        scratch_(code.steps.size() * kBlock * sizeof(float)) {
    for (size_t i = 0; i < member.numbers.size(); ++i)
      values_[member.tensors.size() + i].number = member.numbers[i];
  }

  // Runs the code. `given`, unless null, replaces the member's tensor of this number for these elements.
  void run(size_t first, size_t count, size_t number = 0, const float* given = nullptr) {
    for (size_t done = 0; done < count; done += kBlock) {
      for (size_t i = 0; i < member_.tensors.size(); ++i)
        values_[i].vector =
            given != nullptr && i == number ? given + done : member_.tensors[i] + first + done;
      run_block(first + done, std::min(kBlock, count - done));
    }
  }

 private:
  void run_block(size_t offset, size_t count) {
    const auto first = static_cast<size_t>(code_.first_step());
    float* const scratch = scratch_.floats();
    for (size_t s = 0; s < code_.steps.size(); ++s) {
      const size_t direct = targets_.direct(s);
      float* const out =
          direct == Targets::kNowhere ? scratch + s * kBlock : member_.tensors[direct] + offset;
      const UpdateCode::Step& step = code_.steps[s];
      run_step(step.op, values_[static_cast<size_t>(step.a)], values_[static_cast<size_t>(step.b)], out,
               count);
      values_[first + s].vector = out;
    }
    for (const auto& [step, tensor] : targets_.copied())
      std::copy_n(scratch + step * kBlock, count, member_.tensors[tensor] + offset);
  }

  const UpdateCode& code_;
  const Targets& targets_;
  const UpdateMember& member_;
  std::vector<Source> values_;  // the registers' values
  Scratch scratch_;             // kBlock floats for each step
};

struct Part {
  const UpdateMember* member;
  size_t first, count;
};

}  // namespace

void run_updates(const UpdateCode& code, std::span<const UpdateMember> members) {
  std::vector<Part> parts;
  for (const UpdateMember& member : members)
    for (size_t first = 0; first < member.elements; first += kElementsOfPart)
      parts.push_back({&member, first, std::min(kElementsOfPart, member.elements - first)});
  const Targets targets(code);
  parallel_for(parts.size(), [&](size_t p) {
    const auto [member, first, count] = parts[p];
    Runner(code, targets, *member).run(first, count);
  });
}

void update_piece(const UpdateCode& code, const UpdateMember& member, size_t number, size_t columns,
                  const Piece& piece) {
  const Targets targets(code);
  Runner runner(code, targets, member);
  const size_t first = piece.row * columns + piece.column;
  if (piece.columns == columns && piece.step == columns)
    return runner.run(first, piece.rows * columns, number, piece.first);
  for (size_t row = 0; row < piece.rows; ++row)
    runner.run(first + row * columns, piece.columns, number, piece.first + row * piece.step);
}

base::Result<UpdateCode> code_of(const Call& call) {
  SLUICE_TRY(const stablehlo::Dims words, call.list("code"));
  const auto code = UpdateCode::from_words(words);
  if (!code)
    return call.refuse(
        "attribute code has ", words.size(),
        " words that are not steps over registers, expected the words of UpdateCode::to_words");
  return *code;
}

base::Result<float*> member_tensor(const Call& call, size_t i, size_t elements) {
  SLUICE_TRY(const Tensor tensor, call.operand(i, "tensor"));
  if (tensor.elements() == elements) return tensor.data;
  return call.refuse("operand ", i, " has ", tensor.elements(), " elements, expected ", elements,
                     ", as the other tensors of its update");
}

base::Status append_unit(const Call& call, size_t i, std::vector<float>& numbers) {
  SLUICE_TRY(const float* const unit, member_tensor(call, i, 1));
  numbers.push_back(*unit);
  return {};
}

base::Result<std::vector<float>> read_numbers(const Call& call, size_t i, size_t count) {
  SLUICE_TRY(const stablehlo::Dims positions, call.list("numbers", count));
  std::vector<float> read;
  if (count == 0) return read;
  SLUICE_TRY(const Tensor all, call.operand(i, "numbers", stablehlo::Dims{kAny}));
  for (const int64_t position : positions) {
    if (position >= all.dims[0])
      return call.refuse("attribute numbers has position ", position, " of operand ", i,
                         ", expected one of its ", all.dims[0], " numbers");
    read.push_back(all.data[position]);
  }
  return read;
}

base::Status call_update(const Call& call) {
  SLUICE_TRY(const UpdateCode code, code_of(call));
  const size_t per_member = code.tensors + code.units, results = code.results.size();
  const size_t vectors = code.numbers > 0 ? 1 : 0;
  const size_t tensors = std::max(call.num_operands(), vectors) - vectors;
  const size_t count = per_member == 0 ? 0 : tensors / per_member;
  if (count == 0) return call.refuse("no operands for the ", per_member, " registers that its code reads");
  SLUICE_OK(call.takes({{count * per_member + vectors, count * results}}));
  std::vector<UpdateMember> members(count);
  // The operands are the tensors that become results, member by member, then the other tensors, then the
  // units.
  size_t next = 0;
  const auto tensors_of_all = [&](size_t tensors) -> base::Status {
    for (UpdateMember& member : members)
      for (size_t i = 0; i < tensors; ++i) {
        if (member.tensors.empty()) {
          SLUICE_TRY(const Tensor first, call.operand(next, "tensor"));
          member.elements = first.elements();
        }
        SLUICE_TRY(float* const tensor, member_tensor(call, next++, member.elements));
        member.tensors.push_back(tensor);
      }
    return {};
  };
  SLUICE_OK(tensors_of_all(results));
  for (size_t i = 0; i < count * results; ++i) SLUICE_OK(call.in_place(i, i));
  SLUICE_OK(tensors_of_all(code.tensors - results));
  for (UpdateMember& member : members)
    for (size_t i = 0; i < code.units; ++i) SLUICE_OK(append_unit(call, next++, member.numbers));
  SLUICE_TRY(const std::vector<float> numbers, read_numbers(call, next, count * code.numbers));
  for (size_t m = 0; m < count; ++m)
    members[m].numbers.insert(members[m].numbers.end(), numbers.data() + m * code.numbers,
                              numbers.data() + (m + 1) * code.numbers);
  run_updates(code, members);
  return {};
}

}  // namespace sluice::kernels
