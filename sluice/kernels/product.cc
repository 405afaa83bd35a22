#include "sluice/kernels/product.h"

#include <array>

#include "sluice/kernels/handler.h"
#include "sluice/kernels/onednn.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {

class ProductKernel {
 public:
  dnnl_memory_desc_t a, b, c;
  std::unique_ptr<Primitive> product;
};

namespace {

using Product = stablehlo::ProductCall;

// Below so many multiplications the call costs more than it gains.
constexpr int64_t kSmallest = int64_t{1} << 16;

std::unique_ptr<ProductKernel> make(const Product& p) {
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    const std::array<int64_t, 3> dims = {p.batch, rows, columns};
    const std::array<int, 3> straight = {0, 1, 2}, swapped = {0, 2, 1};
    return p.batch == 1 ? dense(std::span(dims).subspan(1), std::array<int, 2>{transposed, !transposed})
                        : dense(dims, transposed ? swapped : straight);
  };
  auto kernel = std::make_unique<ProductKernel>();
  kernel->a = matrix(p.m, p.k, p.transposed_a);
  kernel->b = matrix(p.k, p.n, p.transposed_b);
  kernel->c = matrix(p.m, p.n, false);
  kernel->product = Primitive::product(kernel->a, kernel->b, kernel->c);
  return kernel->product ? std::move(kernel) : nullptr;
}

}  // namespace

const ProductKernel* find_product(const Product& p) {
  static auto& kernels = *new Prepared<ProductKernel>;
  return kernels.find({p.batch, p.m, p.k, p.n, p.transposed_a, p.transposed_b, threads_of_a_call()},
                      [&] { return make(p); });
}

base::Status run_product(const ProductKernel& kernel, void* a, void* b, void* c) {
  return kernel.product->execute(std::array<Argument, 3>{
      {{DNNL_ARG_SRC, &kernel.a, a}, {DNNL_ARG_WEIGHTS, &kernel.b, b}, {DNNL_ARG_DST, &kernel.c, c}}});
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
  const UseThreads threads;
  const ProductKernel* kernel = find_product(p);
  if (kernel == nullptr) return no_kernel("matrix product");
  return run_product(*kernel, a.data, b.data, c.data);
}

}  // namespace sluice::kernels
