#include "sluice/kernels/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/each_cpu.h"
#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/gemm/gemm_thin.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

// The fewest multiplications for which a call gains more than it costs.
constexpr int64_t kMinMultiplications = int64_t{1} << 16;
// The fewest multiplications for which a second thread gains more than it costs.
constexpr int64_t kMinSharedMultiplications = int64_t{1} << 20;
// The rows of a thread's part: few, because a helper comes late and may be called away, but fewer are slower
// to multiply.
constexpr int64_t kRowsOfPart = 128;

// A product by oneDNN, computed in parts: matrices of a batch, or rows. oneDNN's kernels take only dense
// matrices; any other part of a matrix would have to be copied.
class OnednnGemm : public Gemm {
 public:
  // Divides a batch into parts of `part` matrices, a single product into parts of `part` rows. Null if the
  // library has no fast kernel.
  static std::unique_ptr<OnednnGemm> make(const Product& p, int64_t part);
  using Gemm::run;
  base::Status run(void* a, void* b, void* c, const Epilogue& epilogue) const override;

 private:
  struct Part {
    dnnl_memory_desc_t a, b, c;
    std::unique_ptr<Primitive> product;
  };
  // Makes a part. Prepared: b has the order that is fastest for the library, not the order in p.
  static Part make_part(const Product& p, bool prepared);
  // Reorders b once for all parts, if all parts want the same order.
  void prepare(const Product& full, const Product& last);

  size_t whole_ = 0, part_ = 0, parts_ = 0;      // in matrices or rows
  size_t a_step_ = 0, b_step_ = 0, c_step_ = 0;  // floats from one to the next
  Part full_, last_;
  std::unique_ptr<Reorder> prepare_b_;  // if b is prepared
};

OnednnGemm::Part OnednnGemm::make_part(const Product& p, bool prepared) {
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    const std::array<int64_t, 3> dims = {p.batch, rows, columns};
    const std::array<int, 3> straight = {0, 1, 2}, swapped = {0, 2, 1};
    return p.batch == 1 ? dense(std::span(dims).subspan(1), std::array<int, 2>{transposed, !transposed})
                        : dense(dims, transposed ? swapped : straight);
  };
  Part part{matrix(p.m, p.k, p.transposed_a), matrix(p.k, p.n, p.transposed_b), matrix(p.m, p.n, false),
            nullptr};
  part.product =
      Primitive::product(part.a, prepared ? any_layout(std::array<int64_t, 2>{p.k, p.n}) : part.b, part.c);
  return part;
}

void OnednnGemm::prepare(const Product& full, const Product& last) {
  Part prepared_full = make_part(full, true), prepared_last = make_part(last, true);
  if (!prepared_full.product || !prepared_last.product) return;
  const dnnl_memory_desc_t& wanted = prepared_full.product->layout(dnnl_query_weights_md);
  if (!same_layout(wanted, prepared_last.product->layout(dnnl_query_weights_md))) return;
  prepare_b_ = Reorder::make(full_.b, wanted);
  if (!prepare_b_) return;
  prepared_full.b = prepared_last.b = wanted;
  full_ = std::move(prepared_full);
  last_ = std::move(prepared_last);
}

std::unique_ptr<OnednnGemm> OnednnGemm::make(const Product& p, int64_t part) {
  if (is_left_out("onednn_products")) return nullptr;
  auto kernel = std::make_unique<OnednnGemm>();
  Product full = p, last = p;
  const bool by_rows = p.batch == 1;
  const int64_t whole = by_rows ? p.m : p.batch, parts = (whole + part - 1) / part;
  (by_rows ? full.m : full.batch) = part;
  (by_rows ? last.m : last.batch) = whole - (parts - 1) * part;
  kernel->full_ = make_part(full, false);
  kernel->last_ = make_part(last, false);
  if (!kernel->full_.product || !kernel->last_.product) return nullptr;
  if (by_rows && parts > 1) kernel->prepare(full, last);
  kernel->whole_ = static_cast<size_t>(whole);
  kernel->part_ = static_cast<size_t>(part);
  kernel->parts_ = static_cast<size_t>(parts);
  kernel->a_step_ = static_cast<size_t>(by_rows ? p.k : p.m * p.k);
  kernel->b_step_ = static_cast<size_t>(by_rows ? 0 : p.k * p.n);
  kernel->c_step_ = static_cast<size_t>(by_rows ? p.n : p.m * p.n);
  return kernel;
}

