#include "sluice/data/shards/urls.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> expanded(std::string_view pattern) {
  const auto result = expand_braces(pattern);
  EXPECT_TRUE(result) << result.error().what();
  return result.value_or(std::vector<std::string>{});
}

// The expected lists are what Python's braceexpand 0.1.7 gives.
TEST(Braces, ExpandAsPythonsBraceexpand) {
  EXPECT_THAT(expanded("a{000..3}"), ElementsAre("a000", "a001", "a002", "a003"));
  EXPECT_THAT(expanded("{9..1..4}"), ElementsAre("9", "5", "1"));
  EXPECT_THAT(expanded("{a..e..2}"), ElementsAre("a", "c", "e"));
  EXPECT_THAT(expanded("x{1,2{a,b}}y"), ElementsAre("x1y", "x2ay", "x2by"));
  EXPECT_THAT(expanded("{a}"), ElementsAre("{a}"));
  EXPECT_THAT(expanded("{a{1..2}}"), ElementsAre("{a1}", "{a2}"));
  EXPECT_THAT(expanded("{-2..1}"), ElementsAre("-2", "-1", "0", "1"));
  EXPECT_THAT(expanded("{01..-1}"), ElementsAre("01", "00", "-1"));
  EXPECT_THAT(expanded("{,x}z"), ElementsAre("z", "xz"));
  EXPECT_THAT(expanded("p\\{1,2\\}"), ElementsAre("p{1,2}"));
  EXPECT_THAT(expanded("{1..3}{a,b}"), ElementsAre("1a", "1b", "2a", "2b", "3a", "3b"));
  EXPECT_THAT(expanded("{b..a}"), ElementsAre("b", "a"));
  EXPECT_THAT(expanded("{5..5}"), ElementsAre("5"));
  EXPECT_THAT(expanded("{1...3}"), ElementsAre("{1...3}"));
  EXPECT_THAT(expanded("{z..C..9}"), ElementsAre("z", "q", "h", "Y", "P", "G"));
  EXPECT_EQ(expanded("train-{0000..0639}.tar").size(), 640u);
  EXPECT_EQ(expanded("train-{0000..0639}.tar").back(), "train-0639.tar");
}

TEST(Braces, UnbalancedOnesAndTooManyAreErrors) {
  for (const char* pattern : {"{a", "a}", "{a,{b}", "}{"}) {
    const auto result = expand_braces(pattern);
    ASSERT_FALSE(result) << pattern;
    EXPECT_THAT(result.error().what(), HasSubstr("unbalanced"));
  }
  EXPECT_FALSE(expand_braces("{0..99999999999}"));
  EXPECT_FALSE(expand_braces("{0..9999}{0..9999}"));
}

TEST(Urls, ListsGlobsAndFilesOfNames) {
  const test::Folder folder;
  const std::string a0 = folder.write("a-0.tar", ""), a1 = folder.write("a-1.tar", ""),
                    b = folder.write("b.tar", "");
  EXPECT_THAT(*expand_urls(folder.path("a-{0..1}.tar") + "::" + b), ElementsAre(a0, a1, b));
  EXPECT_THAT(*expand_urls(folder.path("*.tar")), ElementsAre(a0, a1, b));
  EXPECT_THAT(*expand_urls(folder.path("{b,a-?}.tar")), ElementsAre(b, a0, a1));
  const std::string list = folder.write("list.txt", "# shards\n\na-{1..0}.tar\n  b.tar  \n");
  EXPECT_THAT(*expand_urls("@" + list), ElementsAre(a1, a0, b));
  EXPECT_THAT(*expand_urls("-::gs://bucket/x-{0..1}.tar"),
              ElementsAre("-", "gs://bucket/x-0.tar", "gs://bucket/x-1.tar"));
  ::setenv("WDS_PLACE", folder.path().c_str(), 1);
  EXPECT_THAT(*expand_urls("${PLACE}/b.tar"), ElementsAre(b));
}

TEST(Urls, AFileIsNoCommandWhateverItsName) {
  const test::Folder folder;
  const std::string file = folder.path("pipe:touch x;.tar");
  base::value_or_throw(base::write_file_atomically(file, "x"));
  EXPECT_THAT(*expand_urls(folder.path("*.tar")), ElementsAre(file));
  // In the current folder the name alone would be a command.
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  for (const char* const pattern : {"*.tar", "pipe:touch x;.tar"}) {
    const auto found = expand_urls(pattern);
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_THAT(*found, ElementsAre("./pipe:touch x;.tar"));
    EXPECT_FALSE(is_remote(found->front()));
  }
  std::filesystem::current_path(before);
}

TEST(Urls, AListMayHoldNoCommand) {
  const test::Folder folder;
  base::value_or_throw(base::write_file_atomically(folder.path("list"), "pipe:cat x\n"));
  base::value_or_throw(base::write_file_atomically(folder.path("outer"), "@list\n"));
  for (const char* const name : {"list", "outer"}) {
    const auto refused = expand_urls("@" + folder.path(name));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
    EXPECT_THAT(refused.error().what(), HasSubstr("give --allow-pipe or set SLUICE_ALLOW_PIPE=1"));
  }
  EXPECT_THAT(*expand_urls("pipe:cat x"), ElementsAre("pipe:cat x"));  // the user's own word
  ::setenv("SLUICE_ALLOW_PIPE", "1", 1);
  EXPECT_THAT(*expand_urls("@" + folder.path("list")), ElementsAre("pipe:cat x"));
  ::unsetenv("SLUICE_ALLOW_PIPE");
}

TEST(Urls, WhatIsMissingIsNamed) {
  const test::Folder folder;
  folder.write("a-0.tar", "");
  const auto some = expand_urls(folder.path("a-{0..3}.tar"));
  ASSERT_FALSE(some);
  EXPECT_EQ(some.error().code(), Code::kNotFound);
  EXPECT_THAT(some.error().what(), HasSubstr("3 of the 4 shards of '" + folder.path("a-{0..3}.tar") + "'"));
  EXPECT_THAT(some.error().what(), HasSubstr(folder.path("a-1.tar")));
  EXPECT_THAT(expand_urls(folder.path("*.zip")).error().what(), HasSubstr("*.zip"));
  EXPECT_THAT(expand_urls(folder.path("nodir/*.tar")).error().what(),
              HasSubstr("there is no folder '" + folder.path("nodir") + "'"));
  EXPECT_THAT(expand_urls("@" + folder.path("none")).error().what(), HasSubstr("list of shards"));
  EXPECT_THAT(expand_urls("@" + folder.write("empty", "# nothing\n")).error().what(),
              HasSubstr("names none"));
  EXPECT_THAT(expand_urls("@" + folder.write("loop", "@loop\n")).error().what(), HasSubstr("leads back"));
  EXPECT_THAT(expand_urls("${NEVER_SET_ANYWHERE}/x").error().what(), HasSubstr("WDS_NEVER_SET_ANYWHERE"));
  EXPECT_FALSE(expand_urls(""));
  EXPECT_FALSE(expand_urls(folder.path("a-0.tar") + "::"));
}

}  // namespace
}  // namespace sluice::data
