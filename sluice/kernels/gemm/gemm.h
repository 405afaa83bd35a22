// GEMM, products of matrices. Internal to this room.
#pragma once

#include <functional>
#include <span>

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Some rows and columns of a product's result, and where they lie: `step` floats from one row to the next.
struct Piece {
  size_t row, rows, column, columns;
  float* first;
  size_t step;
};
// Called once for each piece of a result when it is there, by the thread that made it, which has it in its
// cache. May be empty.
using Epilogue = std::function<void(const Piece&)>;

// A product of one shape. Threads: any, under UseThreads.
class Gemm {
 public:
  virtual ~Gemm() = default;
  base::Status run(void* a, void* b, void* c) const { return run(a, b, c, {}); }
  // Of a batch nothing is finished.
  virtual base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const = 0;
};

// For a dense c that was not made in pieces: calls epilogue for rows of it, on all threads.
void run_epilogue(float* c, size_t rows, size_t columns, const Epilogue& epilogue);

// Fewer rows or columns of a result have no fast kernel: a tile is mostly empty, and packing takes longer
// than the product (measured: a vector times a matrix runs at a fifth of a library's speed). Who has fewer
// fills them up with zeros.
constexpr size_t kMinExtent = 4;
// Null where there is no fast kernel. Made once, valid as long as the process.
const Gemm* find_gemm(const stablehlo::ProductCall& call);

// Whether there is a kernel that is worth a call of its own.
bool has_gemm(const stablehlo::ProductCall& call);
// The attributes and operands of a call's product a b, from operand `first` on, behind these dims of a batch.
struct GemmOperands {
  stablehlo::ProductCall product;
  float *a, *b;
};
base::Result<GemmOperands> read_gemm(const Call& call, size_t first, std::span<const int64_t> batch);
// The handler.
base::Status call_gemm(const Call& call);

}  // namespace sluice::kernels
