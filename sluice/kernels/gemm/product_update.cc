#include "sluice/kernels/gemm/product_update.h"

#include "sluice/kernels/gemm/panel_product.h"
#include "sluice/kernels/handler.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/rows/update.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;
using stablehlo::UpdateCode;

// What is saved is a write and a read of the gradient. With fewer elements they stay in the caches; with more
// inner places the product is faster if it is made in larger pieces than an update likes (measured).
constexpr int64_t kFewestElements = int64_t{1} << 16, kMostInner = 512;

const ProductKernel* find_panel_product(const Product& p) {
  static auto& kernels = *new Prepared<ProductKernel>;
  return kernels.find({p.m, p.k, p.n, p.transposed_a, p.transposed_b, threads_of_a_call()},
                      [&] { return make_panel_product(p); });
}

}  // namespace

bool has_product_update(const Product& p) {
  if (p.batch != 1 || !p.transposed_a || p.m * p.n < kFewestElements || p.k > kMostInner) return false;
  const UseThreads threads;
  return find_panel_product(p) != nullptr;
}

base::Status call_product_update(const pjrt::CustomCall& call) {
  SLUICE_TRY(const UpdateCode code, code_of(call));
  SLUICE_TRY(const stablehlo::Dims positions, list_of(call, "numbers"));
  SLUICE_TRY(const auto product, call.number("product"));
  SLUICE_TRY(const auto transposed_a, call.number("transposed_a"));
  SLUICE_TRY(const auto transposed_b, call.number("transposed_b"));
  const auto number = static_cast<size_t>(product.value_or(-1));
  if (number < code.results.size() || number >= code.tensors || positions.size() != code.numbers)
    return base::fail(Code::kInvalidArgument, "an update of ", code.tensors, " tensors, of which ",
                      code.results.size(), " are results, by product number ", static_cast<int64_t>(number),
                      " with ", positions.size(), " numbers of ", code.numbers);
  size_t next = 0;
  UpdateMember member;
  for (size_t i = 0; i < code.tensors; ++i) {
    float* tensor = nullptr;
    if (i != number) {
      SLUICE_TRY(const pjrt::CallBuffer buffer, call.operand(next++));
      tensor = static_cast<float*>(buffer.data);
      member.elements = buffer.elements();
    }
    member.tensors.push_back(tensor);
  }
  for (size_t i = 0; i < code.units; ++i) {
    SLUICE_TRY(const float* const unit, floats_of(call.operand(next++)));
    member.numbers.push_back(*unit);
  }
  if (code.numbers > 0) {
    SLUICE_TRY(const float* const numbers, floats_of(call.operand(next++)));
    for (const int64_t position : positions) member.numbers.push_back(numbers[position]);
  }
  SLUICE_TRY(const pjrt::CallBuffer a, call.operand(next++));
  SLUICE_TRY(const pjrt::CallBuffer b, call.operand(next++));
  Product p;
  p.transposed_a = transposed_a.value_or(0) != 0;
  p.transposed_b = transposed_b.value_or(0) != 0;
  p.m = a.dims[p.transposed_a ? 1 : 0];
  p.k = a.dims[p.transposed_a ? 0 : 1];
  p.n = b.dims[p.transposed_b ? 0 : 1];
  if (member.elements != static_cast<size_t>(p.m * p.n))
    return base::fail(Code::kInvalidArgument, "an update of ", member.elements, " elements by a product of ",
                      p.m * p.n);
  const UseThreads threads(call);
  const ProductKernel* const kernel = find_panel_product(p);
  if (kernel == nullptr) return no_kernel("product with an update");
  return kernel->run(a.data, b.data, nullptr, [&](const Piece& piece) {
    update_piece(code, member, number, static_cast<size_t>(p.n), piece);
  });
}

}  // namespace sluice::kernels
