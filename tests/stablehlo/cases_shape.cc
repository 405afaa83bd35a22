#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

Case shapes() {
  Case c{"shapes", {{f32({2, 3}), ramp(6)}, {f32({3}), {10, 20, 30}}, {f32(), {7}}}, {}, {}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    return Values{b.broadcast(p[1], {2, 3}),
                  b.broadcast(b.reshape(p[1], {3, 1}), {3, 2}),
                  b.broadcast(p[2], {2}),
                  b.broadcast_in_dim(p[1], {3, 2}, {0}),
                  b.broadcast_in_dim(p[0], {3, 1, 2}, {2, 0}),
                  b.reshape(p[0], {3, 2}),
                  b.reshape(p[2], {1, 1}),
                  b.transpose(p[0], {1, 0}),
                  b.reverse(p[0], {1}),
                  b.reverse(p[0], {0, 1})};
  };
  c.expected = {{10, 20, 30, 10, 20, 30},
                {10, 10, 20, 20, 30, 30},
                {7, 7},
                {10, 10, 20, 20, 30, 30},
                {0, 3, 1, 4, 2, 5},
                ramp(6),
                {7},
                {0, 3, 1, 4, 2, 5},
                {2, 1, 0, 5, 4, 3},
                {5, 4, 3, 2, 1, 0}};
  return c;
}

Case pieces() {
  Case c{"pieces", {{f32({2, 4}), ramp(8)}, {f32({2, 1}), {-1, -2}}, {f32(), {9}}}, {}, {}, 0, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    const Value parts[] = {p[1], p[0], p[1]};
    return Values{b.slice(p[0], {0, 1}, {2, 4}, {1, 2}),
                  b.slice_dim(p[0], 0, 1, 2),
                  b.slice_dim(p[0], 1, 2, 2),
                  b.pad(p[0], p[2], {1, 0}, {0, -1}, {0, 1}),
                  b.pad(p[0], p[2], {-1, -2}, {0, 1}),
                  b.concatenate(parts, 1)};
  };
  c.expected = {{1, 3, 5, 7}, {4, 5, 6, 7},
                {},           {9, 9, 9, 9, 9, 9, 0, 9, 1, 9, 2, 9, 4, 9, 5, 9, 6, 9},
                {6, 7, 9},    {-1, 0, 1, 2, 3, -1, -2, 4, 5, 6, 7, -2}};
  return c;
}

}  // namespace

std::vector<Case> shape_cases() { return {shapes(), pieces()}; }

}  // namespace sluice::stablehlo::testing
