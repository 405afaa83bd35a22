// For tests: compares a program's text with a file.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::stablehlo::testing {

// Fails unless `path` holds this text. SLUICE_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::filesystem::path& path, const std::string& text) {
  const char* wish = std::getenv("SLUICE_UPDATE_GOLDEN");
  if (wish != nullptr && std::string(wish) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; SLUICE_UPDATE_GOLDEN=1 writes it";
  std::stringstream recorded;
  recorded << file.rdbuf();
  EXPECT_EQ(text, recorded.str()) << "SLUICE_UPDATE_GOLDEN=1 rewrites " << path;
}

}  // namespace sluice::stablehlo::testing
