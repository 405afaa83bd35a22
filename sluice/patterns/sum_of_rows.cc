// Matches a sum over the first dimensions of a tensor that is not small, over 16 rows or more.
// Makes "sluice_sum_of_rows" (stablehlo/kernel_library.h), which goes along the rows; XLA's code for a CPU
// goes down one column after the other. (With few rows that is as good.)
#include <algorithm>

#include "sluice/patterns/calls.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

constexpr int64_t kMinRows = 16;

}  // namespace

void sum_of_rows(Rewriter& r, const KernelLibrary&) {
  r.each([&](const Operation& op) -> Values {
    if (!is_sum(op)) return {};
    const Value x = op.operands[0];
    Dims dims = op.attributes.list("dimensions");
    std::sort(dims.begin(), dims.end());
    int64_t rows = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != static_cast<int64_t>(d)) return {};
      rows *= x.dims()[d];
    }
    const bool columns_left = static_cast<int64_t>(dims.size()) < x.rank();
    if (!all_f32({x}) || is_small(x) || !columns_left || rows < kMinRows) return {};
    return call_on_rows(r.b, stablehlo::kSumOfRowsTarget, {x}, {op.results[0].type()});
  });
}

}  // namespace sluice::patterns
