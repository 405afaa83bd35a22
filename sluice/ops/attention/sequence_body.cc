#include "sluice/ops/attention/sequence_body.h"

#include <algorithm>
#include <limits>

namespace sluice::ops::attention::sequence_detail {
namespace {

Pairs reversed(Pairs pairs) {
  for (auto& [from, to] : pairs) std::swap(from, to);
  return pairs;
}

Value number(Builder& b, int64_t n) { return b.splat(n, Type{DType::kS32, {}}); }

// Blocks of the queries: with mirrored parts two pieces, else one.
struct Queries {
  Values q, seeds, grad, output, logsumexp;
};
struct Keys {
  Values k, v;
};

// The body of the region, on one device.
class Body {
 public:
  Body(stablehlo::Rewriter& r, const Call& call, std::span<const Value> arguments)
      : r_(r), b_(r.b), call_(call) {
    const Value* next = arguments.data();
    place_ = b_.reshape(*next++, {});
    const bool gradient = call.composite.given.has_value(), dropout = bool(call.in().seeds);
    queries_.q = pieces(*next++, 2);
    k_ = *next++;
    v_ = *next++;
    if (gradient) {
      queries_.grad = pieces(*next++, 2);
      queries_.output = pieces(*next++, 2);
      queries_.logsumexp = pieces(*next++, 2);
    }
    if (dropout) {
      queries_.seeds = pieces(*next++, 3);
      p_ = *next++;
    }
    masks_.assign(next, arguments.data() + arguments.size());
    if (call.gathered)
      keys_per_device_ = k_.dim(2) / call.devices.count();
    else {
      keys_per_device_ = k_.dim(2);
      keys_ = {pieces(k_, 2), pieces(v_, 2)};
    }
  }

  Values forward() {
    Values sums;
    for (const Value q : queries_.q) {
      const Dims rows(q.dims().begin(), q.dims().begin() + 3);
      sums.insert(sums.end(),
                  {b_.splat(lowest(), Type{call_.compute(), rows}), zeros(b_, Type{call_.compute(), rows}),
                   zeros(b_, {call_.compute(), q.dims()})});
    }
    sums = rounds(sums, [this](Value round, const Keys& keys, const Values& before) {
      return add_round(round, keys, before);
    });
    Values outputs, logarithms;
    for (size_t i = 0; i < queries_.q.size(); ++i) finish(sums, i, outputs, logarithms);
    return {joined(outputs, 2), joined(logarithms, 2)};
  }

  Values gradient() {
    Values sums;
    for (const Value q : queries_.q) sums.push_back(zeros(b_, {call_.compute(), q.dims()}));
    Values of_keys;
    if (call_.gathered)
      of_keys = Values(2, zeros(b_, {call_.compute(), k_.dims()}));
    else
      for (const Values* list : {&keys_.k, &keys_.v})
        for (const Value x : *list) of_keys.push_back(zeros(b_, {call_.compute(), x.dims()}));
    sums.insert(sums.end(), of_keys.begin(), of_keys.end());
    sums = rounds(sums, [this](Value round, const Keys& keys, const Values& before) {
      return add_gradients(round, keys, before);
    });
    const size_t n = call_.pieces();
    const DType type = call_.in().q.dtype();
    const Value of_q = to(b_, joined({sums.begin(), sums.begin() + n}, 2), type);
    if (call_.gathered)
      return {of_q, to(b_, r_.add_and_split_blocks(sums[n], 2, call_.devices.groups()), type),
              to(b_, r_.add_and_split_blocks(sums[n + 1], 2, call_.devices.groups()), type)};
    for (size_t i = n; i < sums.size(); ++i) sums[i] = passed_on(sums[i]);
    return {of_q, to(b_, joined({sums.begin() + n, sums.begin() + 2 * n}, 2), type),
            to(b_, joined({sums.begin() + 2 * n, sums.end()}, 2), type)};
  }

 private:
  // ---- parts that lie mirrored ----

  // The first half of the block at place k is part 2k of all, and the second is part 2k + 1.
  Pairs home_of(int64_t half) const {
    return call_.devices.pairs([this, half](int64_t place) { return call_.devices.home(2 * place + half); });
  }
  Value is_even() { return b_.compare(b_.and_(place_, number(b_, 1)), number(b_, 0), Compare::kEq); }

