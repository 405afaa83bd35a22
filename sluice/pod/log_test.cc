#include "sluice/pod/log.h"

#include <gtest/gtest.h>

#include "sluice/base/files/file.h"

namespace sluice::pod {
namespace {

TEST(LineMerger, WholeLinesFromAnyPieces) {
  const std::string text = "one\n\ntwo three\nfour";
  const std::string expected = "h [1] one\nh [1] \nh [1] two three\nh [1] four\n";
  for (size_t size = 1; size <= text.size(); ++size) {
    LineMerger lines("h [1] ");
    std::string merged;
    for (size_t at = 0; at < text.size(); at += size) merged += lines.add(text.substr(at, size));
    EXPECT_EQ(merged + lines.finish(), expected) << size;
    EXPECT_EQ(lines.finish(), "");
  }
}

TEST(LineMerger, ARewrittenLineShowsItsLastState) {
  LineMerger lines("");
  EXPECT_EQ(lines.add("1%\r2%\r"), "");
  EXPECT_EQ(lines.add("3%\r\nnext\r\n"), "3%\nnext\n");
}

TEST(LineMerger, EndlessLinesAreBroken) {
  LineMerger lines("> ", 4);
  EXPECT_EQ(lines.add("abcdefghij"), "> abcd\n> efgh\n");
  EXPECT_EQ(lines.add("\nabcd\n"), "> ij\n> abcd\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(LastLines, OfAFile) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("log");
  const auto last = [&](const std::string& text, int count) {
    base::value_or_throw(base::write_file_atomically(path, text));
    return last_lines(path, count);
  };
  EXPECT_EQ(last("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(last("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(last("a\nb\n", 5), "a\nb\n");
  EXPECT_EQ(last("", 5), "");
  EXPECT_EQ(last(std::string(1 << 20, 'x') + "\nend\n", 1), "end\n");
  EXPECT_EQ(last(std::string(1 << 20, 'x'), 3).size(), size_t{64} << 10);
  EXPECT_EQ(last_lines(folder.path("none"), 3), "");
}

}  // namespace
}  // namespace sluice::pod
