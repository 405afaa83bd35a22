// GEMM, products of matrices. Internal to this room.
#pragma once

#include <functional>
#include <span>

#include "sluice/kernels/call.h"
#include "sluice/stablehlo/kernel_library.h"

namespace sluice::kernels {

// Some rows and columns of a product's result, and their memory: `step` floats from one row to the next.
struct Piece {
  size_t row, rows, column, columns;
  float* first;
  size_t step;
};
// Called once for each finished piece of a result, by the thread that made it and has it in its cache. May be
// empty.
using Epilogue = std::function<void(const Piece&)>;

// A product of one shape. Threads: any, under UseThreads.
class Gemm {
 public:
  virtual ~Gemm() = default;
  base::Status run(void* a, void* b, void* c) const { return run(a, b, c, {}); }
  // Does not call `epilogue` for a batch.
  virtual base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const = 0;
};

// Calls epilogue for the rows of a dense c that was not made in pieces, on all threads.
void run_epilogue(float* c, size_t rows, size_t columns, const Epilogue& epilogue);

// With fewer rows or columns a result has no fast kernel: a tile is mostly empty, and packing takes longer
// than the product (measured: a vector times a matrix runs at a fifth of a library's speed). Callers with
// fewer rows or columns pad them with zeros.
constexpr size_t kMinExtent = 4;
// Returns the kernel, or null if there is no fast one. It is made once and lasts as long as the process.
const Gemm* find_gemm(const stablehlo::ProductCall& call);

// Returns whether there is a kernel that is worth a call of its own.
bool has_gemm(const stablehlo::ProductCall& call);
// The attributes and operands of a call's product a b. read_gemm() reads a and b, which have the dims `batch`
// in front of their own, from operand `first` on.
struct GemmOperands {
  stablehlo::ProductCall product;
  float *a, *b;
};
base::Result<GemmOperands> read_gemm(const Call& call, size_t first, std::span<const int64_t> batch);
// Handles a call of "sluice_product".
base::Status call_gemm(const Call& call);

}  // namespace sluice::kernels
