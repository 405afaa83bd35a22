// Matches sixteen or more writes into one tensor at constant places along one dimension, such as b[i] = f(i)
// for i from 0 to 999, in any order. Slices of the tensor may be read between the writes.
// Makes each slice between two writes from what was written there, or from the tensor before all writes, and
// one write of each run of neighbouring parts, which a concatenation joins; one concatenation of everything
// if there are many runs. XLA's time for a chain of N writes grows with N^1.9 (20 s for 1,000). For every
// target, after the loops, which take equal rounds.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>

#include "sluice/patterns/table.h"
#include "sluice/stablehlo/splat.h"

namespace sluice::patterns {
namespace row_writes_detail {

using stablehlo::Builder;
using stablehlo::Dims;
using stablehlo::Operation;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

constexpr size_t kMinWrites = 16;
constexpr size_t kMaxRuns = 16;  // more are concatenated with what lies between them
// The number of written ranges that a slice may overlap and be looked up.
constexpr int kMaxOverlaps = 4;

// The places from low to high (not included) along dimension `dim` of a tensor.
struct Range {
  size_t dim = 0;
  int64_t low = 0, high = 0;
};

// Returns the range that a box of these sizes covers; nothing if it covers only a part of two dimensions.
std::optional<Range> range_of(const Dims& dims, const Dims& box, const Dims& starts) {
  std::optional<Range> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (box[d] == dims[d]) continue;
    if (found || starts[d] < 0 || starts[d] + box[d] > dims[d]) return {};
    found = {d, starts[d], starts[d] + box[d]};
  }
  return found;
}

// Returns what a write at constant places covers; nothing for another operation.
std::optional<Range> written_range(const Rewriter& r, const Operation& op) {
  if (!op.is("stablehlo.dynamic_update_slice")) return {};
  Dims starts;
  for (size_t i = 2; i < op.operands.size(); ++i) {
    const Operation* const maker = r.maker(op.operands[i]);
    const auto start = maker == nullptr ? std::nullopt : integer_of(*maker);
    if (!start) return {};
    starts.push_back(*start);
  }
  if (op.operands[1].type().numel() == 0) return {};
  return range_of(op.operands[0].dims(), op.operands[1].dims(), starts);
}

std::optional<Range> read_range(const Operation& op) {
  if (!op.is("stablehlo.slice")) return {};
  const Dims strides = op.attributes.list("strides");
  if (std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; })) return {};
  return range_of(op.operands[0].dims(), op.results[0].dims(), op.attributes.list("start_indices"));
}

// The writes into one tensor, one after the other. Version k is the tensor after the first k of them.
struct History {
  struct Write {
    size_t version;
    int64_t high;
    Value value;
  };
  Value base;  // the tensor before all writes
  size_t dim = 0, versions = 0;
  // By where they begin. The writes from one place on have one length; different ranges do not overlap.
  std::map<int64_t, std::vector<Write>> writes;
  bool overlap = false;

  void add(const Range& range, Value value) {
    const auto next = writes.upper_bound(range.low);
    const bool meets_next = next != writes.end() && next->first < range.high;
    const bool begins_in_last = next != writes.begin() && std::prev(next)->second[0].high > range.low;
    const bool equal = next != writes.begin() && std::prev(next)->first == range.low &&
                       std::prev(next)->second[0].high == range.high;
    overlap = overlap || meets_next || (begins_in_last && !equal);
    writes[range.low].push_back({++versions, range.high, value});
  }

  // Returns the latest write in a range's list up to a version; null without one.
  static const Write* latest(const std::vector<Write>& list, size_t version) {
    const auto after = std::upper_bound(list.begin(), list.end(), version,
                                        [](size_t number, const Write& w) { return number < w.version; });
    return after == list.begin() ? nullptr : &*std::prev(after);
  }

  // Finds what a range of the version holds: a part of a write, which is returned with its beginning, or of
  // the base (no value). Nothing if it is both, or if it is not known.
  std::optional<std::pair<Value, int64_t>> find(const Range& range, size_t version) const {
    if (overlap || range.dim != dim) return {};
    auto at = writes.upper_bound(range.low);
    if (at != writes.begin() && std::prev(at)->second[0].high > range.low) --at;
    for (int met = 0; at != writes.end() && at->first < range.high; ++at) {
      const Write* const write = latest(at->second, version);
      if (write != nullptr && at->first <= range.low && range.high <= write->high)
        return std::pair(write->value, at->first);
      if (write != nullptr || ++met > kMaxOverlaps) return {};
    }
    return std::pair(Value(), int64_t{0});
  }
};

class Histories {
 public:
  explicit Histories(const Rewriter& r) : r_(r) {
    for (const auto& op : r.operations())
      if (const auto range = written_range(r, *op)) add(*op, *range);
  }

  bool any() const {
    return std::any_of(all_.begin(), all_.end(), [](const History& h) { return h.versions >= kMinWrites; });
  }

  // Returns a slice of a tensor between two writes, made from what was written.
  Values read(Rewriter& r, const Operation& op) const {
    const auto range = read_range(op);
    if (!range) return {};
    const auto found = versions_.find(r.before_reshapes(op.operands[0]).id());
    if (found == versions_.end()) return {};
    const auto [number, version] = found->second;
    const History& history = all_[number];
    if (history.versions < kMinWrites || history.base.dims() != op.operands[0].dims()) return {};
    const auto held = history.find(*range, version);
    if (!held) return {};
    const Value from = held->first ? r.now(held->first) : r.now(history.base);
    return {r.b.slice_dim(from, static_cast<int64_t>(range->dim), range->low - held->second,
                          range->high - held->second)};
  }

