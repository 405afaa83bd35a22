#include "sluice/patterns/calls.h"

#include <algorithm>

namespace sluice::patterns {
namespace {

Values call(Builder& b, std::string_view target, const Values& operands, const std::vector<Type>& results,
            const CallAttributes& attributes, Dims (*layout)(int64_t rank), size_t in_place) {
  stablehlo::CallOptions options{.in_place = in_place, .pure = true};
  for (const Value v : operands) options.operand_layouts.push_back(layout(v.rank()));
  for (const Type& type : results) options.result_layouts.push_back(layout(type.rank()));
  return b.custom_call(target, operands, results, attributes, options);
}

}  // namespace

Dims rows_layout(int64_t rank) {
  Dims layout;
  for (int64_t d = rank - 1; d >= 0; --d) layout.push_back(d);
  return layout;
}

Dims channels_last_layout(int64_t rank) {
  Dims layout = {1};
  for (int64_t d = rank - 1; d >= 2; --d) layout.push_back(d);
  layout.push_back(0);
  return layout;
}

bool all_f32(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](Value v) { return !v || v.dtype() == DType::kF32; });
}
bool all_f32(std::initializer_list<Value> values) { return all_f32(Values(values)); }

bool is_sum(const Operation& op) {
  if (!op.is("stablehlo.reduce") || op.results.size() != 1) return false;
  const auto& body = op.bodies[0].operations;
  return body.size() == 1 && body[0]->is("stablehlo.add");
}

Values call_on_rows(Builder& b, std::string_view target, const Values& operands,
                    const std::vector<Type>& results, const CallAttributes& attributes, size_t in_place) {
  return call(b, target, operands, results, attributes, rows_layout, in_place);
}

Values call_on_rows_in_place(const Rewriter& r, std::string_view target, Values operands,
                             const std::vector<Type>& others, const CallAttributes& attributes) {
  const Dims dims = operands[0].dims();
  const Value before = r.before_reshapes(operands[0]);
  if (before.rank() > 0 && before.dims().back() == dims.back()) {
    operands[0] = before;
    for (Value& operand : operands)
      if (operand.dims() == dims) operand = r.b.reshape(operand, before.dims());
  }
  std::vector<Type> results = {operands[0].type()};
  results.insert(results.end(), others.begin(), others.end());
  Values made = call_on_rows(r.b, target, operands, results, attributes, 1);
  made[0] = r.b.reshape(made[0], dims);
  return made;
}

Values call_on_activations(Builder& b, std::string_view target, const Values& operands,
                           const std::vector<Type>& results, const CallAttributes& attributes,
                           size_t in_place) {
  const auto layout = [](int64_t rank) { return rank > 1 ? channels_last_layout(rank) : rows_layout(rank); };
  return call(b, target, operands, results, attributes, layout, in_place);
}

Values call_in_layouts(Builder& b, std::string_view target, const Values& operands,
                       const std::vector<Type>& results, const CallAttributes& attributes,
                       const std::vector<Dims>& layouts) {
  stablehlo::CallOptions options{.pure = true};
  const auto middle = layouts.begin() + static_cast<int64_t>(operands.size());
  options.operand_layouts.assign(layouts.begin(), middle);
  options.result_layouts.assign(middle, layouts.end());
  return b.custom_call(target, operands, results, attributes, options);
}

}  // namespace sluice::patterns