base::Status OnednnGemm::run(void* a, void* b, void* c, const Epilogue& epilogue) const {
  const Scratch prepared(prepare_b_ ? layout_bytes(full_.b) : 0);
  if (prepare_b_) SLUICE_OK(prepare_b_->run(b, prepared.data()));
  void* const b_of_parts = prepare_b_ ? prepared.data() : b;
  return parallel_for_status(parts_, [&](size_t i) -> base::Status {
    const size_t first = i * part_;
    const size_t count = std::min(part_, whole_ - first);
    const Part& part = count < part_ ? last_ : full_;
    const auto from = [first](void* all, size_t step) { return static_cast<float*>(all) + first * step; };
    SLUICE_OK(
        part.product->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &part.a, from(a, a_step_)},
                                                       {DNNL_ARG_WEIGHTS, &part.b, from(b_of_parts, b_step_)},
                                                       {DNNL_ARG_DST, &part.c, from(c, c_step_)}}}));
    if (epilogue) epilogue({first, count, 0, c_step_, static_cast<float*>(from(c, c_step_)), c_step_});
    return {};
  });
}

// Returns whether the library computes a product without a batch in parts of its rows. Otherwise our own
// loop, which reads any part of a matrix in place, is as fast or faster (measured).
bool is_divided_by_rows(const Product& p) { return !p.transposed_a && p.m >= 2 * kRowsOfPart; }

std::unique_ptr<Gemm> make_fastest(const Product& p) {
  if (is_thin(p) && !is_left_out("thin"))
    if (auto kernel = make_thin_gemm(p)) return kernel;
  const bool by_rows = p.batch == 1;
  const int64_t whole = by_rows ? p.m : p.batch;
  if (threads_of_a_call() > 1 && p.batch * p.m * p.k * p.n >= kMinSharedMultiplications) {
    if (by_rows && !is_divided_by_rows(p) && !is_left_out("panels"))
      if (auto kernel = make_panel_gemm(p)) return kernel;
    const int64_t parts =
        by_rows ? parts_of_a_call(p.m / kRowsOfPart) : kMaxPartsPerThread * threads_of_a_call();
    if (auto kernel = OnednnGemm::make(p, (whole + parts - 1) / parts)) return kernel;
  }
  if (auto kernel = OnednnGemm::make(p, whole)) return kernel;
  return is_left_out("panels") ? nullptr : make_panel_gemm(p);
}

// The operations on a product's rows after the multiplication.
struct Addition {
  const float* bias = nullptr;    // a row
  bool rectified = false;         // then sums below 0 become 0; a NaN stays
  const float* matrix = nullptr;  // in the result's layout
  bool gated = false;  // then the result becomes 0 where the matrix is 0 or less; a NaN keeps the result
};
SLUICE_EACH_CPU
void add_to_piece(const Addition& addition, const Piece& piece) {
  const auto [bias, rectified, matrix, gated] = addition;
  for (size_t row = 0; row < piece.rows; ++row) {
    float* const to = piece.first + row * piece.step;
    if (bias != nullptr)
      for (size_t i = 0; i < piece.columns; ++i) {
        const float sum = to[i] + bias[piece.column + i];
        to[i] = rectified && sum < 0 ? 0 : sum;
      }
    if (matrix == nullptr) continue;
    const float* const other = matrix + (piece.row + row) * piece.step + piece.column;
    if (gated)
      for (size_t i = 0; i < piece.columns; ++i) to[i] = other[i] <= 0 ? 0 : to[i];
    else
      for (size_t i = 0; i < piece.columns; ++i) to[i] += other[i];
  }
}

}  // namespace

void run_epilogue(float* c, size_t rows, size_t columns, const Epilogue& epilogue) {
  if (!epilogue) return;
  parallel_pieces(rows, size_t{kRowsOfPart}, [&](size_t first, size_t count) {
    epilogue({first, count, 0, columns, c + first * columns, columns});
  });
}

