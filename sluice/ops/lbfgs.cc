// The direction of LBFGS's next step: the two loops over the history of steps, as loops of the program, so
// that it does not grow with the history (Nocedal and Wright, "Numerical Optimization", 7.4).
#include <span>

#include "sluice/base/text/join.h"
#include "sluice/ops/common.h"

namespace sluice::ops {
namespace {

// Returns x[i], of a matrix or a vector.
Value row_of(Builder& b, Value x, Value i) {
  Values starts(static_cast<size_t>(x.rank()), b.splat(0, i.type()));
  starts[0] = i;
  Dims sizes = x.dims();
  sizes[0] = 1;
  return b.reshape(b.dynamic_slice(x, starts, sizes), Dims(sizes.begin() + 1, sizes.end()));
}

Value dot(Builder& b, Value x, Value y) { return b.reduce_sum(b.multiply(x, y), {0}); }

// Returns x + factor * y.
Value plus(Builder& b, Value x, Value factor, Value y) {
  return b.add(x, b.multiply(b.broadcast(factor, y.dims()), y));
}

// gradient [n]; steps, changes [pairs, n], the newest last: the changes of the parameters and of their
// gradient; inverse [pairs]: 1 / (step · change), 0 for a row without a pair; scale: 0-d, the initial
// Hessian's. Result: [n].
Values direction(Emit& e) {
  const Value gradient = e.tensor("gradient"), steps = e.tensor("steps"), changes = e.tensor("changes");
  const Value inverse = e.tensor("inverse"), scale = e.tensor("scale");
  const bool fit = gradient.rank() == 1 && steps.rank() == 2 && steps.dim(1) == gradient.dim(0) &&
                   changes.dims() == steps.dims() && inverse.dims() == Dims{steps.dim(0)} &&
                   scale.rank() == 0;
  e.check(fit, base::str("expected 'gradient' [n], 'steps' and 'changes' [pairs, n], 'inverse' [pairs] and ",
                         "'scale' of no dimensions, found ", in_words(gradient), ", ", in_words(steps), ", ",
                         in_words(changes), ", ", in_words(inverse), " and ", in_words(scale)));
  const int64_t pairs = steps.dim(0);
  Values first = repeat(e.b, pairs, {e.b.negate(gradient), e.b.splat(0, inverse.type())},
                        [&](Builder& b, Value k, const Values& state) {
                          const Value i = b.subtract(b.splat(pairs - 1, k.type()), k);
                          const Value factor =
                              b.multiply(dot(b, row_of(b, steps, i), state[0]), row_of(b, inverse, i));
                          const Value starts[] = {i};
                          return Values{plus(b, state[0], b.negate(factor), row_of(b, changes, i)),
                                        b.dynamic_update_slice(state[1], b.reshape(factor, {1}), starts)};
                        });
  const Value start = e.b.multiply(first[0], e.b.broadcast(scale, gradient.dims()));
  return repeat(e.b, pairs, {start}, [&](Builder& b, Value i, const Values& state) {
    const Value back = b.multiply(dot(b, row_of(b, changes, i), state[0]), row_of(b, inverse, i));
    return Values{plus(b, state[0], b.subtract(row_of(b, first[1], i), back), row_of(b, steps, i))};
  });
}

constexpr Row kLbfgsRows[] = {{.name = "sluice::lbfgs_direction", .emit = direction}};

}  // namespace

std::span<const Row> lbfgs_rows() { return kLbfgsRows; }

}  // namespace sluice::ops
