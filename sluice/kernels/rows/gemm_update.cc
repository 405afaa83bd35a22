#include "sluice/kernels/rows/gemm_update.h"

#include "sluice/kernels/gemm/gemm_panels.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/prepared.h"
#include "sluice/kernels/rows/update.h"
#include "sluice/kernels/threads.h"

namespace sluice::kernels {
namespace {

using Product = stablehlo::ProductCall;
using stablehlo::UpdateCode;

// The call saves a write and a read of the gradient. With fewer elements the gradient stays in the caches;
// with a longer K the product is faster in pieces that are too large for an update (measured).
constexpr int64_t kMinElements = int64_t{1} << 16, kMaxK = 512;

const Gemm* find_panel_gemm(const Product& p) {
  static auto& kernels = *new Prepared<Gemm>;
  return kernels.find({p.m, p.k, p.n, p.transposed_a, p.transposed_b, threads_of_a_call()},
                      [&] { return make_panel_gemm(p); });
}

}  // namespace

bool has_gemm_update(const Product& p) {
  if (is_left_out("product_update") || p.batch != 1 || !p.transposed_a || p.m * p.n < kMinElements ||
      p.k > kMaxK)
    return false;
  const UseThreads threads;
  return find_panel_gemm(p) != nullptr;
}

base::Status call_gemm_update(const Call& call) {
  SLUICE_TRY(const UpdateCode code, code_of(call));
  SLUICE_TRY(const int64_t product, call.number("product"));
  const auto number = static_cast<size_t>(product);
  if (number < code.results.size() || number >= code.tensors)
    return call.refuse("attribute product is ", product, ", expected a tensor of the code after its ",
                       code.results.size(), " results, of ", code.tensors, " in all");
  const size_t units = code.tensors - 1, numbers = units + code.units,
               a = numbers + (code.numbers > 0 ? 1 : 0);
  SLUICE_OK(call.takes_at_least({a + 2, code.results.size()}));
  SLUICE_TRY(const auto operands, read_gemm(call, a, {}));
  const Product& p = operands.product;
  UpdateMember member;
  member.elements = static_cast<size_t>(p.m * p.n);
  for (size_t i = 0, next = 0; i < code.tensors; ++i) {
    float* tensor = nullptr;
    if (i != number) {
      SLUICE_TRY(tensor, member_tensor(call, next++, member.elements));
    }
    member.tensors.push_back(tensor);
  }
  for (size_t i = 0; i < code.results.size(); ++i) SLUICE_OK(call.in_place(i, i));
  for (size_t i = 0; i < code.units; ++i) SLUICE_OK(append_unit(call, units + i, member.numbers));
  SLUICE_TRY(const std::vector<float> read, read_numbers(call, numbers, code.numbers));
  member.numbers.insert(member.numbers.end(), read.begin(), read.end());
  const Gemm* const kernel = find_panel_gemm(p);
  if (kernel == nullptr) return no_kernel("product with an update");
  return kernel->run(operands.a, operands.b, nullptr, [&](const Piece& piece) {
    update_piece(code, member, number, static_cast<size_t>(p.n), piece);
  });
}

}  // namespace sluice::kernels
