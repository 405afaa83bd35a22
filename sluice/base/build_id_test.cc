#include "sluice/base/build_id.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "sluice/base/files/file.h"

namespace sluice::base {
namespace {

TEST(BuildId, IsThatOfTheFile) {
  const std::string& id = build_id();
  EXPECT_GE(id.size(), 8u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_EQ(&id, &build_id());
  // The linker's note lies in the file as it lies in memory.
  std::string bytes;
  for (size_t i = 0; i < id.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16)));
  const auto file = read_file("/proc/self/exe");
  ASSERT_TRUE(file);
  EXPECT_NE(file->find(std::string("GNU\0", 4) + bytes), std::string::npos);
}

}  // namespace
}  // namespace sluice::base
