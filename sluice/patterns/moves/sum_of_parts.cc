// Matches a sum of eight or more parts in zeros: the gradient of a tensor from which a program took slices
// one by one, such as x[i], x[i][j] or x.narrow(0, i, 2).
// Makes one concatenation of the parts along each dimension in which they are apart. N slices then take N
// operations on slices, and not N additions of whole tensors. Equal parts are added first, and parts that
// overlap go to different concatenations. For every target, after the loops, whose rounds add such parts in
// place.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>

#include "sluice/patterns/moves/constants.h"
#include "sluice/patterns/table.h"

namespace sluice::patterns {
namespace sum_of_parts_detail {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

constexpr size_t kMinParts = 8;
constexpr size_t kMaxLayers = 16;

// A box of a tensor whose other elements are zeros.
struct Part {
  Dims low;     // where the box begins
  Value value;  // its elements, in all dimensions of the tensor
  int64_t high(size_t d) const { return low[d] + value.dims()[d]; }
};
using Parts = std::vector<Part>;

// Where a part comes from; nothing is made for it yet.
struct Found {
  Dims low, box;
  Value source;
};

// Returns whether a reshape only adds and drops dimensions of one element.
bool keeps_dims(const Operation& op) {
  Dims from = op.operands[0].dims(), to = op.results[0].dims();
  std::erase(from, 1);
  std::erase(to, 1);
  return from == to;
}

// Changes a box in a tensor of dims `from` into the same box in the tensor's reshape to dims `to`.
void reshape_box(const Dims& from, const Dims& to, Found& found) {
  Dims low(to.size(), 0), box(to.size(), 1);
  size_t at = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1) continue;
    while (from[at] == 1) ++at;
    low[d] = found.low[at];
    box[d] = found.box[at];
    ++at;
  }
  found.low = std::move(low);
  found.box = std::move(box);
}

// Returns the part that v is, if paddings with zeros make v; they may be several: x[i][j] has two.
std::optional<Found> find_part(const Rewriter& r, Value v) {
  std::vector<const Operation*> moves;
  size_t padded = 0;  // the number of moves down to the first padding
  for (const Operation* op = r.maker(v); op != nullptr; op = r.maker(op->operands[0])) {
    const bool pads = pads_with_zeros(r, *op);
    if (!pads && !(op->is("stablehlo.reshape") && keeps_dims(*op))) break;
    moves.push_back(op);
    if (pads) padded = moves.size();
  }
  if (padded == 0) return {};
  moves.resize(padded);
  const Value source = moves.back()->operands[0];
  if (source.type().numel() == 0) return {};
  Found found{Dims(source.dims().size(), 0), source.dims(), source};
  for (size_t i = moves.size(); i-- > 0;) {
    const Operation& op = *moves[i];
    if (op.is("stablehlo.reshape")) {
      reshape_box(op.operands[0].dims(), op.results[0].dims(), found);
      continue;
    }
    const Dims low = op.attributes.list("edge_padding_low");
    for (size_t d = 0; d < low.size(); ++d) found.low[d] += low[d];
  }
  return found;
}

bool is_whole(const Part& part, const Dims& dims, size_t d) { return part.value.dims()[d] == dims[d]; }

Value sum_of(Builder& b, const Parts& parts) {
  Value sum = parts[0].value;
  for (size_t i = 1; i < parts.size(); ++i) sum = b.add(sum, parts[i].value);
  return sum;
}

std::optional<Value> joined(Builder& b, const Parts& parts, const Dims& dims, size_t first);

// Parts that do not overlap along one dimension, by where they begin.
using Layer = std::map<int64_t, Part>;

// Adds the part to a layer in which it overlaps none, or only its equal, to which it is added. Returns
// whether it could.
bool lay(Builder& b, const Part& part, size_t d, Layer& layer) {
  const auto next = layer.upper_bound(part.low[d]);
  if (next != layer.end() && next->first < part.high(d)) return false;
  if (next != layer.begin()) {
    Part& before = std::prev(next)->second;
    if (before.low == part.low && before.value.dims() == part.value.dims()) {
      before.value = b.add(before.value, part.value);
      return true;
    }
    if (before.high(d) > part.low[d]) return false;
  }
  layer.emplace(part.low[d], part);
  return true;
}

// Joins parts that are whole in the dimensions after d, and some overlap along d: the result is the sum of a
// few layers, and the parts of a layer do not overlap.
std::optional<Value> join_layers(Builder& b, const Parts& parts, const Dims& dims, size_t d) {
  for (const Part& part : parts)
    for (size_t e = d + 1; e < dims.size(); ++e)
      if (!is_whole(part, dims, e)) return {};
  std::vector<Layer> layers;
  for (const Part& part : parts) {
    if (std::any_of(layers.begin(), layers.end(), [&](Layer& layer) { return lay(b, part, d, layer); }))
      continue;
    if (layers.size() == kMaxLayers || (layers.size() + 1) * 2 > parts.size()) return {};
    layers.push_back({{part.low[d], part}});
  }
  Value sum;
  for (const Layer& layer : layers) {
    Parts apart;
    for (const auto& [low, part] : layer) apart.push_back(part);
    const Value next = *joined(b, apart, dims, d);
    sum = sum ? b.add(sum, next) : next;
  }
  return sum;
}

