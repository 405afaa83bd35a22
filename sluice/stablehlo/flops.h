// How much a program computes: the FLOPs of its matrix products and convolutions.
#pragma once

#include <map>
#include <span>

#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

// Floating-point operations, a multiplication and an addition each, by the element type that is multiplied.
// Those of complex numbers count among their parts'.
struct Flops {
  double f64 = 0, f32 = 0;
  double f16 = 0;  // f16 and bf16
  double f8 = 0;   // both kinds
  double loops =
      0;  // loops with products in them whose length no program's text tells: what they do is missing

  double sum() const { return f64 + f32 + f16 + f8; }
  bool complete() const { return loops == 0; }
  Flops& operator+=(const Flops& other);
  Flops operator-(const Flops& other) const;
  Flops times(double factor) const;
  bool operator==(const Flops&) const = default;
};

// Of a program, and of its parts: [Operation::location].
struct ProgramFlops {
  Flops all;
  std::map<int, Flops> by_location;  // those that have any
};

// Of main's operations, as far as its results follow from them, on one replica. Asked before patterns rewrite
// the program: then it does not matter which kernels make the products. Counted is what a model asks for:
// - products (dot_general) and convolutions; of these what is multiplied with padding, or with the zeros that
//   a dilation puts in, is not. Elementwise operations, sums, Fourier transforms and factorisations do not
//   count.
// - A product of the same values as one before it counts once, also when barriers stand between: made again
//   to save memory, it is no progress.
// - A loop that counts from 0 to a constant, in steps of 1, counts as often as it runs. Of branches the
//   dearest counts.
ProgramFlops count_flops(const Operations& main, std::span<const Value> results);

}  // namespace sluice::stablehlo