  // Returns this device's pieces of a tensor, from the block at its place.
  Values pieces(Value x, int64_t dim) {
    if (!call_.mirrored) return {x};
    const int64_t half = x.dim(dim) / 2;
    const Value first = r_.permute_blocks(b_.slice_dim(x, dim, 0, half), home_of(0));
    const Value second = r_.permute_blocks(b_.slice_dim(x, dim, half, 2 * half), home_of(1));
    const Value even = is_even();
    return {b_.select(even, first, second), b_.select(even, second, first)};
  }
  // The inverse.
  Value joined(const Values& x, int64_t dim) {
    if (x.size() == 1) return x[0];
    const Value even = is_even();
    const Value first = r_.permute_blocks(b_.select(even, x[0], x[1]), reversed(home_of(0)));
    const Value second = r_.permute_blocks(b_.select(even, x[1], x[0]), reversed(home_of(1)));
    const Value parts[] = {first, second};
    return b_.concatenate(parts, dim);
  }
  // Returns where a piece of the block at this place begins, in a sequence whose blocks have this size.
  Value start(Value place, size_t piece, int64_t block) {
    if (!call_.mirrored) return b_.multiply(place, number(b_, block));
    const Value part = piece == 0 ? place : b_.subtract(number(b_, 2 * call_.devices.count() - 1), place);
    return b_.multiply(part, number(b_, block / 2));
  }

  // ---- rounds ----

  using Round = std::function<Values(Value round, const Keys& keys, const Values& before)>;

  Value passed_on(Value x) { return r_.permute_blocks(x, call_.devices.to_next()); }
  Keys passed_on(const Keys& keys) {
    Keys next;
    for (const Value k : keys.k) next.k.push_back(passed_on(k));
    for (const Value v : keys.v) next.v.push_back(passed_on(v));
    return next;
  }

  Values rounds(Values state, const Round& step) {
    const int64_t count = call_.devices.count();
    state = step({}, keys_of(place_), state);
    if (call_.gathered)
      return repeat(b_, count - 1, state, [&](Builder& b, Value k, const Values& before) {
        const Value round = b.add(k, number(b, 1));
        return step(round, keys_of(place_before(round)), before);
      });
    const size_t n = call_.pieces();
    Keys keys = passed_on(keys_);
    if (count > 2) {
      Values all = keys.k;
      all.insert(all.end(), keys.v.begin(), keys.v.end());
      all.insert(all.end(), state.begin(), state.end());
      const auto from = [&](const Values& x) {
        return Keys{{x.begin(), x.begin() + n}, {x.begin() + n, x.begin() + 2 * n}};
      };
      all = repeat(b_, count - 2, all, [&](Builder& b, Value k, const Values& before) {
        const Keys now = from(before), next = passed_on(now);
        const Values made = step(b.add(k, number(b, 1)), now, {before.begin() + 2 * n, before.end()});
        Values after = next.k;
        after.insert(after.end(), next.v.begin(), next.v.end());
        after.insert(after.end(), made.begin(), made.end());
        return after;
      });
      keys = from(all);
      state.assign(all.begin() + 2 * n, all.end());
    }
    return step(number(b_, count - 1), keys, state);
  }

  // Returns the place of the device whose keys this round has.
  Value place_before(Value round) {
    if (!round) return place_;
    const Value count = number(b_, call_.devices.count());
    return b_.remainder(b_.add(b_.subtract(place_, round), count), count);
  }

  // Returns the keys of the block at a place: the device's own, or read from all.
  Keys keys_of(Value place) {
    if (!call_.gathered) return keys_;
    Keys keys;
    for (size_t i = 0; i < call_.pieces(); ++i) {
      const Value first = start(place, i, keys_per_device_);
      keys.k.push_back(part_of_keys(k_, first));
      keys.v.push_back(part_of_keys(v_, first));
    }
    return keys;
  }
  int64_t keys_of_piece() const { return keys_per_device_ / static_cast<int64_t>(call_.pieces()); }
  Values starts_of_keys(Value first) { return {number(b_, 0), number(b_, 0), first, number(b_, 0)}; }
  Value part_of_keys(Value x, Value first) {
    Dims sizes = x.dims();
    sizes[2] = keys_of_piece();
    return b_.dynamic_slice(x, starts_of_keys(first), sizes);
  }

  // ---- one pair of a piece of queries and a piece of keys ----

  struct Pair {
    Operands in;
    Given given;
  };
  // Where the pieces begin, and whether they are one and the same.
  struct Where {
    Value query, key;
    bool same = false;
  };

  Pair pair(const Queries& queries, size_t query, const Keys& keys, size_t key, const Where& where) {
    Pair made;
    Operands& in = made.in;
    in.q = queries.q[query];
    in.k = keys.k[key];
    in.v = keys.v[key];
    in.scale = call_.in().scale;
    in.causal = call_.mirrored && call_.in().causal && where.same;
    in.mask = mask_of(in, where);
    if (p_) {
      in.seeds = queries.seeds[query];
      in.p = p_;
      in.first_key = where.key;
    }
    if (call_.composite.given)
      made.given = {queries.grad[query], queries.output[query], queries.logsumexp[query]};
    return made;
  }

