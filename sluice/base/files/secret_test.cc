#include "sluice/base/files/secret.h"

#include <gtest/gtest.h>

#include <set>

#include "sluice/base/formats/sha256.h"

namespace sluice::base {
namespace {

TEST(Secret, NoTwoAreTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = new_secret();
    EXPECT_EQ(secret.size(), 64u);
    EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(secret).second);
  }
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(1000).size(), 1000u);
}

// The published examples of HMAC-SHA256.
TEST(Secret, Tags) {
  EXPECT_EQ(hexadecimal(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexadecimal(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Secret, Comparison) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcd"));
}

}  // namespace
}  // namespace sluice::base
