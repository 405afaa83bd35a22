#include "sluice/patterns/loops/rows.h"

#include <map>

#include "sluice/patterns/loops/loop.h"

namespace sluice::patterns {
namespace {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Rewriter;
using stablehlo::Value;
using stablehlo::Values;

// A row of a stack, or another slice of one place along the first dimension, in any shape.
struct Row {
  Value stack;
  int64_t place = 0;
};
Row row_of(const Rewriter& r, Value v) {
  const Operation* const op = r.made_by(r.before_reshapes(v), "stablehlo.slice");
  if (op == nullptr || op->operands[0].rank() == 0) return {};
  const Dims start = op->attributes.list("start_indices");
  Dims row = op->operands[0].dims();
  row[0] = 1;
  return op->results[0].dims() == row ? Row{op->operands[0], start[0]} : Row{};
}

// Joins consecutive rows of one stack, ascending or descending, along the dimension that the parts are joined
// along.
Value join(Builder& b, std::span<const Value> parts, const Row& first, int64_t step, int64_t dim) {
  const auto count = static_cast<int64_t>(parts.size());
  const int64_t low = step > 0 ? first.place : first.place - count + 1;
  Value rows = b.slice_dim(first.stack, 0, low, low + count);
  if (step < 0) rows = b.reverse(rows, {0});
  const Dims& one = parts[0].dims();
  rows = b.reshape(rows, with_front(count, one));
  Dims order, all = one;
  for (int64_t d = 1; d <= dim; ++d) order.push_back(d);
  order.push_back(0);
  for (int64_t d = dim + 1; d <= parts[0].rank(); ++d) order.push_back(d);
  all[static_cast<size_t>(dim)] *= count;
  return b.reshape(b.transpose(rows, order), all);
}

}  // namespace

void join_rows(Rewriter& r, size_t least) {
  r.each([&](const Operation& op) -> Values {
    if (!op.is("stablehlo.concatenate") || op.operands.size() < least) return {};
    std::vector<Row> rows;
    for (Value v : op.operands) rows.push_back(row_of(r, v));
    const int64_t dim = op.attributes.list("dimension").at(0);
    Values parts;
    for (size_t i = 0; i < rows.size();) {
      const auto follows = [&](size_t k, int64_t step) {
        return k < rows.size() && rows[k].stack && rows[k].stack == rows[i].stack &&
               rows[k].place == rows[k - 1].place + step && op.operands[k].dims() == op.operands[i].dims();
      };
      const int64_t step = follows(i + 1, 1) ? 1 : -1;
      size_t end = i + 1;
      while (follows(end, step)) ++end;
      const std::span<const Value> run = std::span(op.operands).subspan(i, end - i);
      if (run.size() < least)
        parts.insert(parts.end(), run.begin(), run.end());
      else
        parts.push_back(join(r.b, run, rows[i], step, dim));
      i = end;
    }
    if (parts.size() == op.operands.size()) return {};
    return {r.b.concatenate(parts, dim)};
  });
}

void share_stacks(Rewriter& r) {
  std::map<std::pair<std::string, std::vector<int32_t>>, Value> known;
  r.each([&](const Operation& op) -> Values {
    const bool shared =
        op.is("stablehlo.reshape") || op.is("stablehlo.concatenate") || op.is("stablehlo.convert");
    if (!shared || (!op.is("stablehlo.concatenate") && op.results[0].rank() < 1)) return {};
    std::vector<int32_t> operands;
    for (Value v : op.operands) operands.push_back(v.id());
    const std::string kind = op.name + op.attributes.text() + op.results[0].type().str();
    const auto [found, added] = known.try_emplace({kind, operands}, op.results[0]);
    return added ? Values() : Values{found->second};
  });
}

}  // namespace sluice::patterns
