#include "sluice/base/text/printable.h"

#include <gtest/gtest.h>

#include "sluice/base/text/join.h"

namespace sluice::base {
namespace {

TEST(Printable, PlainTextStaysAsItIs) {
  const std::string text = "train-{0000..0639}.tar\n\t3 × 4 °C, 日本, 😀";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

// Titles, clipboards (OSC 52) and cleared screens begin with ESC, or with its one-byte forms.
TEST(Printable, NothingThatATerminalObeys) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("\x1b[2J\r"), "\\x1b[2J\\x0d");
  EXPECT_EQ(printable("a\x7f\xc2\x9b"
                      "2J"),
            "a\\x7f\\u009b2J");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "cod.exe"),
            "\\u202ecod.exe");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, OnOneLine) { EXPECT_EQ(printable_line("a\nb\tc\r\x1b[2J"), "a b c\\x0d\\x1b[2J"); }

TEST(Printable, BytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");                                     // a control character of Latin-1
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // longer than need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("caf\xc3"), "caf\\xc3");  // cut off
}

TEST(Printable, EveryByteAfterEveryOther) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      for (const char c : printable(str(static_cast<char>(a), static_cast<char>(b), "\x9b")))
        ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') << a << ' ' << b;
}

}  // namespace
}  // namespace sluice::base
