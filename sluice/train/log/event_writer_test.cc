#include "sluice/train/log/event_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"

namespace sluice::train {
namespace {

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);  // the check value of the CRC's own definition
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
}

TEST(EventWriter, FramesEachEventAndStartsWithTheVersion) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  auto writer = base::value_or_throw(EventWriter::create(folder.path("logs")));
  ASSERT_TRUE(writer.scalar("Loss", 0.25, 300, 1000.5));
  const std::string bytes = base::value_or_throw(base::read_file(writer.path()));
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t length_crc = 0, crc = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&length_crc, &bytes[at + 8], 4);
    EXPECT_EQ(length_crc, masked_crc32c(bytes.substr(at, 8)));
    ASSERT_LE(at + 16 + length, bytes.size());
    events.push_back(bytes.substr(at + 12, length));
    std::memcpy(&crc, &bytes[at + 12 + length], 4);
    EXPECT_EQ(crc, masked_crc32c(events.back()));
    at += 16 + length;
  }
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  // Of TensorFlow's event.proto: session_log is field 7, with the status START (1) in field 1; step 0 is left
  // out or written as such.
  EXPECT_TRUE(base::ends_with(events[1], std::string("\x3a\x02\x08\x01", 4)));
  // wall 1000.5 (field 1, fixed64), step 300 (field 2, varint), summary (field 5) of one value with tag and
  // float.
  const char expected[] =
      "\x09\0\0\0\0\0\x44\x8f\x40"
      "\x10\xac\x02"
      "\x2a\x0d\x0a\x0b\x0a\x04Loss\x15\0\0\x80\x3e";
  EXPECT_EQ(events[2], std::string(expected, sizeof expected - 1));
}

// TensorBoard reads a folder's files in the order of their names.
TEST(EventWriter, FilesOfOneSecondAreInTheOrderOfTheirStarts) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i)
    paths.push_back(base::value_or_throw(EventWriter::create(folder.path())).path());
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
}

TEST(EventWriter, AFolderThatCannotBeIsAnError) {
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  ASSERT_TRUE(base::write_file_atomically(folder.path("file"), "x"));
  EXPECT_FALSE(EventWriter::create(folder.path("file")));
}

}  // namespace
}  // namespace sluice::train