const Gemm* find_gemm(const Product& p) {
  static auto& kernels = *new Prepared<Gemm>;
  return kernels.find({p.batch, p.m, p.k, p.n, p.transposed_a, p.transposed_b, threads_of_a_call()},
                      [&] { return make_fastest(p); });
}

bool has_gemm(const Product& p) {
  if (p.batch * p.m * p.k * p.n < kMinMultiplications || !Onednn::open()) return false;
  const UseThreads threads;
  return find_gemm(p) != nullptr;
}

namespace {

// Reads the operands after a and b: a bias [n], a matrix [m, n], or both.
base::Result<Addition> addition_of(const Call& call, const Tensor& c) {
  Addition addition;
  SLUICE_TRY(addition.rectified, call.flag("rectified"));
  SLUICE_TRY(addition.gated, call.flag("gated"));
  for (size_t i = 2; i < call.num_operands(); ++i) {
    SLUICE_TRY(const Tensor any, call.operand(i, "bias or matrix"));
    const bool is_bias = any.rank() == 1;
    const float*& to = is_bias ? addition.bias : addition.matrix;
    if (c.rank() != 2 || to != nullptr)
      return call.refuse("operand ", i, " is another ", is_bias ? "bias" : "matrix",
                         ", expected one for a product without a batch");
    SLUICE_TRY(const Tensor added,
               call.operand(i, is_bias ? "bias" : "matrix", is_bias ? c.dims.last(1) : c.dims));
    to = added.data;
  }
  if (addition.rectified && addition.bias == nullptr)
    return call.refuse("attribute rectified is 1, expected a bias [n] after a and b");
  if (addition.gated && addition.matrix == nullptr)
    return call.refuse("attribute gated is 1, expected a matrix [m, n] after a and b");
  return addition;
}

}  // namespace

base::Result<GemmOperands> read_gemm(const Call& call, size_t first, std::span<const int64_t> batch) {
  Product p;
  SLUICE_TRY(p.transposed_a, call.flag("transposed_a"));
  SLUICE_TRY(p.transposed_b, call.flag("transposed_b"));
  for (const int64_t extent : batch) p.batch *= extent;
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    stablehlo::Dims dims(batch.begin(), batch.end());
    dims.insert(dims.end(), {transposed ? columns : rows, transposed ? rows : columns});
    return dims;
  };
  const size_t rank = batch.size() + 2;
  SLUICE_TRY(const Tensor a, call.filled_operand(first, "a", rank, rank));
  p.m = a.dims[rank - (p.transposed_a ? 1 : 2)];
  p.k = a.dims[rank - (p.transposed_a ? 2 : 1)];
  SLUICE_OK(call.operand(first, "a", matrix(p.m, p.k, p.transposed_a)));
  SLUICE_OK(call.filled_operand(first + 1, "b", rank, rank));
  SLUICE_TRY(const Tensor b, call.operand(first + 1, "b", matrix(p.k, kAny, p.transposed_b)));
  p.n = b.dims[rank - (p.transposed_b ? 2 : 1)];
  return GemmOperands{p, a.data, b.data};
}

base::Status call_gemm(const Call& call) {
  SLUICE_OK(call.takes({{2, 1}, {3, 1}, {4, 1}}));
  SLUICE_TRY(const Tensor c, call.filled_result(0, "c", 2, 3));
  SLUICE_TRY(const auto operands, read_gemm(call, 0, c.dims.first(c.rank() - 2)));
  const auto& [p, a, b] = operands;
  if (c.dims[c.rank() - 2] != p.m || c.dims[c.rank() - 1] != p.n)
    return call.refuse("result 0 (c) is [", base::join(c.dims, ","), "], expected ", p.m, " rows of ", p.n);
  SLUICE_TRY(const Addition addition, addition_of(call, c));
  const Gemm* kernel = find_gemm(p);
  if (kernel == nullptr) return no_kernel("matrix product");
  if (call.num_operands() == 2) return kernel->run(a, b, c.data);
  return kernel->run(a, b, c.data, [=](const Piece& piece) { add_to_piece(addition, piece); });
}

}  // namespace sluice::kernels
