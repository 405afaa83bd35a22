// Matches the composites attention and attention_gradient in programs over a mesh whose axis `sequence` has
// several devices. Makes regions in which each device computes its own queries (ops/attention/sequence.h).
//
// A mask of all queries and all keys is too large for a device where sequences are long. Masks of documents
// and of padding are computed from numbers of the queries and numbers of the keys, such as the document of
// each token and its place. The region gets these numbers and computes a block's part of the mask when it
// needs it. Another mask becomes an operand of the region.
#include <array>
#include <map>
#include <set>

#include "sluice/base/text/join.h"
#include "sluice/patterns/table.h"
#include "sluice/stablehlo/builder/elementwise.h"
#include "sluice/stablehlo/composites.h"
#include "sluice/stablehlo/splat.h"

namespace sluice::patterns {
namespace sequence_masks {

using ops::attention::BlockMask;
using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Operation;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

// Which dimension of a value is the mask's batch, heads, queries and keys; -1: none.
using Roles = std::array<int64_t, 4>;
constexpr size_t kQueries = 2, kKeys = 3;

bool has(const Dims& dims, const Roles& roles, size_t role) {
  return roles[role] >= 0 && dims[static_cast<size_t>(roles[role])] > 1;
}

// Returns the roles of the operand of a reshape that only adds or drops dimensions of size 1.
std::optional<Roles> before_reshape(const Dims& from, const Dims& to, const Roles& roles) {
  std::vector<int64_t> of_operand(to.size(), -1);
  size_t i = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1) continue;
    while (i < from.size() && from[i] == 1) ++i;
    if (i == from.size() || from[i] != to[d]) return std::nullopt;
    of_operand[d] = static_cast<int64_t>(i++);
  }
  for (; i < from.size(); ++i)
    if (from[i] != 1) return std::nullopt;
  Roles before;
  for (size_t r = 0; r < roles.size(); ++r)
    before[r] = roles[r] < 0 ? -1 : of_operand[static_cast<size_t>(roles[r])];
  return before;
}

Roles before_broadcast(const Operation& op, const Roles& roles) {
  const Dims places = op.attributes.list("broadcast_dimensions");
  const Dims &from = op.operands[0].dims(), &to = op.results[0].dims();
  Roles before{-1, -1, -1, -1};
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t r = 0; r < roles.size(); ++r)
      if (roles[r] == places[i] && from[i] == to[static_cast<size_t>(places[i])])
        before[r] = static_cast<int64_t>(i);
  return before;
}

Roles before_transpose(const Operation& op, const Roles& roles) {
  const Dims permutation = op.attributes.list("permutation");
  Roles before;
  for (size_t r = 0; r < roles.size(); ++r)
    before[r] = roles[r] < 0 ? -1 : permutation[static_cast<size_t>(roles[r])];
  return before;
}

// Returns the roles of an operand; nothing for operations that mix elements.
std::optional<Roles> roles_before(const Operation& op, const Roles& roles) {
  if (op.is("stablehlo.reshape")) return before_reshape(op.operands[0].dims(), op.results[0].dims(), roles);
  if (op.is("stablehlo.broadcast_in_dim")) return before_broadcast(op, roles);
  if (op.is("stablehlo.transpose")) return before_transpose(op, roles);
  return stablehlo::is_elementwise(op) ? std::optional(roles) : std::nullopt;
}

// The numbers scale × place + offset of the places of queries or keys.
struct Places {
  size_t role = 0;
  int64_t scale = 0, offset = 0;
};

// How a mask is computed, as far as it is computed from numbers of queries and numbers of keys.
class Formula {
 public:
  // `mask` has the dimensions of the composite's operand.
  Formula(Rewriter& r, Value mask) : r_(&r), mask_(mask) { known_ = add(mask, {0, 1, 2, 3}); }
  bool known() const { return known_; }

  // Adds the leaves to the program.
  BlockMask block_mask() const {
    BlockMask made;
    for (const Leaf& leaf : leaves_) made.leaves.push_back(placed(leaf));
    made.hides_later = hides_later(mask_, {0, 1, 2, 3});
    made.make = [this](Builder& b, const Values& leaves, int64_t queries, int64_t keys) {
      return mask_of(b, leaves, queries, keys);
    };
    return made;
  }

 private:
  // A value in one of its uses: the numbers of queries and of keys may be one value.
  using Use = std::pair<int32_t, Roles>;
  struct Leaf {
    Value value;  // empty: the places of the role
    Roles roles;
    int32_t id = 0;

    Use use() const { return {id, roles}; }
  };
  struct Step {
    const Operation* op;
    Roles roles;  // of its result
  };

