#include "sluice/base/text/shown_url.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(ShownUrls, WithoutSignaturesAndPasswords) {
  EXPECT_EQ(shown_urls("https://a.blob.core.windows.net/c/x.tar?sv=1&sig=hush"),
            "https://a.blob.core.windows.net/c/x.tar");
  EXPECT_EQ(shown_urls("http://me:hush@host:80/a/b"), "http://host:80/a/b");
  EXPECT_EQ(shown_urls("HTTPS://me:h@sh@host?X-Amz-Signature=hush"), "HTTPS://host");
  EXPECT_EQ(shown_urls("train=[\"https://h/{0..9}.tar?X-Goog-Signature=hush\", \"gs://b/x?.tar\"]\nseed=1"),
            "train=[\"https://h/{0..9}.tar\", \"gs://b/x?.tar\"]\nseed=1");
  EXPECT_EQ(shown_urls("pipe:curl 'https://h/a?sig=hush' | cat"), "pipe:curl 'https://h/a' | cat");
  EXPECT_EQ(shown_urls("GET https://h/a?sig=hush: reset; https://h/b?sig=hush"),
            "GET https://h/a reset; https://h/b");
  // An address in the query of another one goes with it.
  EXPECT_EQ(shown_urls("http://h/?next=https://me:hush@g/"), "http://h/");
}

TEST(ShownUrls, LeaveTheRestAsItIs) {
  for (const char* text : {"", "://", "http://", "no address? none", "/a/b?c", "s3://b/k?e@y",
                           "hf://datasets/o/n@v1/a", "https://h/a@b/c", "a http://h b", "http://h/a#part"})
    EXPECT_EQ(shown_urls(text), text);
}

}  // namespace
}  // namespace sluice::base
