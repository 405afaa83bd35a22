#include "sluice/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string logged(Level level, const std::function<void()>& body) {
  set_log_level(level);
  testing::internal::CaptureStderr();
  body();
  std::string text = testing::internal::GetCapturedStderr();
  set_log_level(Level::kInfo);
  return text;
}

TEST(Log, WritesLinesAboveTheLevel) {
  const std::string text = logged(Level::kWarning, [] {
    info("hidden");
    warn("braces {} and ", 3, " pieces");
    error("bad");
  });
  EXPECT_THAT(text, HasSubstr("W braces {} and 3 pieces\n"));
  EXPECT_THAT(text, HasSubstr("E bad\n"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
}

TEST(Log, DebugIsMadeOnlyWhenItIsShown) {
  EXPECT_FALSE(log_enabled(Level::kDebug));
  EXPECT_THAT(logged(Level::kDebug, [] { debug("seen"); }), HasSubstr("D seen\n"));
  EXPECT_EQ(logged(Level::kInfo, [] { debug("unseen"); }), "");
}

// Each in a process of its own, which reads the variable when it writes its first line.
TEST(LogDeathTest, TheEnvironmentsLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto& [text, shown] :
       {std::pair("debug", "D 0(.|\n)*I 1(.|\n)*W 2(.|\n)*E 3"),
        {"info", "^[^D]*I 1(.|\n)*W 2(.|\n)*E 3"},
        {"warning", "^[^DI]*W 2(.|\n)*E 3"},
        {"error", "^[^DIW]*E 3"},
        {"loud", "^[^DI]*W SLUICE_LOG is 'loud': [^D]*I 1(.|\n)*W 2(.|\n)*E 3"}}) {
    ::setenv("SLUICE_LOG", text, 1);
    const auto write_and_end = [] {
      debug(0);
      info(1);
      warn(2);
      error(3);
      std::_Exit(0);
    };
    EXPECT_EXIT(write_and_end(), testing::ExitedWithCode(0), shown) << text;
  }
  ::unsetenv("SLUICE_LOG");
}

TEST(Log, LinesOfThreadsDoNotMix) {
  const std::string text = logged(Level::kInfo, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) info("0123456789012345678901234567890123456789");
      });
    }
    for (auto& thread : threads) thread.join();
  });
  int lines = 0;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    ++lines;
    EXPECT_TRUE(ends_with(line, " I 0123456789012345678901234567890123456789")) << line;
  }
  EXPECT_EQ(lines, 200);
}

}  // namespace
}  // namespace sluice::base