  Value mask_of(const Operands& in, const Where& where) {
    if (call_.mask != nullptr) {
      Values leaves;
      for (const Value leaf : masks_) {
        const Value of_query = block_of_mask(leaf, 2, where.query, in.q.dim(2));
        leaves.push_back(block_of_mask(of_query, 3, where.key, in.k.dim(2)));
      }
      return call_.mask->make(b_, leaves, in.q.dim(2), in.k.dim(2));
    }
    if (!masks_.empty()) return block_of_mask(masks_[0], 3, where.key, in.k.dim(2));
    if (!call_.in().causal || call_.mirrored) return {};
    const Type type{DType::kS32, {1, 1, in.q.dim(2), in.k.dim(2)}};
    const auto places = [&](int64_t dim, Value first) {
      return b_.add(b_.iota(type, dim), b_.broadcast(first, type.dims));
    };
    return b_.compare(places(3, where.key), places(2, where.query), Compare::kLe);
  }
  Value block_of_mask(Value x, int64_t dim, Value first, int64_t size) {
    if (x.dim(dim) == 1) return x;
    Values starts(4, number(b_, 0));
    starts[static_cast<size_t>(dim)] = first;
    Dims sizes = x.dims();
    sizes[static_cast<size_t>(dim)] = size;
    return b_.dynamic_slice(x, starts, sizes);
  }

  Where where(size_t query, size_t key, Value place, bool first) {
    const int64_t of_device = queries_.q[0].dim(2) * static_cast<int64_t>(call_.pieces());
    return {start(place_, query, of_device), start(place, key, keys_per_device_), first && query == key};
  }

  // In mirrored parts, each round but the first has the pair of the second queries and the first keys, and
  // one of two more: of the first pieces, if the keys come from a place before, else of the second ones.
  Pair chosen(const Keys& keys, Value place, Value before) {
    const auto one = [&](const Values& x) {
      return x.empty() ? Values() : Values{b_.select(before, x[0], x[1])};
    };
    const Queries queries{one(queries_.q), one(queries_.seeds), one(queries_.grad), one(queries_.output),
                          one(queries_.logsumexp)};
    const Where a = where(0, 0, place, false), z = where(1, 1, place, false);
    return pair(queries, 0, {one(keys.k), one(keys.v)}, 0,
                {b_.select(before, a.query, z.query), b_.select(before, a.key, z.key)});
  }
  Value comes_before(Value place) { return b_.compare(place, place_, Compare::kLt); }

  // Calls visit(pair, query, key) for each pair of a round whose pieces are known, and visit_chosen(pair,
  // before) for the pair that is chosen.
  template <typename Visit, typename VisitChosen>
  void each_pair(Value round, const Keys& keys, const Visit& visit, const VisitChosen& visit_chosen) {
    const Value place = place_before(round);
    const auto known = [&](size_t query, size_t key) {
      visit(pair(queries_, query, keys, key, where(query, key, place, !round)), query, key);
    };
    if (!call_.mirrored) return known(0, 0);
    known(1, 0);
    if (!round) {
      known(0, 0);
      known(1, 1);
      return;
    }
    const Value before = comes_before(place);
    visit_chosen(chosen(keys, place, before), before);
  }

  // ---- forward ----

  double lowest() const {
    return call_.compute() == DType::kF64 ? std::numeric_limits<double>::lowest()
                                          : double{std::numeric_limits<float>::lowest()};
  }
  Value spread(Value rows, const Dims& dims) { return b_.broadcast_in_dim(rows, dims, {0, 1, 2}); }

  // Adds a part's result to a largest score, a sum and a sum of values.
  Values added(const Values& before, const Pair& part) {
    const Values made = output_in_groups(b_, part.in, call_.groups, call_.compute());
    Value logarithm = made[1];
    if (part.in.mask) {
      const Value infinite = number_like(b_, std::numeric_limits<double>::infinity(), logarithm);
      logarithm = b_.select(b_.compare(logarithm, infinite, Compare::kEq), b_.negate(infinite), logarithm);
    }
    const Value largest = b_.maximum(before[0], logarithm);
    const Value old = b_.exp(b_.subtract(before[0], largest)), more = b_.exp(b_.subtract(logarithm, largest));
    return {largest, b_.add(b_.multiply(before[1], old), more),
            b_.add(b_.multiply(before[2], spread(old, made[0].dims())),
                   b_.multiply(made[0], spread(more, made[0].dims())))};
  }
  static Values sums_of(const Values& all, size_t piece) {
    return {all.begin() + 3 * static_cast<std::ptrdiff_t>(piece),
            all.begin() + 3 * static_cast<std::ptrdiff_t>(piece) + 3};
  }
  static void set_sums(Values& all, size_t piece, const Values& sums) {
    std::copy(sums.begin(), sums.end(), all.begin() + 3 * static_cast<std::ptrdiff_t>(piece));
  }