// Returns the tensor of these dims that the parts add up to. All parts are whole in the dimensions before
// `first`. Nothing if parts overlap in a way that has no short form.
std::optional<Value> joined(Builder& b, const Parts& parts, const Dims& dims, size_t first) {
  const auto all_whole = [&](size_t d) {
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) { return is_whole(part, dims, d); });
  };
  size_t d = first;
  while (d < dims.size() && all_whole(d)) ++d;
  if (d == dims.size()) return sum_of(b, parts);
  std::map<std::pair<int64_t, int64_t>, Parts> groups;  // by where they begin and end in dimension d
  for (const Part& part : parts) groups[{part.low[d], part.high(d)}].push_back(part);
  int64_t at = 0;
  for (const auto& [range, group] : groups) {
    if (range.first < at) return join_layers(b, parts, dims, d);
    at = range.second;
  }
  Values pieces;
  at = 0;
  const auto zeros_until = [&](int64_t end) {
    Type gap{parts[0].value.dtype(), dims};
    gap.dims[d] = end - at;
    if (end > at) pieces.push_back(b.splat(0, gap));
  };
  for (auto& [range, group] : groups) {
    zeros_until(range.first);
    Dims inner = dims;
    inner[d] = range.second - range.first;
    for (Part& part : group) part.low[d] = 0;
    const std::optional<Value> piece = joined(b, group, inner, d + 1);
    if (!piece) return {};
    pieces.push_back(*piece);
    at = range.second;
  }
  zeros_until(dims[d]);
  return b.concatenate(pieces, static_cast<int64_t>(d));
}

// The sums that parts add up to one after the other.
class Chains {
 public:
  explicit Chains(const Rewriter& r) : r_(r) {
    for (const auto& op : r.operations())
      if (op->is("stablehlo.add")) add(*op);
  }

  // Returns whether there is a chain that is long enough.
  bool any() const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const auto& sum) { return ends(sum.second); });
  }
  // Returns the terms of the chain that ends with this operation, in their order; empty if none ends there.
  Values terms(const Operation& op) const {
    const auto found = sums_.find(op.results[0].id());
    if (found == sums_.end() || !ends(found->second)) return {};
    Values terms;
    const Operation* at = &op;
    for (const Sum* sum = &found->second; sum->chained >= 0; sum = &sums_.at(at->results[0].id())) {
      terms.push_back(at->operands[static_cast<size_t>(1 - sum->chained)]);
      at = r_.maker(at->operands[static_cast<size_t>(sum->chained)]);
    }
    terms.insert(terms.end(), {at->operands[1], at->operands[0]});
    std::reverse(terms.begin(), terms.end());
    return terms;
  }

 private:
  struct Sum {
    int chained = -1;        // the operand that is the sum before this one; -1: none
    size_t parts = 0;        // among the terms up to here
    bool continued = false;  // by another sum
  };

  static bool ends(const Sum& sum) { return sum.parts >= kMinParts && !sum.continued; }

  void add(const Operation& op) {
    Sum sum;
    for (int i = 0; i < 2; ++i) {
      const Value v = op.operands[static_cast<size_t>(i)];
      const auto before = sums_.find(v.id());
      if (before == sums_.end() || r_.readers(v) != 1 || before->second.parts == 0) continue;
      if (sum.chained >= 0 && before->second.parts <= sum.parts) continue;
      sum.chained = i;
      sum.parts = before->second.parts;
    }
    if (sum.chained >= 0) sums_.at(op.operands[static_cast<size_t>(sum.chained)].id()).continued = true;
    for (int i = 0; i < 2; ++i)
      if (i != sum.chained && find_part(r_, op.operands[static_cast<size_t>(i)])) ++sum.parts;
    sums_.emplace(op.results[0].id(), sum);
  }

  const Rewriter& r_;
  std::unordered_map<int32_t, Sum> sums_;  // by the sum's number
};

// Returns the sum of these terms, with the parts among them joined; nothing if none can be joined.
Values sum_with_joined(Rewriter& r, const Values& terms) {
  Builder& b = r.b;
  const Dims& dims = terms[0].dims();
  Values rest;
  bool any = false;
  std::vector<Found> run;
  const auto end_run = [&](size_t end) {
    std::optional<Value> whole;
    if (run.size() >= kMinParts) {
      Parts parts;
      for (Found& found : run) parts.push_back({found.low, b.reshape(found.source, found.box)});
      whole = joined(b, parts, dims, 0);
    }
    any = any || whole;
    if (whole)
      rest.push_back(*whole);
    else
      rest.insert(rest.end(), terms.begin() + static_cast<int64_t>(end - run.size()),
                  terms.begin() + static_cast<int64_t>(end));
    run.clear();
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    if (auto part = find_part(r, terms[i])) {
      run.push_back(std::move(*part));
      continue;
    }
    end_run(i);
    rest.push_back(terms[i]);
  }
  end_run(terms.size());
  if (!any) return {};
  Value sum = rest[0];
  for (size_t i = 1; i < rest.size(); ++i) sum = b.add(sum, rest[i]);
  return {sum};
}

}  // namespace sum_of_parts_detail

void sum_of_parts(Rewriter& r) {
  namespace detail = sum_of_parts_detail;
  const detail::Chains chains(r);
  if (!chains.any()) return;  // the program stays exactly as it is
  r.each([&](const stablehlo::Operation& op) -> stablehlo::Values {
    if (!op.is("stablehlo.add")) return {};
    const stablehlo::Values terms = chains.terms(op);
    return terms.empty() ? terms : detail::sum_with_joined(r, terms);
  });
}

}  // namespace sluice::patterns
