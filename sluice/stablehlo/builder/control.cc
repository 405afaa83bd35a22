// Control flow, random bits and barriers.
#include <array>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {
// The attributes of operations that have no attributes.
const Attributes kNone;
}  // namespace

Values Builder::while_(std::span<const Value> init, const Region& condition, const Region& body) {
  constexpr std::string_view kOp = "stablehlo.while";
  impl_->use(kOp, init);
  std::vector<const TypeEntry*> types;
  for (Value v : init) types.push_back(impl_->entry(v));
  const TypeEntry* predicate = impl_->intern({DType::kPred, {}});
  std::vector<Impl::Body> bodies;
  bodies.push_back(impl_->region(kOp, false, types, condition));
  impl_->check_results(kOp, "its condition", bodies[0], {&predicate, 1});
  bodies.push_back(impl_->region(kOp, false, types, body));
  impl_->check_results(kOp, "its body", bodies[1], types);
  return impl_->add(kOp, init, bodies, kNone, types);
}

Values Builder::if_(Value predicate, const Region& on_true, const Region& on_false) {
  constexpr std::string_view kOp = "stablehlo.if";
  impl_->use(kOp, predicate);
  if (predicate.type() != Type{DType::kPred, {}}) {
    reject(kOp, "the predicate must be tensor<i1>, found ", predicate.type().str());
  }
  std::vector<Impl::Body> bodies;
  bodies.push_back(impl_->region(kOp, false, {}, on_true));
  bodies.push_back(impl_->region(kOp, false, {}, on_false));
  impl_->check_results(kOp, "the false branch, as the true one,", bodies[1], bodies[0].results);
  return impl_->add(kOp, {&predicate, 1}, bodies, kNone, bodies[0].results);
}

Values Builder::case_(Value index, std::span<const Region> branches) {
  constexpr std::string_view kOp = "stablehlo.case";
  impl_->use(kOp, index);
  if (index.type() != Type{DType::kS32, {}} || branches.empty()) {
    reject(kOp, "the index must be tensor<i32> and there must be a branch, found ", index.type().str(),
           " and ", branches.size(), " branches");
  }
  std::vector<Impl::Body> bodies;
  for (const Region& branch : branches) {
    bodies.push_back(impl_->region(kOp, false, {}, branch));
    impl_->check_results(kOp, "every branch, as the first one,", bodies.back(), bodies[0].results);
  }
  return impl_->add(kOp, {&index, 1}, bodies, kNone, bodies[0].results);
}

std::pair<Value, Value> Builder::rng_bits(Value state, const Type& type) {
  constexpr std::string_view kOp = "stablehlo.rng_bit_generator";
  impl_->use(kOp, state);
  if (state.type() != Type{DType::kU64, {2}}) {
    reject(kOp, "the state must be tensor<2xui64>, found ", state.type().str());
  }
  if (!is_unsigned(type.dtype)) {
    reject(kOp, "the bits must be unsigned integers, found ", type.str());
  }
  const std::array results = {impl_->entry(state), impl_->intern_checked(kOp, type)};
  const Values made =
      impl_->add(kOp, {&state, 1}, {},
                 Attributes().raw("rng_algorithm", "#stablehlo<rng_algorithm THREE_FRY>"), results);
  return {made[0], made[1]};
}

Value Builder::optimization_barrier(Value x) {
  return impl_->unary("stablehlo.optimization_barrier", x, kAnything);
}

Values Builder::optimization_barrier(std::span<const Value> values) {
  constexpr std::string_view kOp = "stablehlo.optimization_barrier";
  if (values.empty()) reject(kOp, "there must be a value");
  std::vector<const TypeEntry*> results;
  for (const Value& value : values) {
    impl_->use(kOp, value);
    results.push_back(impl_->entry(value));
  }
  return impl_->add(kOp, values, {}, kNone, results);
}

}  // namespace sluice::stablehlo
