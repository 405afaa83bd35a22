#include "sluice/kernels/product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sluice/kernels/arena.h"
#include "sluice/kernels/handler.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/panel_product.h"
#include "sluice/kernels/partial_sums.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/thin_product.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;

// Below so many multiplications the call costs more than it gains.
constexpr int64_t kSmallest = int64_t{1} << 16;
// Below so many a second thread costs more than it gains.
constexpr int64_t kSmallestShared = int64_t{1} << 20;
// Parts are small, because a helper comes late and may be called away; but smaller ones are slower to
// multiply.
constexpr int64_t kRowsOfPart = 128, kColumnsOfPart = 128;
constexpr int64_t kVector = 16;  // the most floats that a register holds

// What is divided among threads: m is of rows, n of columns, k of inner places.
enum class Axis { kBatch, kRows, kColumns, kInner };
constexpr std::array kAxes = {Axis::kRows, Axis::kColumns, Axis::kInner};

int64_t& extent(Product& p, Axis axis) {
  switch (axis) {
    case Axis::kBatch:
      return p.batch;
    case Axis::kRows:
      return p.m;
    case Axis::kColumns:
      return p.n;
    case Axis::kInner:
      break;
  }
  return p.k;
}

// Floats that are moved because the parts need matrices of their own, by each thread.
int64_t floats_moved(const Product& p, Axis axis, int64_t threads) {
  const int64_t a = p.m * p.k, b = p.k * p.n, c = p.m * p.n;
  const auto copied = [&](int64_t floats) { return 2 * floats / threads; };
  if (axis == Axis::kRows) return copied(b) + (p.transposed_a ? copied(a) : 0);
  if (axis == Axis::kColumns) {
    // Each thread puts all of a in the library's order.
    return copied(c) + (p.transposed_b ? 0 : copied(b)) + (p.transposed_a ? 2 * a - copied(a) : 0);
  }
  return (threads + 1) * c + (p.transposed_a ? 0 : copied(a)) + (p.transposed_b ? copied(b) : 0);
}

Axis axis_to_divide(const Product& p, int64_t threads) {
  if (p.batch > 1) return Axis::kBatch;
  return *std::min_element(kAxes.begin(), kAxes.end(), [&](Axis x, Axis y) {
    return floats_moved(p, x, threads) < floats_moved(p, y, threads);
  });
}

int64_t extent_of_part(Product p, Axis axis) {
  const int64_t whole = extent(p, axis);
  int64_t parts = kMostPartsOfThread * threads_of_a_call();
  if (axis == Axis::kRows) parts = parts_of_a_call(whole / kRowsOfPart);
  if (axis == Axis::kColumns) parts = parts_of_a_call(whole / kColumnsOfPart);
  if (axis == Axis::kInner) parts = parts_of_a_call((p.m + p.n) * p.k / (8 * p.m * p.n));  // each writes a c
  const int64_t part = (whole + parts - 1) / parts;
  return axis == Axis::kColumns ? std::min(whole, (part + kVector - 1) / kVector * kVector) : part;
}

// A matrix as it lies in memory, and what a part of the product needs of it: everything, some of its rows,
// which lie together, or some of its columns. A batch is a matrix with a row for each of its matrices.
struct Divided {
  enum class By { kNothing, kRows, kColumns } by;
  size_t rows, columns;

  // The floats from number `first` of its rows or columns on.
  float* place(void* all, size_t first) const {
    const size_t step = by == By::kRows ? columns : 1;
    return static_cast<float*>(all) + (by == By::kNothing ? 0 : first * step);
  }
  // Of a scratch copy of some columns; nothing where the matrix can be used as it lies.
  size_t copied_floats(size_t count) const { return by == By::kColumns ? rows * count : 0; }
};

// A product by oneDNN, done in parts. Its kernels take dense matrices only, so columns are copied.
class LibraryProduct : public ProductKernel {
 public:
  // In parts of `part` along the axis. Null where the library has no fast kernel.
  static std::unique_ptr<LibraryProduct> make(const Product& p, Axis axis, int64_t part);
  base::Status run(void* a, void* b, void* c) const override;

 private:
  struct Part {
    dnnl_memory_desc_t a, b, c;
    std::unique_ptr<Primitive> product;
  };
  // Prepared: b lies in the order that the library likes best, not as p says.
  static Part make_part(const Product& p, bool prepared);
  // Has b prepared once for all parts, if they like the same order.
  void prepare(const Product& full, const Product& last);
  base::Status run_part(size_t number, void* a, void* b, void* c) const;

  Axis axis_{};
  size_t whole_ = 0, part_ = 0, parts_ = 0;
  Divided a_{}, b_{}, c_{};
  Part full_, last_;
  std::unique_ptr<Reorder> prepare_b_;  // if b is prepared
};

