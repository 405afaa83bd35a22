#include "sluice/base/files/user_folders.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice::base {
namespace {

TEST(UserFolders, FollowTheEnvironment) {
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  ::setenv("HOME", "/home/user", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(user_cache_folder(), "/home/user/.cache/sluice");
  EXPECT_EQ(user_state_folder(), "/home/user/.local/state/sluice");
  ::setenv("XDG_CACHE_HOME", "/var/cache/user", 1);
  ::setenv("XDG_STATE_HOME", "/var/state/user", 1);
  EXPECT_EQ(user_cache_folder(), "/var/cache/user/sluice");
  EXPECT_EQ(user_state_folder(), "/var/state/user/sluice");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("XDG_STATE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(user_cache_folder(), "");
  if (before != nullptr) ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace sluice::base
