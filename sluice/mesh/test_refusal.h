// For the tests of this room: the message of a call that must be refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/error.h"

namespace sluice::test {

// Returns the message of the kInvalidArgument that the call throws; empty if it throws nothing.
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace sluice::test