 private:
  void add(const Operation& op, const Range& range) {
    const auto before = versions_.find(r_.before_reshapes(op.operands[0]).id());
    size_t number = all_.size();
    if (before != versions_.end()) {
      const auto [known, version] = before->second;
      const History& history = all_[known];
      if (history.versions == version && history.dim == range.dim &&
          history.base.dims() == op.operands[0].dims())
        number = known;
    }
    if (number == all_.size()) all_.push_back({.base = op.operands[0], .dim = range.dim, .writes = {}});
    all_[number].add(range, op.operands[1]);
    versions_[op.results[0].id()] = {number, all_[number].versions};
  }

  const Rewriter& r_;
  std::vector<History> all_;
  std::unordered_map<int32_t, std::pair<size_t, size_t>> versions_;  // by a write's result: which history,
                                                                     // and its version
};

// Returns the write before this one if nothing but this one reads its result, and both are along one
// dimension.
const Operation* write_before(const Rewriter& r, const Operation& op, size_t dim) {
  Value v = op.operands[0];
  const Dims& dims = v.dims();
  while (r.readers(v) == 1) {
    const Operation* const maker = r.maker(v);
    if (maker == nullptr) return nullptr;
    if (maker->is("stablehlo.reshape")) {
      v = maker->operands[0];
      continue;
    }
    const auto range = written_range(r, *maker);
    return range && range->dim == dim && v.dims() == dims ? maker : nullptr;
  }
  return nullptr;
}

// A part of a write that no later write replaces.
struct Piece {
  int64_t low, high;
  Value value;
};

// Finds the parts of writes that remain, in the order of their places. `last_first`: the writes, the last
// one first.
std::vector<Piece> remaining(Rewriter& r, const std::vector<const Operation*>& last_first) {
  std::vector<Piece> pieces;
  std::map<int64_t, int64_t> taken;  // ranges that later writes cover: the beginning and the end of each
  for (const Operation* op : last_first) {
    const Range range = *written_range(r, *op);
    const auto take = [&](int64_t low, int64_t high) {
      if (low >= high) return;
      pieces.push_back({low, high,
                        r.b.slice_dim(op->operands[1], static_cast<int64_t>(range.dim), low - range.low,
                                      high - range.low)});
    };
    auto at = taken.upper_bound(range.low);
    if (at != taken.begin() && std::prev(at)->second >= range.low) --at;
    int64_t begin = range.low, end = range.high, free = range.low;
    while (at != taken.end() && at->first <= range.high) {
      take(free, std::min(at->first, range.high));
      free = std::max(free, at->second);
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = taken.erase(at);
    }
    take(free, range.high);
    taken[begin] = end;
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& one, const Piece& other) { return one.low < other.low; });
  return pieces;
}

// Returns the tensor `base` with the pieces in it. Each run of neighbours becomes one piece.
Value with_pieces(Builder& b, Value base, const std::vector<Piece>& pieces, size_t dim, const Type& start) {
  struct Run {
    int64_t low, high;
    Values values;
  };
  std::vector<Run> runs;
  for (const Piece& piece : pieces) {
    if (runs.empty() || runs.back().high != piece.low) runs.push_back({piece.low, piece.low, {}});
    runs.back().high = piece.high;
    runs.back().values.push_back(piece.value);
  }
  const auto along = static_cast<int64_t>(dim);
  if (runs.size() <= kMaxRuns) {
    Value made = base;
    for (const Run& run : runs) {
      Values starts(base.dims().size(), b.splat(0, start));
      starts[dim] = b.splat(run.low, start);
      made = b.dynamic_update_slice(made, b.concatenate(run.values, along), starts);
    }
    return made;
  }
  Values all;
  int64_t at = 0;
  const auto base_until = [&](int64_t end) {
    if (end > at) all.push_back(b.slice_dim(base, along, at, end));
  };
  for (const Run& run : runs) {
    base_until(run.low);
    all.insert(all.end(), run.values.begin(), run.values.end());
    at = run.high;
  }
  base_until(base.dim(along));
  return b.concatenate(all, along);
}

// The chains of writes between which nothing else reads the tensor.
class Chains {
 public:
  explicit Chains(const Rewriter& r) {
    for (const auto& op : r.operations()) {
      const auto range = written_range(r, *op);
      if (!range) continue;
      Link link{write_before(r, *op, range->dim), 1, false};
      if (link.before != nullptr) {
        Link& before = links_.at(link.before->results[0].id());
        before.continued = true;
        link.writes = before.writes + 1;
      }
      links_.emplace(op->results[0].id(), link);
    }
  }

  // Joins the writes of the chain that ends with this operation.
  Values join(Rewriter& r, const Operation& op) const {
    const auto found = links_.find(op.results[0].id());
    if (found == links_.end() || found->second.continued || found->second.writes < kMinWrites) return {};
    std::vector<const Operation*> writes;
    for (const Operation* at = &op; at != nullptr; at = links_.at(at->results[0].id()).before)
      writes.push_back(at);
    const size_t dim = written_range(r, op)->dim;
    const Value base = writes.back()->operands[0];
    return {with_pieces(r.b, base, remaining(r, writes), dim, op.operands[2].type())};
  }

 private:
  struct Link {
    const Operation* before;
    size_t writes;
    bool continued;
  };
  std::unordered_map<int32_t, Link> links_;  // by the write's result
};

}  // namespace row_writes_detail

void row_writes(Rewriter& r) {
  namespace detail = row_writes_detail;
  {
    const detail::Histories histories(r);
    if (!histories.any()) return;  // the program stays exactly as it is
    r.each([&](const stablehlo::Operation& op) { return histories.read(r, op); });
  }
  const detail::Chains chains(r);
  r.each([&](const stablehlo::Operation& op) { return chains.join(r, op); });
}

}  // namespace sluice::patterns
