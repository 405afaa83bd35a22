#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

Case loops() {
  Case c{"loops", {{s32(), {5}}, {f32({2}), {1, 2}}}, {}, {{5}, {32, 64}}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    // Both bodies use a value from outside: the limit and the factor.
    const Value factor = b.splat(2, p[1].type());
    const Value init[] = {b.splat(0, s32()), p[1]};
    return b.while_(
        init,
        [&](Builder& b, std::span<const Value> in) { return Values{b.compare(in[0], p[0], Compare::kLt)}; },
        [&](Builder& b, std::span<const Value> in) {
          return Values{b.add(in[0], b.splat(1, s32())), b.multiply(in[1], factor)};
        });
  };
  return c;
}

Case branches() {
  Case c{"branches", {{pred(), {0}}, {s32(), {7}}, {f32(), {3}}}, {}, {{3, 3}, {30}, {300}}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    Values out = b.if_(
        p[0],
        [&](Builder& b, std::span<const Value>) {
          return Values{b.splat(0, f32({2})), p[2]};
        },
        [&](Builder& b, std::span<const Value>) {
          return Values{b.broadcast(p[2], {2}), b.multiply(p[2], b.splat(10, f32()))};
        });
    const Region scaled[] = {
        [&](Builder&, std::span<const Value>) { return Values{p[2]}; },
        [&](Builder& b, std::span<const Value>) { return Values{b.multiply(p[2], b.splat(100, f32()))}; }};
    out.push_back(b.case_(p[1], scaled)[0]);
    return out;
  };
  return c;
}

Case names() {
  Case c{"locations", {{f32({2}), {1, 2}}, {f32({2}), {3, 4}}}, {}, {{4, 6}, {1, 2}, {10}}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    b.set_location("layer1.0.conv1/aten::add");
    const Value total = b.add(p[0], p[1]);
    b.set_location("a \"quoted\" back\\slash, a new\nline and \xC3\xA9");
    const Value all = b.reduce_sum(total, {0});
    b.set_location("");
    return Values{total, b.optimization_barrier(p[0]), all};
  };
  c.donations = {{Donation::Kind::kAliasOutput, 0}, {Donation::Kind::kDonor, 0}};
  return c;
}

// The first block of Threefry-2x32 with 20 rounds for key 0 and counter 0, as Random123 publishes it.
Case random_bits() {
  Case c{"random_bits", {{{DType::kU64, {2}}, {0, 0}}}, {}, {{0, 1}, {0x6B200159, 0x99BA4EFE}}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const auto [state, bits] = b.rng_bits(p[0], u32({2}));
    return Values{state, bits};
  };
  return c;
}

Case nothing() {
  Case c{"nothing", {{f32(), {1}}}, [](Builder&, const Values&) { return Values{}; }, {}, 0, 1, {}};
  return c;
}

// x of replica r is (10 r, 10 r + 1, …).
Value numbered(Builder& b, Value x) {
  const Value id = b.convert(b.replica_id(), DType::kF32);
  return b.add(x, b.broadcast(b.multiply(id, b.splat(10, f32())), x.dims()));
}

// The calls that the pjrt room answers.
Case host_collectives() {
  Case c{"host_collectives", {{f32({2}), {0, 1}}, {s32(), {7}}}, {}, {}, 0, 4, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value x = numbered(b, p[0]);
    const Value both[] = {x, p[1]};
    Values out =
        b.custom_call("sluice_all_reduce", both, {x.type(), p[1].type()},
                      {{"op", "sum"}, {"program", int64_t{171}}, {"site", int64_t{0}}}, {.in_place = 2});
    out.push_back(b.custom_call("sluice_all_reduce", {&out[0], 1}, {x.type()},
                                {{"op", "max"},
                                 {"program", int64_t{171}},
                                 {"site", int64_t{1}},
                                 {"groups", Dims{0, 1, 2, 3}},
                                 {"group_size", int64_t{2}}})[0]);
    out.push_back(b.custom_call("sluice_all_gather", {&p[1], 1}, {s32({4})},
                                {{"program", int64_t{171}}, {"site", int64_t{2}}})[0]);
    return out;
  };
  for (int r = 0; r < 4; ++r) {
    c.expected.insert(c.expected.end(), {{60, 64}, {28}, {60, 64}, {7, 7, 7, 7}});
  }
  return c;
}

}  // namespace

std::vector<Case> control_cases() { return {loops(), branches(), names(), random_bits(), nothing()}; }

std::vector<Case> collective_cases() {
  Case c{"collectives", {{f32({2, 2}), ramp(4)}}, {}, {}, 0, 4, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value x = numbered(b, p[0]);
    const ReplicaGroups pairs = {{0, 1}, {2, 3}}, all = {{0, 1, 2, 3}}, uneven = {{0, 1, 2}, {3}};
    return Values{
        b.replica_id(),
        b.all_reduce_sum(x, pairs),
        b.all_reduce_sum(x),
        b.all_reduce(x, uneven,
                     [](Builder& b, std::span<const Value> in) { return Values{b.maximum(in[0], in[1])}; }),
        b.all_gather(b.slice_dim(x, 0, 0, 1), 0, all),
        b.all_gather(b.slice_dim(x, 1, 1, 2), 1, pairs),
        b.reduce_scatter(x, 0, pairs, sum),
        b.all_to_all(x, 0, 1, pairs),
        b.collective_permute(x, {{0, 1}, {1, 2}, {2, 0}})};
  };
  const auto x = [](int64_t r) { return ramp(4, static_cast<double>(10 * r)); };
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t low = r / 2 * 2, high = low + 1;
    const bool first = r == low;
    const double base = static_cast<double>(10 * (low + high));
    c.expected.push_back({static_cast<double>(r)});
    c.expected.push_back(ramp(4, base, 2));
    c.expected.push_back(ramp(4, 60, 4));
    c.expected.push_back(r < 3 ? x(2) : x(3));
    c.expected.push_back({0, 1, 10, 11, 20, 21, 30, 31});
    c.expected.push_back({x(low)[1], x(high)[1], x(low)[3], x(high)[3]});
    c.expected.push_back(ramp(2, base + (first ? 0 : 4), 2));
    const size_t row = first ? 0 : 2;
    c.expected.push_back({x(low)[row], x(low)[row + 1], x(high)[row], x(high)[row + 1]});
    c.expected.push_back(r == 3 ? std::vector<double>(4, 0) : x((r + 2) % 3));
  }
  return {c, host_collectives()};
}

}  // namespace sluice::stablehlo::testing
