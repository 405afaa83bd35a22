#include "sluice/base/formats/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/random.h"

namespace sluice::base {
namespace {

std::string random_bytes(size_t size) {
  Random random({7, size});
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, InstructionAndTablesAgree) {
  const std::string bytes = random_bytes(70'001);
  for (const size_t size : {0, 1, 7, 8, 9, 4095, 12'287, 12'288, 12'289, 24'583, 70'000})
    for (const size_t start : {0, 1, 5})
      if (start + size <= bytes.size()) {
        EXPECT_EQ(crc32c(bytes.data() + start, size, 99), crc32c_portable(bytes.data() + start, size, 99))
            << size << " bytes from " << start;
      }
}

TEST(Crc32c, PartsCombine) {
  const std::string bytes = random_bytes(50'000);
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (const size_t cut : {0, 1, 255, 12'288, 49'999, 50'000}) {
    const uint32_t first = crc32c(bytes.data(), cut);
    const uint32_t second = crc32c(bytes.data() + cut, bytes.size() - cut);
    EXPECT_EQ(crc32c_combine(first, second, bytes.size() - cut), whole) << cut;
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, first), whole) << cut;
  }
}

}  // namespace
}  // namespace sluice::base
