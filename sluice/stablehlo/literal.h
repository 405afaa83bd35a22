// Numbers as the bits of an element type, and as the text of a constant. Internal to this room.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo::literal {

// The bits of `value` as an element of `dtype`, in the low bytes. Floats round to the nearest, ties to even
// (narrow ones in one step, not through f32; f8E4M3FN has NaN where others have infinity); integers drop the
// fraction; a predicate is value != 0. Throws sluice::Error(kInvalidArgument) when an integer type cannot
// hold the number (NaN, infinity, out of range).
uint64_t encode(double value, DType dtype);
// Integers of another width wrap around, as C++ converts them.
uint64_t encode(int64_t value, DType dtype);

// The element in row-major host memory.
uint64_t load(const void* data, int64_t index, DType dtype);

// The element type's least and greatest value: infinities for floats (f8E4M3FN has none: its NaN).
uint64_t lowest(DType dtype);
uint64_t highest(DType dtype);

bool is_nan(DType dtype, uint64_t bits);

// Appends one element as MLIR reads it back bit for bit: "1.5", "-3", "true", "0x7FC00000" (NaN and
// infinities).
void append(std::string& text, DType dtype, uint64_t bits);

// Appends "dense<…>" with all elements of the type: one number when they are all the same, else their bytes
// in hexadecimal (predicates as nested lists of words: the bytes of packed predicates changed between MLIR
// versions).
void append_dense(std::string& text, const Type& type, const void* data);

}  // namespace sluice::stablehlo::literal