  Values add_round(Value round, const Keys& keys, Values sums) {
    each_pair(
        round, keys,
        [&](const Pair& part, size_t query, size_t) {
          set_sums(sums, query, added(sums_of(sums, query), part));
        },
        [&](const Pair& part, Value before) {
          Values some;
          for (size_t i = 0; i < 3; ++i) some.push_back(b_.select(before, sums[i], sums[3 + i]));
          const Values made = added(some, part);
          for (size_t i = 0; i < 3; ++i) {
            sums[i] = b_.select(before, made[i], sums[i]);
            sums[3 + i] = b_.select(before, sums[3 + i], made[i]);
          }
        });
    return sums;
  }

  void finish(const Values& sums, size_t piece, Values& outputs, Values& logarithms) {
    const Values all = sums_of(sums, piece);
    const Value none = is_equal(b_, all[1], 0);
    const Value divisor = b_.select(none, number_like(b_, 1, all[1]), all[1]);
    outputs.push_back(to(b_, b_.divide(all[2], spread(divisor, all[2].dims())), call_.in().q.dtype()));
    logarithms.push_back(b_.select(none, number_like(b_, std::numeric_limits<double>::infinity(), divisor),
                                   b_.add(all[0], b_.log(divisor))));
  }

  // ---- backward ----

  // Adds a gradient of keys or values (0, 1) to the sums. In a ring, `sums` are pieces.
  void add_to_keys(Values& sums, size_t which, size_t key, Value first, Value more) {
    const size_t n = call_.pieces();
    if (!call_.gathered) {
      Value& sum = sums[n + which * n + key];
      sum = b_.add(sum, more);
      return;
    }
    Value& sum = sums[n + which];
    sum = b_.dynamic_update_slice(sum, b_.add(part_of_keys(sum, first), more), starts_of_keys(first));
  }

  Values add_gradients(Value round, const Keys& keys, Values sums) {
    const size_t n = call_.pieces();
    // The sums of these keys come from the device before, while this one computes.
    if (!call_.gathered && round)
      for (size_t i = n; i < sums.size(); ++i) sums[i] = passed_on(sums[i]);
    const Value place = place_before(round);
    each_pair(
        round, keys,
        [&](const Pair& part, size_t query, size_t key) {
          const Values made = gradients_in_groups(b_, part.in, part.given, call_.groups, call_.compute());
          sums[query] = b_.add(sums[query], made[0]);
          const Value first = start(place, key, keys_per_device_);
          for (const size_t which : {0, 1}) add_to_keys(sums, which, key, first, made[1 + which]);
        },
        [&](const Pair& part, Value before) { add_chosen(sums, part, place, before); });
    return sums;
  }

  void add_chosen(Values& sums, const Pair& part, Value place, Value before) {
    const Values made = gradients_in_groups(b_, part.in, part.given, call_.groups, call_.compute());
    const auto if_before = [&](Value x) { return b_.select(before, x, number_like(b_, 0, x)); };
    const auto if_after = [&](Value x) { return b_.select(before, number_like(b_, 0, x), x); };
    sums[0] = b_.add(sums[0], if_before(made[0]));
    sums[1] = b_.add(sums[1], if_after(made[0]));
    const Value first =
        b_.select(before, start(place, 0, keys_per_device_), start(place, 1, keys_per_device_));
    for (const size_t which : {0, 1}) {
      if (call_.gathered) {
        add_to_keys(sums, which, 0, first, made[1 + which]);
        continue;
      }
      add_to_keys(sums, which, 0, first, if_before(made[1 + which]));
      add_to_keys(sums, which, 1, first, if_after(made[1 + which]));
    }
  }

  stablehlo::Rewriter& r_;
  Builder& b_;
  const Call& call_;
  Value place_;  // of this device along `sequence`
  Queries queries_;
  Value k_, v_, p_;
  Keys keys_;  // in a ring
  Values masks_;
  int64_t keys_per_device_ = 0;
};

}  // namespace

Values body_of(stablehlo::Rewriter& r, const Call& call, std::span<const Value> arguments) {
  Body body(r, call, arguments);
  return call.composite.given ? body.gradient() : body.forward();
}

}  // namespace sluice::ops::attention::sequence_detail
