#include "sluice/base/formats/base64.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

// The vectors are those of RFC 4648, section 10.
TEST(Base64, WritesAndReadsTheVectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(bytes_of_base64(" Zg==\n"), "f");
}

TEST(Base64, OtherTextIsNothing) {
  for (const char* text :
       {"Zg=", "Zg", "Z", "=", "====", "Z===", "Zg==Zg==", "=Zg=", "Zg_-", "Zg==-2", "Zm 9v"})
    EXPECT_FALSE(bytes_of_base64(text)) << text;
}

}  // namespace
}  // namespace sluice::base
