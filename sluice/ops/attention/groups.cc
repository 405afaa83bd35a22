#include "sluice/ops/attention/groups.h"

#include <algorithm>

#include "sluice/stablehlo/composites.h"

namespace sluice::ops::attention {
namespace groups_detail {

// How a dimension is divided: into count() parts of this size. The last one may overlap the one before it.
struct Parts {
  int64_t whole = 1, size = 1;
  int64_t count() const { return (whole + size - 1) / size; }
};

// Returns the largest size up to max_size that divides the whole.
int64_t divisor(int64_t whole, int64_t max_size) {
  for (int64_t size = std::min(whole, max_size); size > 1; --size)
    if (whole % size == 0) return size;
  return 1;
}

// A part is no smaller than a quarter of what it may be: else the last part overlaps.
constexpr int64_t kMinShare = 4;

Parts parts_of(int64_t whole, int64_t limit) {
  const int64_t max_size = std::clamp(limit, int64_t{1}, whole), even = divisor(whole, max_size);
  const int64_t count = (whole + max_size - 1) / max_size;
  return {whole, kMinShare * even >= max_size ? even : (whole + count - 1) / count};
}

// Queries from `first` to `end`, and how many keys they see.
struct Block {
  int64_t first = 0, end = 0, keys = 0;
  int64_t size() const { return end - first; }
};

// Blocks have different shapes, so each of them is code of its own. Four need 5/8 of the products of all
// scores. Eight would need 9/16, with more code.
constexpr int64_t kBlocks = 4, kMinBlocked = 2048, kBlockMultiple = 128;

// Returns blocks of queries, each with the keys that a causal mask leaves. Without a causal mask, and for few
// queries or keys, this is one block with all of them.
std::vector<Block> blocks_of(const Operands& in) {
  const int64_t queries = in.q.dim(2), keys = in.k.dim(2);
  if (!in.causal || std::min(queries, keys) < kMinBlocked) return {{0, queries, keys}};
  constexpr int64_t kStep = kBlocks * kBlockMultiple;
  const int64_t size = (queries + kStep - 1) / kStep * kBlockMultiple;
  std::vector<Block> blocks;
  for (int64_t first = 0; first < queries; first += size) {
    const int64_t end = std::min(first + size, queries);
    blocks.push_back({first, end, std::min(end, keys)});
  }
  return blocks;
}

struct Plan {
  Parts batch, heads;  // of what a device has; heads: of keys
  std::vector<Block> blocks;
  int64_t batch_devices = 1, head_devices = 1;
  int64_t bytes = 0;  // of scores at once, on all devices of batch and heads
};

int64_t bytes_of_query(const Operands& in, int64_t keys) {
  return static_cast<int64_t>(stablehlo::dtype_size(compute_type(in.q.dtype()))) * in.sharing() * keys;
}

// Returns the number of devices if they divide the dimension, else 1.
int64_t dividing(int64_t devices, int64_t whole) { return whole % devices == 0 ? devices : 1; }

Plan plan_of(const Operands& in, const Groups& groups) {
  Plan plan;
  plan.batch_devices = dividing(groups.batch_devices, in.k.dim(0));
  plan.head_devices = dividing(groups.head_devices, in.k.dim(1));
  const int64_t batch = in.k.dim(0) / plan.batch_devices, heads = in.k.dim(1) / plan.head_devices;
  plan.batch = {batch, batch};
  plan.heads = {heads, heads};
  plan.blocks = blocks_of(in);
  plan.bytes = groups.bytes * plan.batch_devices * plan.head_devices;
  int64_t of_head = 0;
  // All blocks count: when a round had more heads, a v5e kept some scores outside its fast memory.
  for (const Block& block : plan.blocks) of_head += bytes_of_query(in, block.keys) * block.size();
  if (of_head <= 0 || batch * heads == 0 || batch * heads * of_head <= groups.bytes) return plan;
  plan.batch = parts_of(batch, groups.bytes / (heads * of_head));
  if (heads * of_head > groups.bytes) plan.heads = parts_of(heads, groups.bytes / of_head);
  return plan;
}

// Returns the parts of the queries of one group or block. The gradients of keys are sums over all queries, so
// these parts must not overlap.
Parts parts_of_queries(const Operands& in, int64_t bytes) {
  const int64_t queries = in.q.dim(2);
  const int64_t of_query = in.k.dim(0) * in.k.dim(1) * bytes_of_query(in, in.k.dim(2));
  if (of_query <= 0 || of_query * queries <= bytes) return {queries, queries};
  const int64_t max_size = std::max(bytes / of_query, int64_t{1}), even = divisor(queries, max_size);
  return {queries, kMinShare * even >= max_size ? even : queries};
}

Value number(Builder& b, int64_t n) { return b.splat(n, Type{DType::kS32, {}}); }

// Returns where part `index` begins.
Value start_of(Builder& b, const Parts& parts, Value index) {
  if (parts.count() == 1) return number(b, 0);
  const Value start = b.multiply(index, number(b, parts.size));
  return parts.whole % parts.size == 0 ? start : b.minimum(start, number(b, parts.whole - parts.size));
}

// A part of the dimensions [batch, heads, queries]. A dimension over several devices has the same part of
// what each device has: it begins at `starts` there.
struct Part {
  Values starts;
  Dims sizes;    // on all devices
  Dims devices;  // [dimension]
};

// Returns where the part begins in all dimensions of a tensor, and its sizes. Further dimensions are whole,
// and so is a dimension of size 1, which broadcasts.
Part within(Builder& b, const Part& part, const Dims& dims) {
  Part all{Values(dims.size(), number(b, 0)), dims, Dims(dims.size(), 1)};
  for (size_t i = 0; i < std::min(part.sizes.size(), dims.size()); ++i) {
    if (dims[i] == 1 || dims[i] == part.sizes[i]) continue;
    all.starts[i] = part.starts[i];
    all.sizes[i] = part.sizes[i];
    all.devices[i] = part.devices[i];
  }
  return all;
}

// Returns the dimensions with devices × what a device has in place of a dimension over several devices.
Dims apart(const Dims& dims, const Part& part) {
  Dims all;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (part.devices[i] > 1) all.push_back(part.devices[i]);
    all.push_back(dims[i] / part.devices[i]);
  }
  return all;
}
Values starts_apart(Builder& b, const Part& part) {
  Values all;
  for (size_t i = 0; i < part.starts.size(); ++i) {
    if (part.devices[i] > 1) all.push_back(number(b, 0));
    all.push_back(part.starts[i]);
  }
  return all;
}

// Returns x's part.
Value cut(Builder& b, Value x, const Part& part) {
  const Part all = within(b, part, x.dims());
  if (all.sizes == x.dims()) return x;
  const Value wide = b.reshape(x, apart(x.dims(), all));
  return b.reshape(b.dynamic_slice(wide, starts_apart(b, all), apart(all.sizes, all)), all.sizes);
}

// Returns x with this value as its part.
Value put(Builder& b, Value x, Value value, const Part& part) {
  if (value.dims() == x.dims()) return value;
  const Part all = within(b, part, x.dims());
  const Value wide = b.reshape(x, apart(x.dims(), all)), some = b.reshape(value, apart(value.dims(), all));
  return b.reshape(b.dynamic_update_slice(wide, some, starts_apart(b, all)), x.dims());
}

// Returns the part for tensors of keys: all of them.
Part of_keys(Builder& b, const Operands& in, const Part& part) {
  Part keys = part;
  const Value sharing = number(b, in.sharing());
  keys.starts[1] = in.sharing() == 1 ? part.starts[1] : b.divide(part.starts[1], sharing);
  keys.sizes[1] = part.sizes[1] / in.sharing();
  keys.starts.resize(2);
  keys.sizes.resize(2);
  keys.devices.resize(2);
  return keys;
}

// The seeds have a dimension in front.
Value cut_seeds(Builder& b, Value seeds, const Part& part) {
  Part of_seeds = part;
  of_seeds.starts.insert(of_seeds.starts.begin(), number(b, 0));
  of_seeds.sizes.insert(of_seeds.sizes.begin(), 2);
  of_seeds.devices.insert(of_seeds.devices.begin(), 1);
  return cut(b, seeds, of_seeds);
}

Operands cut(Builder& b, const Operands& in, const Part& part) {
  Operands some = in;
  const Part keys = of_keys(b, in, part);
  some.q = cut(b, in.q, part);
  some.k = cut(b, in.k, keys);
  some.v = cut(b, in.v, keys);
  if (in.mask) some.mask = cut(b, in.mask, part);
  if (in.seeds) some.seeds = cut_seeds(b, in.seeds, part);
  if (some.q.dim(2) == in.q.dim(2)) return some;
  some.first_query = in.first_query ? b.add(in.first_query, part.starts[2]) : part.starts[2];
  return some;
}

Given cut(Builder& b, const Given& given, const Part& part) {
  return {cut(b, given.grad, part), cut(b, given.output, part), cut(b, given.logsumexp, part)};
}

// Calls step(part, state) for each group of heads, with all queries.
using StepOfPart = std::function<Values(Builder&, const Part&, const Values& state)>;
Values each_group(Builder& b, const Operands& in, const Plan& plan, const Values& state,
                  const StepOfPart& step) {
  const int64_t sharing = in.sharing();
  const Parts heads{plan.heads.whole * sharing, plan.heads.size * sharing};
  const Dims sizes = {plan.batch.size * plan.batch_devices, heads.size * plan.head_devices, in.q.dim(2)};
  const Dims devices = {plan.batch_devices, plan.head_devices, 1};
  const int64_t rounds = plan.batch.count() * heads.count();
  if (rounds == 1) return step(b, {Values(3, number(b, 0)), sizes, devices}, state);
  return repeat(b, rounds, state, [&](Builder& b, Value round, const Values& before) {
    const Value per_batch = number(b, heads.count());
    const Value batch = heads.count() == 1 ? round : b.divide(round, per_batch);
    const Value head = plan.batch.count() == 1 ? round : b.remainder(round, per_batch);
    const Part part{{start_of(b, plan.batch, batch), start_of(b, heads, head), number(b, 0)}, sizes, devices};
    return step(b, part, before);
  });
}

// Returns this block of a tensor's queries. A dimension of size 1 broadcasts.
Value block_of(Builder& b, Value x, int64_t dim, int64_t first, int64_t end) {
  return x.dim(dim) == 1 ? x : b.slice_dim(x, dim, first, end);
}

// Returns the block's queries and the keys that they see.
Operands block_of(Builder& b, const Operands& in, const Block& block) {
  Operands some = in;
  some.q = b.slice_dim(in.q, 2, block.first, block.end);
  some.k = b.slice_dim(in.k, 2, 0, block.keys);
  some.v = b.slice_dim(in.v, 2, 0, block.keys);
  if (in.mask) some.mask = block_of(b, block_of(b, in.mask, 2, block.first, block.end), 3, 0, block.keys);
  if (in.seeds) some.seeds = b.slice_dim(in.seeds, 3, block.first, block.end);
  some.first_query = number(b, block.first);
  return some;
}

Given block_of(Builder& b, const Given& given, const Block& block) {
  const auto some = [&](Value x) { return b.slice_dim(x, 2, block.first, block.end); };
  return {some(given.grad), some(given.output), some(given.logsumexp)};
}

// Calls step(part, state) for each part of the queries of a group or a block.
Values each_part_of_queries(Builder& b, const Operands& in, const Parts& queries, const Values& state,
                            const StepOfPart& step) {
  const Dims sizes = {in.q.dim(0), in.q.dim(1), queries.size};
  return repeat(b, queries.count(), state, [&](Builder& b, Value round, const Values& before) {
    const Value zero = number(b, 0);
    return step(b, {{zero, zero, start_of(b, queries, round)}, sizes, Dims(3, 1)}, before);
  });
}

Value none(Builder& b, Value like, DType type) { return zeros(b, Type{type, like.dims()}); }

// Results are in `type`, also in the functions below.
Values output_of_block(Builder& b, const Operands& in, int64_t bytes, DType type) {
  const Parts queries = parts_of_queries(in, bytes);
  if (queries.count() == 1) return output_of(b, in, type);
  const Dims rows(in.q.dims().begin(), in.q.dims().begin() + 3);
  const Type sums{compute_type(in.q.dtype()), rows};
  return each_part_of_queries(
      b, in, queries, {none(b, in.q, type), zeros(b, sums)},
      [&](Builder& b, const Part& part, const Values& before) {
        const Values made = output_of(b, cut(b, in, part), type);
        return Values{put(b, before[0], made[0], part), put(b, before[1], made[1], part)};
      });
}

// Returns the gradients of the block's queries, in `type`, and of its keys and values, in `of_keys`.
Values gradients_of_block(Builder& b, const Operands& in, const Given& given, int64_t bytes, DType type,
                          DType of_keys) {
  const DType compute = compute_type(in.q.dtype());
  const Parts queries = parts_of_queries(in, bytes);
  if (queries.count() == 1) {
    const Values made = gradients_of(b, in, given, of_keys);
    return {to(b, made[0], type), made[1], made[2]};
  }
  const Value no_sum = none(b, in.k, compute);
  const Values sums = each_part_of_queries(
      b, in, queries, {none(b, in.q, type), no_sum, no_sum},
      [&](Builder& b, const Part& part, const Values& before) {
        const Values made = gradients_of(b, cut(b, in, part), cut(b, given, part), compute);
        return Values{put(b, before[0], to(b, made[0], type), part), b.add(before[1], made[1]),
                      b.add(before[2], made[2])};
      });
  return {sums[0], to(b, sums[1], of_keys), to(b, sums[2], of_keys)};
}

Values output_of_group(Builder& b, const Operands& in, const Plan& plan, DType type) {
  if (plan.blocks.size() == 1) return output_of_block(b, in, plan.bytes, type);
  Values outputs, sums;
  for (const Block& block : plan.blocks) {
    const Values made = output_of_block(b, block_of(b, in, block), plan.bytes, type);
    outputs.push_back(made[0]);
    sums.push_back(made[1]);
  }
  return {b.concatenate(outputs, 2), b.concatenate(sums, 2)};
}

// Returns a block's gradient of keys with zeros for the keys that the block does not see.
Value for_all_keys(Builder& b, Value some, int64_t keys) {
  return b.pad(some, zeros(b, Type{some.dtype(), {}}), {0, 0, 0, 0}, {0, 0, keys - some.dim(2), 0});
}

Values gradients_of_group(Builder& b, const Operands& in, const Given& given, const Plan& plan, DType type) {
  const DType compute = compute_type(in.q.dtype());
  if (plan.blocks.size() == 1) return gradients_of_block(b, in, given, plan.bytes, type, type);
  Values of_queries, sums;
  for (const Block& block : plan.blocks) {
    const Values made =
        gradients_of_block(b, block_of(b, in, block), block_of(b, given, block), plan.bytes, type, compute);
    of_queries.push_back(made[0]);
    const Values of_keys = {for_all_keys(b, made[1], in.k.dim(2)), for_all_keys(b, made[2], in.k.dim(2))};
    sums = sums.empty() ? of_keys : Values{b.add(sums[0], of_keys[0]), b.add(sums[1], of_keys[1])};
  }
  return {b.concatenate(of_queries, 2), to(b, sums[0], type), to(b, sums[1], type)};
}

Values forward(Builder& b, const Operands& in, const Plan& plan, DType type) {
  const Dims rows(in.q.dims().begin(), in.q.dims().begin() + 3);
  return each_group(b, in, plan, {none(b, in.q, type), zeros(b, Type{compute_type(in.q.dtype()), rows})},
                    [&](Builder& b, const Part& part, const Values& before) {
                      const Values made = output_of_group(b, cut(b, in, part), plan, type);
                      return Values{put(b, before[0], made[0], part), put(b, before[1], made[1], part)};
                    });
}

Values gradient(Builder& b, const Operands& in, const Given& given, const Plan& plan, DType type) {
  return each_group(b, in, plan, {none(b, in.q, type), none(b, in.k, type), none(b, in.v, type)},
                    [&](Builder& b, const Part& part, const Values& before) {
                      const Values made =
                          gradients_of_group(b, cut(b, in, part), cut(b, given, part), plan, type);
                      const Part keys = of_keys(b, in, part);
                      return Values{put(b, before[0], made[0], part), put(b, before[1], made[1], keys),
                                    put(b, before[2], made[2], keys)};
                    });
}

bool divides(const Operands& in, const Plan& plan) {
  return plan.batch.count() * plan.heads.count() > 1 || plan.blocks.size() > 1 ||
         parts_of_queries(in, plan.bytes).count() > 1;
}

}  // namespace groups_detail

Values output_in_groups(Builder& b, const Operands& in, const Groups& groups, DType type) {
  using namespace groups_detail;
  if (groups.bytes <= 0) return output_of(b, in, type);
  const Plan plan = plan_of(in, groups);
  return divides(in, plan) ? forward(b, in, plan, type) : output_of(b, in, type);
}

Values gradients_in_groups(Builder& b, const Operands& in, const Given& given, const Groups& groups,
                           DType type) {
  using namespace groups_detail;
  if (groups.bytes <= 0) return gradients_of(b, in, given, type);
  const Plan plan = plan_of(in, groups);
  return divides(in, plan) ? gradient(b, in, given, plan, type) : gradients_of(b, in, given, type);
}

Values in_groups(Builder& b, const stablehlo::Operation& composite, const Groups& groups) {
  const Composite read = read_composite(composite);
  const Operands& in = read.in;
  if (!groups_detail::divides(in, groups_detail::plan_of(in, groups))) return {};
  return read.given ? gradients_in_groups(b, in, *read.given, groups, in.q.dtype())
                    : output_in_groups(b, in, groups, in.q.dtype());
}

}  // namespace sluice::ops::attention
