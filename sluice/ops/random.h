// Helpers that the files of the random family share.
//
// Random words come from a hash of counters: the word of an element follows only from the call's key of 64
// bits, the replica (24 bits), the number of the draw within the call (32 bits) and the element's place (64
// bits, row-major). Nothing but the key is kept between calls, and every device and program computes the
// same.
//
// The hash is triple32 (C. Wellons, "Prospecting for hash functions", 2018): three rounds of a shift and a
// 32-bit product, here with a key before each round, as in an Even-Mansour cipher. It needs about 15
// instructions that TPUs and the vector units of CPUs have, where Threefry needs 75 and Philox needs products
// of 64 bits. Hashes of two rounds (lowbias32, murmur3's) fail random_test.cc. The keyed place is added to
// the last round's word: without it, no word would occur twice among 2^32 places.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "sluice/ops/common.h"

namespace sluice::ops {

// In these functions, Word is a type of unsigned 32-bit numbers: one number, or the elements of a value
// (Words, below).

// Mixes the bits of a word; a bijection that maps 0 to 0.
template <typename Word>
Word mixed(Word word) {
  word ^= word >> 17;
  word *= uint32_t{0xed5ad4bb};
  word ^= word >> 11;
  word *= uint32_t{0xac4c1b51};
  word ^= word >> 15;
  word *= uint32_t{0x31848bab};
  word ^= word >> 14;
  return word;
}

// The keys of the three rounds.
template <typename Word>
struct RoundKeys {
  Word first, second, third;
};

// Returns the keys of a state (see Emit::random_state): the halves of the call's key and of its counter, of
// which the low one is the number of the draw, and the high one says the replica. The call's key is random
// already, but calls, draws and replicas whose words meet in the first round must differ much in the others.
template <typename Word>
RoundKeys<Word> round_keys(Word key_low, Word key_high, Word counter_low, const Word& counter_high) {
  const Word replica = mixed(counter_high);
  key_low ^= replica;
  counter_low *= uint32_t{0x9e3779b9};
  key_high += counter_low;
  Word second = mixed(key_high);
  second ^= replica;
  Word third = key_low;
  third += second;
  third *= uint32_t{0x846ca68b};
  return {key_low, second, third};
}

// Returns the word of a place below 2^32.
template <typename Word>
Word word_at(Word place, const RoundKeys<Word>& keys) {
  place ^= keys.first;
  Word word = place;
  word ^= word >> 17;
  word *= uint32_t{0xed5ad4bb};
  word ^= keys.second;
  word ^= word >> 11;
  word *= uint32_t{0xac4c1b51};
  word ^= keys.third;
  word ^= word >> 15;
  word *= uint32_t{0x31848bab};
  word ^= word >> 14;
  word += place;
  return word;
}

// Returns the word of a place of 64 bits. Each 2^32 places have a second key of their own.
template <typename Word>
Word word_at(const Word& place_low, const Word& place_high, RoundKeys<Word> keys) {
  Word second = mixed(place_high);
  second ^= keys.second;
  return word_at(place_low, RoundKeys<Word>{keys.first, second, keys.third});
}

// Unsigned 32-bit numbers of a program, with the operators that hashes need. The right operand may be 0-d.
struct Words {
  Builder* b;
  Value value;

  Words operator>>(uint32_t bits) const { return {b, b->shift_right_logical(value, like(bits))}; }
  void operator^=(const Words& other) { value = b->xor_(value, b->broadcast(other.value, value.dims())); }
  void operator+=(const Words& other) { value = b->add(value, b->broadcast(other.value, value.dims())); }
  void operator*=(uint32_t factor) { value = b->multiply(value, like(factor)); }
  Value like(uint32_t number) const { return b->splat(int64_t{number}, value.type()); }
};

// Draws the random numbers of one call, one batch after another.
class Source {
 public:
  // kThreefry is one operation of the program (rng_bit_generator): slower, but compiled faster where a call
  // has many draws in loops.
  enum class Kind { kHash, kThreefry };

