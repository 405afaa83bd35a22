// Helpers that the files of the random family share.
#pragma once

#include <cmath>
#include <numbers>

#include "sluice/ops/common.h"

namespace sluice::ops {

// Draws the random numbers of one call, one batch after another.
class Source {
 public:
  explicit Source(Emit& e) : Source(e.b, e.random_state()) {}
  // Continues from a state, as inside a loop.
  Source(Builder& b, Value state) : b_(&b), state_(state) {}
  Value state() const { return state_; }

  Value bits(DType dtype, const Dims& dims) {
    const auto [state, bits] = b_->rng_bits(state_, Type{dtype, dims});
    state_ = state;
    return bits;
  }

  // Draws uniform numbers in [0, 1) with all bits that `dtype` holds exactly; computed and returned in its
  // compute type.
  Value uniform(DType dtype, const Dims& dims) {
    const DType compute = compute_type(dtype);
    const int digits = digits_of(dtype);
    return b_->multiply(to(*b_, whole(compute, digits, dims), compute),
                        b_->splat(std::ldexp(1.0, -digits), {compute, dims}));
  }

  // Draws standard normal numbers, in the compute type, by the inverse of the normal distribution.
  Value normal(DType dtype, const Dims& dims) {
    const DType compute = compute_type(dtype);
    const int digits = digits_of(compute);
    // Odd multiples of 2^-digits in (-1, 1): never an end of the interval, and exact in the compute type.
    Value centred = b_->subtract(signed_whole(compute, digits, dims),
                                 b_->splat(int64_t{1} << (digits - 1), {signed_type(compute), dims}));
    Value odd = b_->add(b_->convert(centred, compute), b_->splat(0.5, {compute, dims}));
    Value x = b_->multiply(odd, b_->splat(std::ldexp(1.0, 1 - digits), {compute, dims}));
    return b_->multiply(b_->chlo("erf_inv", x), b_->splat(std::numbers::sqrt2, {compute, dims}));
  }

  static int digits_of(DType dtype) {
    switch (dtype) {
      case DType::kBF16:
        return 8;
      case DType::kF16:
        return 11;
      case DType::kF64:
        return 53;
      default:
        return 24;
    }
  }

 private:
  static DType signed_type(DType compute) { return compute == DType::kF64 ? DType::kS64 : DType::kS32; }

  // Draws unsigned integers of [0, 2^digits).
  Value whole(DType compute, int digits, const Dims& dims) {
    const Type type{compute == DType::kF64 ? DType::kU64 : DType::kU32, dims};
    const int width = compute == DType::kF64 ? 64 : 32;
    return b_->shift_right_logical(bits(type.dtype, dims), b_->splat(width - digits, type));
  }
  Value signed_whole(DType compute, int digits, const Dims& dims) {
    return b_->convert(whole(compute, digits, dims), signed_type(compute));
  }

  Builder* b_;
  Value state_;
};

namespace random {

// In distributions.cc: draws with rejection, and derivatives by a distribution's parameter.
Values standard_gamma(Emit& e);
Values standard_gamma_gradient(Emit& e);
Values dirichlet(Emit& e);
Values dirichlet_gradient(Emit& e);
Values poisson(Emit& e);
Values binomial(Emit& e);

}  // namespace random

}  // namespace sluice::ops
