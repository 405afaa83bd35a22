#include "sluice/base/text/lower_case.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(LowerCase, ChangesAsciiOnly) {
  EXPECT_EQ(lower_case("V2.JPG-[@`{"), "v2.jpg-[@`{");
  EXPECT_EQ(lower_case("Ä\xC4"), "Ä\xC4");
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace sluice::base