LibraryProduct::Part LibraryProduct::make_part(const Product& p, bool prepared) {
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

void LibraryProduct::prepare(const Product& full, const Product& last) {
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

std::unique_ptr<LibraryProduct> LibraryProduct::make(const Product& p, Axis axis, int64_t part) {
  auto kernel = std::make_unique<LibraryProduct>();
  Product full = p, last = p;
  const int64_t whole = extent(full, axis), parts = (whole + part - 1) / part;
  extent(full, axis) = part;
  extent(last, axis) = whole - (parts - 1) * part;
  kernel->full_ = make_part(full, false);
  kernel->last_ = make_part(last, false);
  if (!kernel->full_.product || !kernel->last_.product) return nullptr;
  if (axis == Axis::kRows) kernel->prepare(full, last);
  kernel->axis_ = axis;
  kernel->whole_ = static_cast<size_t>(whole);
  kernel->part_ = static_cast<size_t>(part);
  kernel->parts_ = static_cast<size_t>(parts);

  using By = Divided::By;
  const auto operand = [&](int64_t rows, int64_t columns, bool transposed, Axis of_rows, Axis of_columns) {
    if (axis == Axis::kBatch)
      return Divided{By::kRows, static_cast<size_t>(p.batch), static_cast<size_t>(rows * columns)};
    if (transposed) std::swap(rows, columns), std::swap(of_rows, of_columns);
    const By by = axis == of_rows ? By::kRows : axis == of_columns ? By::kColumns : By::kNothing;
    return Divided{by, static_cast<size_t>(rows), static_cast<size_t>(columns)};
  };
  kernel->a_ = operand(p.m, p.k, p.transposed_a, Axis::kRows, Axis::kInner);
  kernel->b_ = operand(p.k, p.n, p.transposed_b, Axis::kInner, Axis::kColumns);
  kernel->c_ = operand(p.m, p.n, false, Axis::kRows, Axis::kColumns);
  return kernel;
}

base::Status LibraryProduct::run(void* a, void* b, void* c) const {
  const size_t size = c_.rows * c_.columns, more = axis_ == Axis::kInner ? parts_ - 1 : 0;
  const Scratch scratch(more * size * sizeof(float));
  const std::vector<float*> sums = places_of_sums(more + 1, size, static_cast<float*>(c), scratch.floats());
  const Scratch prepared(prepare_b_ ? layout_bytes(full_.b) : 0);
  if (prepare_b_) SLUICE_OK(prepare_b_->run(b, prepared.data()));
  void* const b_of_parts = prepare_b_ ? prepared.data() : b;
  SLUICE_OK(parallel_for_status(
      parts_, [&](size_t i) { return run_part(i, a, b_of_parts, more > 0 ? sums[i] : c); }));
  add_partial_sums(sums, size);
  return {};
}

base::Status LibraryProduct::run_part(size_t number, void* a, void* b, void* c) const {
  const size_t first = number * part_, count = std::min(part_, whole_ - first);
  const auto copied = [&](const Divided& matrix) { return matrix.copied_floats(count) * sizeof(float); };
  const Scratch a_columns(copied(a_)), b_columns(copied(b_)), c_columns(copied(c_));
  const auto gather = [&](const Divided& matrix, void* all, float* columns) {
    float* const from = matrix.place(all, first);
    if (matrix.by != Divided::By::kColumns) return from;
    for (size_t row = 0; row < matrix.rows; ++row)
      std::memcpy(columns + row * count, from + row * matrix.columns, count * sizeof(float));
    return columns;
  };
  float* const a_part = gather(a_, a, a_columns.floats());
  float* const b_part = gather(b_, b, b_columns.floats());
  float* const c_place = c_.place(c, first);
  const bool spread = c_.by == Divided::By::kColumns;
  float* const c_part = spread ? c_columns.floats() : c_place;
  const Part& part = count == part_ ? full_ : last_;
  SLUICE_OK(part.product->execute(std::array<Argument, 3>{{{DNNL_ARG_SRC, &part.a, a_part},
                                                           {DNNL_ARG_WEIGHTS, &part.b, b_part},
                                                           {DNNL_ARG_DST, &part.c, c_part}}}));
  if (spread)
    for (size_t row = 0; row < c_.rows; ++row)
      std::memcpy(c_place + row * c_.columns, c_part + row * count, count * sizeof(float));
  return {};
}

std::unique_ptr<ProductKernel> make_fastest(const Product& p) {
  if (is_thin(p))
    if (auto kernel = make_thin_product(p)) return kernel;
  const int64_t threads = threads_of_a_call();
  if (threads > 1 && p.batch * p.m * p.k * p.n >= kSmallestShared) {
    const Axis axis = axis_to_divide(p, threads);
    if (auto kernel = LibraryProduct::make(p, axis, extent_of_part(p, axis))) return kernel;
  }
  if (auto kernel = LibraryProduct::make(p, Axis::kBatch, p.batch)) return kernel;
  return make_panel_product(p);
}

}  // namespace

const ProductKernel* find_product(const Product& p) {
  static auto& kernels = *new Prepared<ProductKernel>;
  return kernels.find({p.batch, p.m, p.k, p.n, p.transposed_a, p.transposed_b, threads_of_a_call()},
                      [&] { return make_fastest(p); });
}

bool has_product(const Product& p) {
  if (p.batch * p.m * p.k * p.n < kSmallest || !Onednn::open()) return false;
  const UseThreads threads;
  return find_product(p) != nullptr;
}

base::Status call_product(const pjrt::CustomCall& call) {
  SLUICE_TRY(const auto transposed_a, call.number("transposed_a"));
  SLUICE_TRY(const auto transposed_b, call.number("transposed_b"));
  SLUICE_TRY(const pjrt::CallBuffer a, call.operand(0));
  SLUICE_TRY(const pjrt::CallBuffer b, call.operand(1));
  SLUICE_TRY(const pjrt::CallBuffer c, call.result(0));
  Product p;
  p.transposed_a = transposed_a.value_or(0) != 0;
  p.transposed_b = transposed_b.value_or(0) != 0;
  const size_t rank = c.dims.size();
  p.batch = rank == 3 ? c.dims[0] : 1;
  p.m = c.dims[rank - 2];
  p.n = c.dims[rank - 1];
  p.k = a.dims[rank - (p.transposed_a ? 2 : 1)];
  const UseThreads threads(call);
  const ProductKernel* kernel = find_product(p);
  if (kernel == nullptr) return no_kernel("matrix product");
  return kernel->run(a.data, b.data, c.data);
}

}  // namespace sluice::kernels
