#include "sluice/train/log/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <filesystem>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"

namespace sluice::train {
namespace {

TEST(Lines, ALineWithoutItsEndIsNone) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("rows");
  const auto rewritten = [&](const std::string& text) {
    base::value_or_throw(base::write_file_atomically(path, text));
    base::value_or_throw(rewrite_lines(path, [](const std::string& line, std::string& out) -> base::Status {
      if (line != "b") out += "<" + line + ">\n";
      return {};
    }));
    return base::value_or_throw(base::read_file(path));
  };
  EXPECT_EQ(rewritten("a\nb\n\nc\ncut"), "<a>\n<>\n<c>\n");
  EXPECT_EQ(rewritten("a\n"), "<a>\n");
  EXPECT_EQ(rewritten("cut"), "");
  EXPECT_EQ(rewritten(""), "");
  EXPECT_FALSE(each_line(folder.path("missing"), [](const std::string&) { return base::Status(); }));
}

TEST(Lines, AFailureLeavesTheFile) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("rows");
  base::value_or_throw(base::write_file_atomically(path, "a\nb\n"));
  const auto pass = rewrite_lines(path, [](const std::string& line, std::string& out) -> base::Status {
    if (line == "b") return base::fail(Code::kDataLoss, "no");
    out += "x\n";
    return {};
  });
  EXPECT_FALSE(pass);
  EXPECT_EQ(base::value_or_throw(base::read_file(path)), "a\nb\n");
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder.path())), std::vector<std::string>{"rows"});
}

// A copy in a bucket can be continued only while the file keeps its inode.
TEST(Lines, AFileWithoutAChangeStaysTheSameFile) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("rows"), link = folder.path("link");
  const auto stays = [&](const std::string& text, const std::string& dropped) {
    std::filesystem::remove(link);
    base::value_or_throw(base::write_file_atomically(path, text));
    std::filesystem::create_hard_link(path, link);
    base::value_or_throw(rewrite_lines(path, [&](const std::string& line, std::string& out) -> base::Status {
      if (line != dropped) out += line + "\n";
      return {};
    }));
    return std::filesystem::equivalent(path, link);
  };
  EXPECT_TRUE(stays("a\n\nb\n", "c"));
  EXPECT_TRUE(stays("", "c"));
  EXPECT_FALSE(stays("a\n\nb\n", "b"));
  EXPECT_FALSE(stays("a\nb\ncut", "c"));
}

// What a resume holds of its rows at once.
TEST(Lines, WhatIsHeldDoesNotGrowWithTheRows) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path = folder.path("rows");
  std::vector<LinePass> passes;
  for (const int64_t rows : {1'000, 100'000}) {
    std::string text;
    for (int64_t i = 0; i < rows; ++i) text += base::str("{\"step\": ", 1'000'000 + i, "}\n");
    base::value_or_throw(base::write_file_atomically(path, text));
    passes.push_back(base::value_or_throw(
        rewrite_lines(path, [](const std::string& line, std::string& out) -> base::Status {
          out += line + "\n";
          return {};
        })));
    EXPECT_EQ(passes.back().lines, rows);
    EXPECT_EQ(base::value_or_throw(base::read_file(path)), text);
  }
  EXPECT_LE(passes[1].max_held, 256U << 10);  // the file has 1.8 MB
  EXPECT_LE(passes[0].max_held, passes[1].max_held);
}

}  // namespace
}  // namespace sluice::train
