// What needs no server. Signatures, transfers and failures: tests/stores, with signers that others wrote.
#include <gtest/gtest.h>

#include "sluice/cloud/checksum.h"
#include "sluice/cloud/store.h"
#include "sluice/cloud/stores/rest.h"

namespace sluice::cloud {
namespace {

std::string digest(ChecksumKind kind, std::string_view text, std::size_t cut) {
  Digest digest(kind);
  digest.add(text.data(), cut);
  digest.add(text.data() + cut, text.size() - cut);
  return digest.value();
}

TEST(Checksums, OfTheCheckString) {
  // "123456789" is what the catalogues of CRCs give values of; the digests are sha256sum's and md5sum's.
  for (std::size_t cut : {0, 1, 8, 9}) {
    EXPECT_EQ(digest(ChecksumKind::kCrc32, "123456789", cut), "cbf43926");
    EXPECT_EQ(digest(ChecksumKind::kCrc64Nvme, "123456789", cut), "ae8b14860a799888");
    EXPECT_EQ(digest(ChecksumKind::kMd5, "123456789", cut), "25f9e794323b453885f5181f1b624d0b");
    EXPECT_EQ(digest(ChecksumKind::kSha256, "123456789", cut),
              "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
  }
}

TEST(Checksums, Base64) {
  EXPECT_EQ(hexadecimal_of_base64("y/Q5Jg=="), "cbf43926");
  EXPECT_EQ(hexadecimal_of_base64("y/Q5Jg==-2"), "");
  EXPECT_EQ(hexadecimal_of_base64(""), "");
  EXPECT_EQ(base64(reinterpret_cast<const unsigned char*>("\xcb\xf4\x39\x26"), 4), "y/Q5Jg==");
}

TEST(ObjectNames, OfEachStore) {
  const auto parsed = [](const std::string& url) {
    const auto name = parse_object_url(url);
    return name ? name->bucket + "|" + name->object : std::string("error");
  };
  EXPECT_EQ(parsed("gs://b/x/y"), "b|x/y");
  EXPECT_EQ(parsed("s3://b"), "b|");
  EXPECT_EQ(parsed("s3://b/"), "b|");
  EXPECT_EQ(parsed("az://account/container/x/y"), "account/container|x/y");
  EXPECT_EQ(parsed("az://account/container"), "account/container|");
  EXPECT_EQ(parsed("hf://datasets/o/n@v1/a/b.tar"), "datasets/o/n@v1|a/b.tar");
  EXPECT_EQ(parsed("hf://o/n/model.safetensors"), "o/n|model.safetensors");
  for (const char* wrong :
       {"gs://", "s3:///x", "az://account", "az://account/", "hf://datasets/o", "file://x", "s3:/b"})
    EXPECT_EQ(parsed(wrong), "error") << wrong;
  EXPECT_EQ(parse_object_url("az://a/c/x")->beside("y").url(), "az://a/c/y");
}

TEST(ServiceErrors, CodeAndMessage) {
  const auto error =
      service_error("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>gone</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "gone");
  EXPECT_EQ(service_error("<html>").code, "");
  EXPECT_EQ(service_error("").code, "");
  HttpResponse response;
  response.status = 403;
  response.body = "<Error><Code>AccessDenied</Code><Message>no\nRequestId:1</Message></Error>";
  EXPECT_EQ(std::string(service_status_error(response, "x").what()),
            "x: the server answered with status 403: AccessDenied: no");
}

TEST(Percent, ThereAndBack) {
  EXPECT_EQ(percent_encode_path("a b/c+d/é"), "a%20b/c%2Bd/%C3%A9");
  EXPECT_EQ(percent_decode("a%20b/c%2Bd/%C3%A9%"), "a b/c+d/é%");
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
}

}  // namespace
}  // namespace sluice::cloud