  bool add(Value v, const Roles& roles) {
    if (!seen_.insert({v.id(), roles}).second) return true;
    const Operation* const op = r_->maker(v);
    if (op != nullptr && op->is("stablehlo.iota")) return add_iota(v, *op, roles);
    if (!has(v.dims(), roles, kQueries) || !has(v.dims(), roles, kKeys)) {
      leaves_.push_back({v, roles, v.id()});
      return is_ordered(v.dims(), roles);
    }
    if (op == nullptr || op->results.size() != 1) return false;
    if (!op->is("stablehlo.constant")) {
      const auto before = roles_before(*op, roles);
      if (!before) return false;
      for (const Value operand : op->operands)
        if ((stablehlo::is_elementwise(*op) && operand.dims() != v.dims()) || !add(operand, *before))
          return false;
    } else if (stablehlo::splat_text(*op).find_first_of("[\"") != std::string::npos) {
      return false;
    }
    steps_.push_back({op, roles});
    return true;
  }

  bool add_iota(Value v, const Operation& op, const Roles& roles) {
    const auto role = role_of_iota(op, roles);
    if (!role) return false;
    leaves_.push_back({{}, roles, v.id()});
    places_[{v.id(), roles}] = {*role, v.dim(roles[*role]), v.dtype(), v.dims()};
    return true;
  }
  static std::optional<size_t> role_of_iota(const Operation& op, const Roles& roles) {
    const std::string text = op.attributes.text();
    for (size_t role : {kQueries, kKeys})
      if (roles[role] >= 0 &&
          text.find(base::str("iota_dimension = ", roles[role], " :")) != std::string::npos)
        return role;
    return std::nullopt;
  }

  // Returns whether the roles come in the order of a mask's, and there is no other dimension.
  static bool is_ordered(const Dims& dims, const Roles& roles) {
    int64_t last = -1;
    int64_t of_roles = 1, all = 1;
    for (const int64_t d : roles) {
      if (d < 0 || dims[static_cast<size_t>(d)] == 1) continue;
      if (d < last) return false;
      last = d;
      of_roles *= dims[static_cast<size_t>(d)];
    }
    for (const int64_t d : dims) all *= d;
    return of_roles == all;
  }

  // Returns a leaf as [batch or 1, heads or 1, queries or 1, keys or 1].
  Value placed(const Leaf& leaf) const {
    if (!leaf.value) {
      const Iota& iota = places_.at(leaf.use());
      Dims dims(4, 1);
      dims[iota.role] = iota.size;
      return r_->b.iota(Type{iota.dtype, dims}, static_cast<int64_t>(iota.role));
    }
    const Value now = r_->now(leaf.value);
    Dims dims;
    for (const int64_t d : leaf.roles) dims.push_back(d < 0 ? 1 : now.dim(d));
    return r_->b.reshape(now, dims);
  }

  static Dims dims_of_block(const Dims& dims, const Roles& roles, int64_t queries, int64_t keys) {
    Dims block = dims;
    if (has(dims, roles, kQueries)) block[static_cast<size_t>(roles[kQueries])] = queries;
    if (has(dims, roles, kKeys)) block[static_cast<size_t>(roles[kKeys])] = keys;
    return block;
  }

