#include "sluice/pod/ssh/quote.h"

#include <gtest/gtest.h>

#include "sluice/pod/test_shell.h"

namespace sluice::pod {
namespace {

TEST(Quote, HarmlessWordsStayAsTheyAre) {
  EXPECT_EQ(quote("--lr=0.1"), "'--lr=0.1'");
  EXPECT_EQ(quote("gs://b/train.tar"), "gs://b/train.tar");
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("it's"), "'it'\\''s'");
  EXPECT_EQ(quote_all({"echo", "a b", "c"}), "echo 'a b' c");
}

TEST(Quote, EveryByteButNulSurvivesSh) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string words[] = {all,  all + all, "",         "\n",    "\n\n",        " ",   "-n",
                               "\\", "'",       "''",       "$(id)", "`id`",        "~",   "*",
                               "!x", "a\r\nb",  "\xff\xfe", "#",     "a;b|c&d<e>f", "%s%n"};
  for (const std::string& word : words) EXPECT_EQ(sh_output("printf %s " + quote(word)), word);
  // One word each, also beside others.
  EXPECT_EQ(sh_output("set -- " + quote_all({all, "", "x y"}) + "; printf %s:%s $# \"$3\""), "3:x y");
}

}  // namespace
}  // namespace sluice::pod
