// Helpers that the tests of this room share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/base/error.h"
#include "sluice/stablehlo/builder.h"

namespace sluice::stablehlo::testing {

inline Type f32(const Dims& dims = {}) { return {DType::kF32, dims}; }
inline Type s32(const Dims& dims = {}) { return {DType::kS32, dims}; }
inline Type s64(const Dims& dims = {}) { return {DType::kS64, dims}; }
inline Type u32(const Dims& dims = {}) { return {DType::kU32, dims}; }
inline Type u64(const Dims& dims = {}) { return {DType::kU64, dims}; }
inline Type pred(const Dims& dims = {}) { return {DType::kPred, dims}; }

// Returns the message of the error that the call throws; "" if it throws nothing.
template <typename Call>
std::string rejection(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

inline Values sum_body(Builder& b, std::span<const Value> in) { return {b.add(in[0], in[1])}; }

}  // namespace sluice::stablehlo::testing
