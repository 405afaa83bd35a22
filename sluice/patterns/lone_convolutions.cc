#include "sluice/patterns/lone_convolutions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/stablehlo/composites.h"

namespace sluice::patterns {
namespace {

namespace composites = stablehlo::composites;
using stablehlo::Operation;
using stablehlo::Value;

// A convolution's activations, and its weight.
struct Sides {
  std::vector<Value> x, y;
  Value w;
};
std::optional<Sides> sides_of(const Operation& op) {
  const auto &in = op.operands, &out = op.results;
  if (op.is_composite(composites::kConvolution)) return Sides{{in[0]}, {out[0]}, in[1]};
  if (op.is_composite(composites::kConvolutionOfX)) return Sides{{out[0]}, {in[0]}, in[1]};
  if (op.is_composite(composites::kConvolutionOfW)) return Sides{{in[0]}, {in[1]}, out[0]};
  if (op.is_composite(composites::kConvolutionGradients)) return Sides{{in[0], out[0]}, {in[2]}, in[1]};
  return std::nullopt;
}

// Sets of values that have the same order in memory. Each set lists the users that want an order of
// their own.
class OrderSets {
 public:
  void join(Value a, Value b) { parents_[root(a.id())] = root(b.id()); }
  void add_user(Value v, const std::string& user) { users_.emplace_back(v, user); }
  // Finds the users of each set, once all values have been joined.
  void settle() {
    for (const auto& [v, user] : users_) {
      std::vector<std::string>& those = of_root_[root(v.id())];
      if (std::find(those.begin(), those.end(), user) == those.end()) those.push_back(user);
    }
  }
  bool has_one_user(Value v) { return of_root_[root(v.id())].size() == 1; }

  // Returns the set's identifier.
  int32_t root(int32_t id) {
    int32_t& parent = parents_.try_emplace(id, id).first->second;
    if (parent != id) parent = root(parent);
    return parent;
  }

 private:
  std::unordered_map<int32_t, int32_t> parents_;
  std::vector<std::pair<Value, std::string>> users_;
  std::unordered_map<int32_t, std::vector<std::string>> of_root_;
};

// Adds a convolution: a layer's forward pass and gradients count as one user of an activation.
void add_convolution(OrderSets& sets, const Operation& op, const Sides& sides) {
  const auto text = [](const stablehlo::Dims& dims) { return base::join(dims, ","); };
  const std::string layer =
      base::str(text(sides.x[0].dims()), " ", text(sides.w.dims()), " ", text(sides.y[0].dims()), " ",
                text(op.ints("stride")), " ", text(op.ints("padding")), " ", text(op.ints("dilation")));
  for (const Value x : sides.x) sets.add_user(x, layer + " x");
  for (const Value y : sides.y) sets.add_user(y, layer + " y");
}

// Returns whether the operation prefers an order, or changes it although the dims are equal.
bool has_an_order(const Operation& op) {
  return op.is("stablehlo.transpose") || op.is_composite(composites::kBatchNorm) ||
         op.is_composite(composites::kBatchNormStatistics) || op.is_composite(composites::kBatchNormSums) ||
         op.is_composite(composites::kBatchNormGradient);
}

// LibTorch computes a convolution along one dimension as one along two: a dimension of 1 is added and
// removed.
bool same_but_for_ones(Value a, Value b) {
  const auto without_ones = [](stablehlo::Dims dims) {
    std::erase(dims, 1);
    return dims;
  };
  return without_ones(a.dims()) == without_ones(b.dims());
}

void add_operation(OrderSets& sets, const Operation& op) {
  if (const auto sides = sides_of(op)) return add_convolution(sets, op, *sides);
  // The operands and results of these operations may have any order.
  if (op.is("stablehlo.broadcast_in_dim") || op.is("stablehlo.reduce") || op.is("stablehlo.constant")) return;
  std::vector<Value> here;
  const auto add = [&](Value v) {
    if (v && v.rank() > 2) here.push_back(v);
  };
  stablehlo::for_operands(op, add);
  std::for_each(op.results.begin(), op.results.end(), add);
  const bool is_reshape = op.is("stablehlo.reshape");
  const bool keeps_order = !has_an_order(op) && std::all_of(here.begin(), here.end(), [&](Value v) {
    return is_reshape ? same_but_for_ones(v, here.front()) : v.dims() == here.front().dims();
  });
  for (const Value v : here) {
    if (keeps_order)
      sets.join(v, here.front());
    else
      sets.add_user(v, base::str(op.name, " ", op.target));
  }
}

}  // namespace

LoneConvolutions::LoneConvolutions(const stablehlo::Rewriter& r) {
  OrderSets sets;
  for (const auto& op : r.operations()) add_operation(sets, *op);
  sets.settle();
  std::unordered_set<int32_t> theirs;  // the sets of lone convolutions
  const auto is_own = [&](Value v) { return sets.has_one_user(v); };
  for (const auto& op : r.operations()) {
    const auto sides = sides_of(*op);
    if (!sides || !std::all_of(sides->x.begin(), sides->x.end(), is_own) ||
        !std::all_of(sides->y.begin(), sides->y.end(), is_own))
      continue;
    for (const auto* side : {&sides->x, &sides->y})
      for (const Value v : *side) theirs.insert(sets.root(v.id()));
    found_.insert(op->results[0].id());
    // The convolutions inside a composite of both gradients.
    if (!op->bodies.empty())
      for (const auto& inner : op->bodies[0].operations)
        if (sides_of(*inner)) found_.insert(inner->results[0].id());
  }
  for (const auto& op : r.operations())
    if (op->is("stablehlo.reduce") && theirs.contains(sets.root(op->operands[0].id())))
      found_.insert(op->results[0].id());
}

}  // namespace sluice::patterns
