#include "sluice/kernels/profile_call.h"

#include <vector>

#include "sluice/profile/kernel_calls.h"
#include "sluice/stablehlo/kernel_work.h"

namespace sluice::kernels {
namespace {

using stablehlo::Dims;

Dims attribute(const pjrt::CustomCall& call, std::string_view name) {
  if (const auto list = call.numbers(name); list && *list) return Dims((*list)->begin(), (*list)->end());
  if (const auto number = call.number(name); number && *number) return {**number};
  return {};
}

}  // namespace

void profile_call(std::string_view target, const pjrt::CustomCall& call, int64_t begin, int64_t end) {
  stablehlo::KernelCall work{target, {}, {}, [&](std::string_view name) { return attribute(call, name); }};
  double bytes = 0;
  const auto add = [&](const base::Result<pjrt::CallBuffer>& buffer, std::vector<Dims>& to) {
    if (!buffer) return;
    to.emplace_back(buffer->dims.begin(), buffer->dims.end());
    bytes += static_cast<double>(buffer->bytes());
  };
  for (size_t i = 0; i < call.num_operands(); ++i) add(call.operand(i), work.operands);
  for (size_t i = 0; i < call.num_results(); ++i) add(call.result(i), work.results);
  const Dims recorded = attribute(call, stablehlo::kRecordedAttribute);
  profile::record_kernel_call({.recorded = recorded.empty() ? 0 : recorded[0],
                               .target = target.data(),
                               .begin = begin,
                               .end = end,
                               .flops = stablehlo::flops_of(work).value_or(-1),
                               .bytes = bytes});
}

}  // namespace sluice::kernels
