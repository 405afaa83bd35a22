#include "sluice/collectives/reduction.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sluice/base/check.h"
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::collectives {
namespace {

// Elements that are combined at once, so that the intermediate results stay in the L1 cache. Loops of this
// fixed length are compiled to vector instructions.
constexpr size_t kBlock = 1024;

// Element types that compute in another type.
struct BFloat16 {
  uint16_t bits;
};
struct Predicate {
  uint8_t byte;
};
#if defined(__aarch64__)
using Float16 = __fp16;  // g++ 12 has _Float16 only on x86
#else
using Float16 = _Float16;
#endif

template <typename T>
struct Work {
  using type = T;
};
template <>
struct Work<BFloat16> {
  using type = float;
};
template <>
struct Work<Float16> {
  using type = float;
};
template <>
struct Work<Predicate> {
  using type = uint8_t;
};

template <typename T>
typename Work<T>::type load(T x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
  } else if constexpr (std::is_same_v<T, Predicate>) {
    return static_cast<uint8_t>(x.byte != 0);
  } else {
    return static_cast<typename Work<T>::type>(x);
  }
}

template <typename T>
T store(typename Work<T>::type x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet_nan = (bits >> 16) | 0x40;
    return {static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded)};
  } else if constexpr (std::is_same_v<T, Predicate>) {
    return {x};
  } else {
    return static_cast<T>(x);
  }
}

template <Reduction kReduction, typename W>
W combine(W a, W b) {
  if constexpr (kReduction == Reduction::kSum) {
    if constexpr (std::is_integral_v<W>) {
      using U = std::make_unsigned_t<W>;
      return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  } else if constexpr (std::is_floating_point_v<W>) {
    const bool better = kReduction == Reduction::kMax ? b > a : b < a;
    return (better | (b != b)) ? b : a;
  } else {
    return kReduction == Reduction::kMax ? std::max(a, b) : std::min(a, b);
  }
}

template <typename T, Reduction kReduction>
void reduce_block(std::span<const void* const> inputs, std::span<void* const> outputs, size_t at, auto n) {
  using W = typename Work<T>::type;
  W total[kBlock];
  const auto* first = static_cast<const T*>(inputs[0]) + at;
  for (size_t k = 0; k < n; ++k) total[k] = load<T>(first[k]);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const auto* next = static_cast<const T*>(inputs[i]) + at;
    for (size_t k = 0; k < n; ++k) total[k] = combine<kReduction, W>(total[k], load<T>(next[k]));
  }
  T made[kBlock];
  for (size_t k = 0; k < n; ++k) made[k] = store<T>(total[k]);
  for (void* output : outputs) std::memcpy(static_cast<T*>(output) + at, made, n * sizeof(T));
}

template <typename T, Reduction kReduction>
void reduce_all(std::span<const void* const> inputs, std::span<void* const> outputs, size_t elements) {
  size_t at = 0;
  constexpr std::integral_constant<size_t, kBlock> kWhole;
  for (; at + kBlock <= elements; at += kBlock) reduce_block<T, kReduction>(inputs, outputs, at, kWhole);
  if (at < elements) reduce_block<T, kReduction>(inputs, outputs, at, elements - at);
}

template <typename T>
void reduce_typed(Reduction reduction, std::span<const void* const> inputs, std::span<void* const> outputs,
                  size_t elements) {
  switch (reduction) {
    case Reduction::kSum:
      // The sum of predicates is "or": as a number it would not stay 0 or 1.
      if constexpr (std::is_same_v<T, Predicate>) {
        return reduce_all<T, Reduction::kMax>(inputs, outputs, elements);
      } else {
        return reduce_all<T, Reduction::kSum>(inputs, outputs, elements);
      }
    case Reduction::kMax:
      return reduce_all<T, Reduction::kMax>(inputs, outputs, elements);
    case Reduction::kMin:
      return reduce_all<T, Reduction::kMin>(inputs, outputs, elements);
  }
}

}  // namespace

std::optional<Reduction> reduction_named(std::string_view name) {
  for (Reduction r : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    if (name == reduction_name(r)) return r;
  }
  return std::nullopt;
}

const char* reduction_name(Reduction reduction) {
  return reduction == Reduction::kSum ? "sum" : reduction == Reduction::kMax ? "max" : "min";
}

void reduce(stablehlo::DType dtype, Reduction reduction, std::span<const void* const> inputs,
            std::span<void* const> outputs, size_t elements) {
  using stablehlo::DType;
  SLUICE_CHECK(!inputs.empty(), "nothing to reduce");
  const auto run = [&]<typename T>(T) { reduce_typed<T>(reduction, inputs, outputs, elements); };
  switch (dtype) {
    case DType::kPred:
      return run(Predicate{});
    case DType::kS8:
      return run(int8_t{});
    case DType::kS16:
      return run(int16_t{});
    case DType::kS32:
      return run(int32_t{});
    case DType::kS64:
      return run(int64_t{});
    case DType::kU8:
      return run(uint8_t{});
    case DType::kU16:
      return run(uint16_t{});
    case DType::kU32:
      return run(uint32_t{});
    case DType::kU64:
      return run(uint64_t{});
    case DType::kF16:
      return run(Float16{});
    case DType::kBF16:
      return run(BFloat16{});
    case DType::kF32:
      return run(float{});
    case DType::kF64:
      return run(double{});
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
    case DType::kC64:
    case DType::kC128:
      break;
  }
  throw_error(
      Code::kUnimplemented,
      base::str("elements of ", stablehlo::dtype_name(dtype),
                " are not combined across replicas; convert float8, combine the parts of complex numbers"));
}

}  // namespace sluice::collectives
