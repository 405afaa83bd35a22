#include "sluice/base/formats/sha256.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace sluice::base {
namespace {

std::string sum_of(std::string_view bytes, size_t piece) {
  Sha256 hash;
  for (size_t at = 0; at < bytes.size(); at += piece) hash.add(bytes.substr(at, piece));
  return hexadecimal(hash.finish());
}

// The examples of FIPS 180-2.
TEST(Sha256, OfKnownTexts) {
  EXPECT_EQ(sum_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abc", 1), sum_of("abc", 2));
}

// A process may end while its threads hash.
TEST(Sha256, OfThreadsThatAProcessLeavesBehind) {
  const auto leave = [] {
    for (int i = 0; i < 2; ++i) {
      std::thread([] {
        while (true) sha256("abc");
      }).detach();
    }
    sha256("abc");
    std::exit(0);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "");
}

TEST(Hexadecimal, OfAllKindsOfBytes) {
  EXPECT_EQ(hexadecimal(std::string("\x00\x0f\xa0\xff", 4)), "000fa0ff");
}

}  // namespace
}  // namespace sluice::base