  Value mask_of(Builder& b, const Values& blocks, int64_t queries, int64_t keys) const {
    std::map<Use, Value> made;
    // A device has a part of the batch and of the heads.
    Dims outer = {1, 1};
    for (const Value block : blocks)
      for (size_t i : {0, 1}) outer[i] = std::max(outer[i], block.dim(static_cast<int64_t>(i)));
    const auto dims_of = [&](const Dims& dims, const Roles& roles) {
      Dims block = dims_of_block(dims, roles, queries, keys);
      for (size_t i : {0, 1})
        if (has(dims, roles, i)) block[static_cast<size_t>(roles[i])] = outer[i];
      return block;
    };
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      if (leaf.value) {
        made[leaf.use()] = b.reshape(blocks[i], dims_of(leaf.value.dims(), leaf.roles));
        continue;
      }
      const Iota& iota = places_.at(leaf.use());
      Dims dims = dims_of(iota.dims, leaf.roles);
      made[leaf.use()] =
          b.broadcast_in_dim(b.reshape(blocks[i], {blocks[i].dim(static_cast<int64_t>(iota.role))}), dims,
                             {leaf.roles[iota.role]});
    }
    for (const Step& step : steps_) {
      const Operation& op = *step.op;
      const Value result = op.results[0];
      const Dims dims = dims_of(result.dims(), step.roles);
      Values operands;
      if (!op.operands.empty()) {
        const Roles before = *roles_before(op, step.roles);
        for (const Value operand : op.operands) operands.push_back(made.at({operand.id(), before}));
      }
      made[{result.id(), step.roles}] =
          op.is("stablehlo.reshape") ? b.reshape(operands[0], dims)
          : op.is("stablehlo.broadcast_in_dim")
              ? b.broadcast_in_dim(operands[0], dims, op.attributes.list("broadcast_dimensions"))
          : op.is("stablehlo.transpose") ? b.transpose(operands[0], op.attributes.list("permutation"))
                                         : r_->copy(op, operands, {}, {Type{result.dtype(), dims}})[0];
    }
    return made.at({mask_.id(), {0, 1, 2, 3}});
  }

  // ---- which keys a query never sees ----

  std::optional<Places> places(Value v, const Roles& roles) const {
    const Operation* const op = r_->maker(v);
    if (op == nullptr) return std::nullopt;
    if (const auto whole = stablehlo::integer_of(*op)) return Places{0, 0, *whole};
    if (op->is("stablehlo.iota")) {
      const auto role = role_of_iota(*op, roles);
      return role ? std::optional(Places{*role, 1, 0}) : std::nullopt;
    }
    const auto before = roles_before(*op, roles);
    if (!before) return std::nullopt;
    const auto first = places(op->operands[0], *before);
    if (op->operands.size() == 1) return keeps_numbers(*op) ? first : std::nullopt;
    if (op->operands.size() != 2 || !first) return std::nullopt;
    const auto second = places(op->operands[1], *before);
    if (!second || (first->scale != 0 && second->scale != 0)) return std::nullopt;
    const Places& moving = first->scale != 0 ? *first : *second;
    const int64_t constant = first->scale != 0 ? second->offset : first->offset;
    if (op->is("stablehlo.add")) return Places{moving.role, moving.scale, moving.offset + constant};
    if (op->is("stablehlo.multiply"))
      return Places{moving.role, moving.scale * constant, moving.offset * constant};
    return std::nullopt;
  }

  static bool keeps_numbers(const Operation& op) {
    for (const char* move : {"stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose"})
      if (op.is(move)) return true;
    if (!op.is("stablehlo.convert")) return false;
    const DType from = op.operands[0].dtype(), to = op.results[0].dtype();
    return from == to || (stablehlo::is_integer(from) && stablehlo::is_integer(to) && dtype_size(to) >= 4);
  }

  // Returns whether the value is false for each key after its query.
  bool hides_later(Value v, const Roles& roles) const {
    const Operation* const op = r_->maker(v);
    if (op == nullptr || v.dtype() != DType::kPred) return false;
    const auto before = roles_before(*op, roles);
    if (!before) return false;
    if (op->is("stablehlo.compare")) return compares_places(*op, *before);
    const auto of = [&](size_t i) { return hides_later(op->operands[i], *before); };
    if (op->is("stablehlo.and")) return of(0) || of(1);
    if (op->is("stablehlo.or")) return of(0) && of(1);
    return keeps_numbers(*op) && of(0);
  }
  bool compares_places(const Operation& op, const Roles& roles) const {
    auto left = places(op.operands[0], roles), right = places(op.operands[1], roles);
    if (!left || !right || left->scale != 1 || right->scale != 1) return false;
    const std::string text = op.attributes.text();
    const auto is = [&](const char* direction) {
      return text.find(base::str("comparison_direction ", direction)) != std::string::npos;
    };
    if (is("GT") || is("GE") || (is("EQ") && left->role == kQueries)) std::swap(left, right);
    // Now: a key's number ≤ or = a query's.
    return (is("LE") || is("LT") || is("GT") || is("GE") || is("EQ")) && left->role == kKeys &&
           right->role == kQueries && right->offset <= left->offset;
  }

  struct Iota {
    size_t role;
    int64_t size;
    DType dtype;
    Dims dims;
  };
  Rewriter* r_;
  Value mask_;
  bool known_ = false;
  std::set<Use> seen_;
  std::map<Use, Iota> places_;
  std::vector<Leaf> leaves_;
  std::vector<Step> steps_;
};

}  // namespace sequence_masks

void attention_over_sequence(Rewriter& r, const ops::attention::Groups& groups,
                             const ops::attention::Sequence& sequence) {
  if (sequence.mesh == nullptr || sequence.mesh->size("sequence") == 1) return;
  r.each([&](const stablehlo::Operation& op) -> stablehlo::Values {
    if (!op.is_composite(stablehlo::composites::kAttention) &&
        !op.is_composite(stablehlo::composites::kAttentionGradient))
      return {};
    const stablehlo::Value mask = ops::attention::read_composite(op).in.mask;
    if (mask) {
      const sequence_masks::Formula formula(r, mask);
      if (formula.known()) {
        const ops::attention::BlockMask block = formula.block_mask();
        return ops::attention::over_sequence(r, op, groups, sequence, &block);
      }
    }
    return ops::attention::over_sequence(r, op, groups, sequence, nullptr);
  });
}

}  // namespace sluice::patterns