  explicit Source(Emit& e, Kind kind = Kind::kHash) : Source(e.b, e.random_state(), kind) {}
  // Continues from a state, as inside a loop.
  Source(Builder& b, Value state, Kind kind = Kind::kHash) : b_(&b), state_(state), kind_(kind) {}
  // Returns the state from which the next batch is drawn.
  Value state() const {
    const int64_t next[] = {0, draws_};
    return draws_ == 0 ? state_ : b_->add(state_, b_->constant(state_.type(), next));
  }

  // Draws random bits: words of u32, or numbers of u64 from two words each.
  Value bits(DType dtype, const Dims& dims) {
    if (kind_ == Kind::kThreefry) {
      const auto [state, bits] = b_->rng_bits(state_, Type{dtype, dims});
      state_ = state;
      return bits;
    }
    if (dtype == DType::kU32) return words(dims);
    const Value high = b_->convert(words(dims), dtype), low = b_->convert(words(dims), dtype);
    return b_->or_(b_->shift_left(high, b_->splat(32, high.type())), low);
  }

  // Draws uniform numbers in [0, 1) with all bits that `dtype` holds exactly; computed and returned in its
  // compute type.
  Value uniform(DType dtype, const Dims& dims) {
    const DType compute = compute_type(dtype);
    const int digits = digits_of(dtype);
    return b_->multiply(b_->convert(whole(compute, digits, dims), compute),
                        b_->splat(std::ldexp(1.0, -digits), {compute, dims}));
  }

  // Draws standard normal numbers, in the compute type, by the inverse of the normal distribution.
  Value normal(DType dtype, const Dims& dims) {
    const DType compute = compute_type(dtype);
    const int digits = digits_of(compute);
    // Odd multiples of 2^-digits in (-1, 1): never an end of the interval, and exact in the compute type.
    Value drawn = whole(compute, digits, dims);
    Value centred = b_->subtract(drawn, b_->splat(int64_t{1} << (digits - 1), drawn.type()));
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
  // Draws integers of [0, 2^digits), as s32 (for f64: s64), from which floats are made faster than from
  // unsigned ones.
  Value whole(DType compute, int digits, const Dims& dims) {
    const bool wide = compute == DType::kF64;
    const Value drawn = bits(wide ? DType::kU64 : DType::kU32, dims);
    const Value high = b_->shift_right_logical(drawn, b_->splat((wide ? 64 : 32) - digits, drawn.type()));
    return b_->convert(high, wide ? DType::kS64 : DType::kS32);
  }

  // Draws u32 words.
  Value words(const Dims& dims) {
    const Value key = part_of_state(0), counter = part_of_state(1);
    Words draw = low_of(counter);
    draw += Words{b_, draw.like(static_cast<uint32_t>(draws_++))};
    const RoundKeys<Words> keys = round_keys(low_of(key), high_of(key), draw, high_of(counter));
    double elements = 1;
    for (const int64_t dim : dims) elements *= static_cast<double>(dim);
    if (elements <= 0x1p32) return word_at(Words{b_, places({DType::kU32, dims})}, keys).value;
    const Value all = places({DType::kU64, dims});
    return word_at(low_of(all), high_of(all), keys).value;
  }

  // Returns 0, 1, 2, … in row-major order, without a reshape: the memory of a TPU has tiles.
  Value places(const Type& type) {
    Value sum;
    uint64_t stride = 1;
    for (size_t dim = type.dims.size(); dim-- > 0; stride *= static_cast<uint64_t>(type.dims[dim])) {
      if (type.dims[dim] == 1) continue;
      Value along = b_->iota(type, static_cast<int64_t>(dim));
      if (stride != 1) along = b_->multiply(along, b_->splat(static_cast<int64_t>(stride), type));
      sum = sum ? b_->add(sum, along) : along;
    }
    return sum ? sum : zeros(*b_, type);
  }

  Value part_of_state(int64_t i) { return b_->reshape(b_->slice_dim(state_, 0, i, i + 1), {}); }
  Words low_of(Value x) { return {b_, b_->convert(x, DType::kU32)}; }
  Words high_of(Value x) { return low_of(b_->shift_right_logical(x, b_->splat(32, x.type()))); }

  Builder* b_;
  Value state_;
  Kind kind_;
  int64_t draws_ = 0;
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
