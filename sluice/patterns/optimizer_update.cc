// Matches the chains of element-wise operations that end in main's results and take the memory of parameters
// that they read: an optimizer's step (updates.h).
// Makes one call of "sluice_update" (stablehlo/kernel_library.h) for all chains with the same steps.
// Otherwise each chain would be a separate piece of code, which XLA compiles in some 15 ms on a CPU. If a
// product makes the gradient, the update becomes a part of the product instead (update_in_product.cc).
#include <unordered_map>

#include "sluice/base/text/quantity.h"
#include "sluice/patterns/table.h"
#include "sluice/patterns/updates.h"

namespace sluice::patterns {
namespace {

Values call_update(Rewriter& r, const UpdateCode& code, const std::vector<const Update*>& members) {
  const auto results = static_cast<int64_t>(code.results.size());
  Values operands;
  std::vector<Type> types;
  Dims positions;
  for (const Update* member : members) {
    operands.insert(operands.end(), member->tensors.begin(), member->tensors.begin() + results);
    positions.insert(positions.end(), member->numbers.begin(), member->numbers.end());
  }
  for (const Value operand : operands) types.push_back(operand.type());
  for (const Update* member : members)
    operands.insert(operands.end(), member->tensors.begin() + results, member->tensors.end());
  for (const Update* member : members)
    operands.insert(operands.end(), member->units.begin(), member->units.end());
  if (code.numbers > 0) operands.push_back(members[0]->vector);
  r.b.set_location("update of " + base::counted(static_cast<int64_t>(members.size()), "tensor"));
  return r.b.custom_call(UpdateCode::kTarget, operands, types,
                         {{"code", code.to_words()}, {"numbers", positions}},
                         {.in_place = types.size(), .pure = true});
}

}  // namespace

void optimizer_update(Rewriter& r, const KernelLibrary& kernels) {
  std::unordered_map<int32_t, Value> updated;  // by the id of main's former result
  const auto note = [&](const Update& update, Values::const_iterator& next) {
    for (const Value result : update.results) updated[result.id()] = *next++;
  };
  for (const UpdateGroup& group : find_updates(r)) {
    std::vector<const Update*> left;
    for (const Update& member : group.members) {
      const Values made = update_in_product(r, kernels, group.code, member);
      auto next = made.begin();
      if (made.empty())
        left.push_back(&member);
      else
        note(member, next);
    }
    if (left.empty()) continue;
    const Values made = call_update(r, group.code, left);
    auto next = made.begin();
    for (const Update* member : left) note(*member, next);
  }
  r.replace_results(updated);
}

}  // namespace sluice::patterns
