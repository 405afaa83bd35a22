// Numbers as the bits of an element type, and as the text of a constant. Internal to this room.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo::literal {

// Returns the bits of `value` as an element of `dtype`, in the low bytes. Floats round to nearest, ties to
// even (narrow ones in one step, not through f32; f8E4M3FN has NaN where others have infinity); integers drop
// the fraction; a predicate is value != 0. Throws sluice::Error(kInvalidArgument) if an integer type cannot
// hold the number (NaN, infinity, out of range).
uint64_t encode(double value, DType dtype);
// Returns the bits of an integer, which wraps around in another width, as in C++'s conversion.
uint64_t encode(int64_t value, DType dtype);

// Returns the element at `index` in row-major host memory.
uint64_t load(const void* data, int64_t index, DType dtype);

// Return the least and the greatest value of an element type: infinities for floats (f8E4M3FN has only NaN).
uint64_t lowest(DType dtype);
uint64_t highest(DType dtype);

bool is_nan(DType dtype, uint64_t bits);

// Appends one element as MLIR reads it back bit for bit: "1.5", "-3", "true", "0x7FC00000" (NaN and
// infinities).
void append(std::string& text, DType dtype, uint64_t bits);

// Appends "dense<…>" with all elements of the type: one number if they are all the same, else their bytes in
// hexadecimal. Predicates are nested lists of words, because the bytes of packed predicates changed between
// MLIR versions.
void append_dense(std::string& text, const Type& type, const void* data);

}  // namespace sluice::stablehlo::literal
