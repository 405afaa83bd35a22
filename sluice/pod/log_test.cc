#include "sluice/pod/log.h"

#include <gtest/gtest.h>

#include <cstdio>

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

// Lines of 16 bytes, each of which says its place.
std::string lines_up_to(uint64_t bytes) {
  std::string text;
  char line[32];
  while (text.size() < bytes) {
    std::snprintf(line, sizeof line, "at %012zu\n", text.size());
    text += line;
  }
  return text;
}

// What the files of a log have of a text, and the bytes that they take together.
uint64_t check_parts(const std::string& path, const std::string& text) {
  uint64_t bytes = 0;
  for (const LogPart& part : log_parts(path)) {
    const std::string here = base::value_or_throw(base::read_file(part.path));
    EXPECT_EQ(here, text.substr(part.from, here.size())) << part.path;
    if (!here.empty()) {
      EXPECT_EQ(here.back(), '\n') << part.path;
    }
    bytes += here.size();
  }
  return bytes;
}

// The bytes on the disk do not grow with the output: size^0.
TEST(LogFile, KeepsTheBeginningAndTheEndInABoundedSpace) {
  constexpr uint64_t kMax = 64 << 10;
  for (const uint64_t size : {uint64_t{1} << 20, uint64_t{8} << 20}) {
    const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
    const std::string path = folder.path("worker-0.log"), text = lines_up_to(size);
    for (size_t at = 0; at < text.size(); at += 10'007) {
      LogFile log = base::value_or_throw(LogFile::open(path, kMax));  // as a client that takes a run over
      ASSERT_EQ(log.position(), at);
      ASSERT_TRUE(log.add(std::string_view(text).substr(at, 10'007)));
    }
    EXPECT_EQ(log_parts(path).front().path, path);
    EXPECT_EQ(last_lines(path, 3), text.substr(text.size() - 48));
    EXPECT_EQ(base::value_or_throw(base::read_file(path)).substr(0, 1000), text.substr(0, 1000));
    EXPECT_LE(base::value_or_throw(base::list_directory(folder.path())).size(), 4U);
    uint64_t bytes = 0;
    for (const LogPart& part : log_parts(path)) bytes += base::value_or_throw(base::file_size(part.path));
    EXPECT_LE(bytes, kMax) << size;
    EXPECT_GT(bytes, kMax / 2) << size;
  }
}

TEST(LogFile, FilesEndAtTheEndOfALine) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("merged.log"), text = lines_up_to(100'000);
  LogFile log = base::value_or_throw(LogFile::open(path, 10'000));
  for (size_t at = 0; at < text.size(); at += 48) ASSERT_TRUE(log.add(std::string_view(text).substr(at, 48)));
  EXPECT_LE(check_parts(path, text), 10'000U);
  // A line that is longer than a file is broken.
  ASSERT_TRUE(log.add(std::string(30'000, 'x')));
  EXPECT_EQ(log.position(), text.size() + 30'000);
}

TEST(LogFile, WithoutALimitItIsOneFile) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("worker-1.log"), text = lines_up_to(100'000);
  LogFile log = base::value_or_throw(LogFile::open(path, 0));
  ASSERT_TRUE(log.add(text));
  EXPECT_EQ(log_parts(path).size(), 1U);
  EXPECT_EQ(check_parts(path, text), text.size());
}

TEST(LogFile, SkippedBytesCountAsItsPosition) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("worker-1.log");
  base::value_or_throw(base::write_file_atomically(folder.path("worker-10.log"), "another worker's\n"));
  base::value_or_throw(
      base::write_file_atomically(folder.path("worker-1.restart-1.log"), "another attempt's\n"));
  {
    LogFile log = base::value_or_throw(LogFile::open(path, 1 << 20));
    ASSERT_TRUE(log.add("begin\n"));
    ASSERT_TRUE(log.skip_to(3));  // is there already
    ASSERT_TRUE(log.skip_to(5'000'000'000));
    ASSERT_TRUE(log.add("end\n"));
  }
  EXPECT_EQ(base::value_or_throw(LogFile::open(path, 1 << 20)).position(), 5'000'000'004U);
  const auto parts = log_parts(path);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].path, folder.path("worker-1.from-000005000000000.log"));
  EXPECT_EQ(last_lines(path, 2), "begin\nend\n");
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
