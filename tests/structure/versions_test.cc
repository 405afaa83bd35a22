// The headers of every third-party library are of the version that is loaded, also beside LibTorch, which
// ships headers and symbols of some of them.
#include <curl/curl.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#include <spng.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <string>
// libjpeg's header wants <cstdio> before it.
#include <jpeglib.h>

namespace {

TEST(Versions, Zlib) { EXPECT_STREQ(zlibVersion(), ZLIB_VERSION); }

TEST(Versions, Zstd) { EXPECT_EQ(ZSTD_versionNumber(), static_cast<unsigned>(ZSTD_VERSION_NUMBER)); }

TEST(Versions, Spng) {
  const std::string header = std::to_string(SPNG_VERSION_MAJOR) + "." + std::to_string(SPNG_VERSION_MINOR) +
                             "." + std::to_string(SPNG_VERSION_PATCH);
  EXPECT_EQ(spng_version_string(), header);
}

TEST(Versions, Nghttp2) { EXPECT_EQ(nghttp2_version(0)->version_num, NGHTTP2_VERSION_NUM); }
TEST(Versions, Curl) { EXPECT_STREQ(curl_version_info(CURLVERSION_NOW)->version, LIBCURL_VERSION); }

TEST(Versions, OpenSsl) {
  EXPECT_EQ(OPENSSL_version_major(), static_cast<unsigned>(OPENSSL_VERSION_MAJOR));
  EXPECT_EQ(OPENSSL_version_minor(), static_cast<unsigned>(OPENSSL_VERSION_MINOR));
  EXPECT_EQ(OPENSSL_version_patch(), static_cast<unsigned>(OPENSSL_VERSION_PATCH));
}

// The library has no version to ask for; creating a decompressor checks the header's version and the size of
// its structure, and calls error_exit when either differs.
TEST(Versions, Jpeg) {
  jpeg_error_mgr errors;
  jpeg_decompress_struct decompressor;
  decompressor.err = jpeg_std_error(&errors);
  static bool refused;
  refused = false;
  errors.error_exit = [](j_common_ptr) {
    refused = true;
    throw 0;
  };
  try {
    jpeg_CreateDecompress(&decompressor, JPEG_LIB_VERSION, sizeof(decompressor));
    jpeg_destroy_decompress(&decompressor);
  } catch (int) {
  }
  EXPECT_FALSE(refused);
}

}  // namespace
