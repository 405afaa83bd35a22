#include "sluice/base/formats/proto_writer.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

// Bytes from the encoding's own documentation: field 1 = 150, field 2 = "testing".
TEST(ProtoWriter, WritesWhatTheFormatsDocumentationShows) {
  EXPECT_EQ(ProtoWriter().number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().bytes(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoWriter().bytes(3, ProtoWriter().number(1, 150).bytes()).bytes(), "\x1a\x03\x08\x96\x01");
}

TEST(ProtoWriter, NegativeNumbersTakeTenBytes) {
  EXPECT_EQ(ProtoWriter().number(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(ProtoWriter, FixedWordsAreLittleEndian) {
  EXPECT_EQ(ProtoWriter().real32(2, 1.0f).bytes(), std::string("\x15\x00\x00\x80\x3f", 5));
  EXPECT_EQ(ProtoWriter().real(1, 1.0).bytes(), std::string("\x09\x00\x00\x00\x00\x00\x00\xf0\x3f", 9));
  EXPECT_EQ(ProtoWriter().real(16, 0.0).bytes(), std::string("\x81\x01\x00\x00\x00\x00\x00\x00\x00\x00", 10));
}

}  // namespace
}  // namespace sluice::base
