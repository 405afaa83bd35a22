// The amount of computation of a program: the FLOPs of its matrix products and convolutions.
#pragma once

#include <map>
#include <span>

#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

// Floating-point operations, where a multiplication and an addition count separately, by the element type
// that is multiplied. Operations on complex numbers count for the type of their parts.
struct Flops {
  double f64 = 0, f32 = 0;
  double f16 = 0;  // f16 and bf16
  double f8 = 0;   // both kinds
  // The part of these in the products of causal attention, of all queries with all keys.
  double causal_f64 = 0, causal_f32 = 0, causal_f16 = 0;
  double loops =
      0;  // loops with products whose length the program's text does not give; their FLOPs are missing

  double sum() const { return f64 + f32 + f16 + f8; }
  double causal() const { return causal_f64 + causal_f32 + causal_f16; }
  // Returns the same with half of the products of causal attention, whose mask hides half of the keys. Its
  // causal() is 0.
  Flops with_half_of_causal() const;
  bool complete() const { return loops == 0; }
  Flops& operator+=(const Flops& other);
  Flops operator-(const Flops& other) const;
  Flops times(double factor) const;
  bool operator==(const Flops&) const = default;
};

// The FLOPs of a program and of its parts: [Operation::location].
struct ProgramFlops {
  Flops all;
  std::map<int, Flops> by_location;  // only locations with FLOPs
};

// Counts main's operations that its results depend on, on one replica. Call it before patterns rewrite the
// program: then it does not matter which kernels compute the products. It counts what a model asks for:
// - Products (dot_general) and convolutions, except multiplications with padding or with the zeros of a
//   dilation. Elementwise operations, sums, Fourier transforms and factorisations do not count.
// - A product of the same values as an earlier one counts once, even with barriers in between: computing it
//   again to save memory is no progress.
// - A loop that counts from 0 to a constant, in steps of 1, counts each time it runs.
// - Of several branches, the most expensive one counts.
ProgramFlops count_flops(const Operations& main, std::span<const Value> results);

}  // namespace sluice::stablehlo
