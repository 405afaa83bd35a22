// Matches two operations that XLA's algebraic simplifier merges into one although a value between them may
// overflow: log(exp(x)), pow(exp(x), p), exp(x) / exp(y), exp(x) * exp(y), sqrt(x * x), abs(x * x) of
// integers, and similar ones below.
// Makes the second operation read its operands through an optimization barrier, so that it gets the values
// that LibTorch's gets: log(exp(89)) is inf, not 89. The list follows the simplifier
// (algebraic_simplifier.cc: HandleLog, HandlePower, HandleDivide, HandleMultiply, HandleSqrt, HandleRsqrt,
// HandleAbs).
#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace {

using stablehlo::Operation;
using stablehlo::Value;
using stablehlo::Values;

constexpr std::string_view kExp = "stablehlo.exponential", kPower = "stablehlo.power",
                           kSqrt = "stablehlo.sqrt", kRsqrt = "stablehlo.rsqrt",
                           kMultiply = "stablehlo.multiply", kDivide = "stablehlo.divide";

// Returns the operation that made v's elements, past operations that only move them.
const Operation* source(const Rewriter& r, Value v) {
  constexpr std::array<std::string_view, 3> kMoves = {"stablehlo.reshape", "stablehlo.broadcast_in_dim",
                                                      "stablehlo.transpose"};
  const Operation* op = r.maker(v);
  while (op != nullptr && std::find(kMoves.begin(), kMoves.end(), op->name) != kMoves.end())
    op = r.maker(op->operands[0]);
  return op;
}

bool is_made_by(const Rewriter& r, Value v, std::initializer_list<std::string_view> names) {
  const Operation* const op = source(r, v);
  return op != nullptr && std::find(names.begin(), names.end(), op->name) != names.end();
}

bool is_square(const Rewriter& r, Value v) {
  const Operation* const op = source(r, v);
  return op != nullptr && op->is(kMultiply) && op->operands[0] == op->operands[1];
}

// Returns whether XLA would merge op with the maker of its first operand, or of both operands.
bool would_fold(const Rewriter& r, const Operation& op) {
  const Value x = op.operands.empty() ? Value() : op.operands[0];
  if (op.is("stablehlo.log")) return is_made_by(r, x, {kExp, kPower});
  if (op.is(kPower)) return is_made_by(r, x, {kExp, kPower, kSqrt, kRsqrt});
  if (op.is(kSqrt)) return is_square(r, x) || is_made_by(r, x, {kPower});
  if (op.is(kRsqrt)) return is_square(r, x) || is_made_by(r, x, {kPower, kDivide});
  if (op.is("stablehlo.abs")) return is_square(r, x);
  const auto both = [&](std::string_view name) {
    return is_made_by(r, x, {name}) && is_made_by(r, op.operands[1], {name});
  };
  if (op.is(kDivide)) return both(kExp);
  return op.is(kMultiply) && (both(kExp) || both(kSqrt) || both(kRsqrt));
}

Values made_of(Rewriter& r, const Operation& op, Value x) {
  stablehlo::Builder& b = r.b;
  if (op.is("stablehlo.log")) return {b.log(x)};
  if (op.is(kPower)) return {b.power(x, op.operands[1])};
  if (op.is(kSqrt)) return {b.sqrt(x)};
  if (op.is(kRsqrt)) return {b.rsqrt(x)};
  if (op.is("stablehlo.abs")) return {b.abs(x)};
  const Value y = op.operands[0] == op.operands[1] ? x : op.operands[1];
  return {op.is(kDivide) ? b.divide(x, y) : b.multiply(x, y)};
}

}  // namespace

void folds(Rewriter& r) {
  r.each([&](const Operation& op) -> Values {
    if (op.results.size() != 1 || !would_fold(r, op)) return {};
    return made_of(r, op, r.b.optimization_barrier(op.operands[0]));
  });
}

}  // namespace sluice::patterns
