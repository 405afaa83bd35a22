#include "sluice/cloud/storage.h"

#include <gmock/gmock.h>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/log.h"
#include "sluice/cloud/test_support.h"
#include "sluice/cloud/upload.h"

namespace sluice::cloud {
namespace {

using test::Reply;
using test::Request;

class StorageTest : public test::BucketTest {
 protected:
  Storage storage_{server_.address(),
                   Access{std::make_shared<Http>(test::options_with(time_)), anonymous_credentials(), true}};
};

TEST(ObjectName, IsParsed) {
  const auto name = parse_object_url("gs://bucket/a/b c.tar");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->bucket, "bucket");
  EXPECT_EQ(name->object, "a/b c.tar");
  EXPECT_EQ(name->url(), "gs://bucket/a/b c.tar");
  EXPECT_EQ(parse_object_url("gs://bucket")->object, "");
  EXPECT_EQ(parse_object_url("gs://bucket/")->object, "");
  EXPECT_FALSE(parse_object_url("gs://"));
  EXPECT_FALSE(parse_object_url("gs:///x"));
}

TEST(Glob, Matches) {
  EXPECT_TRUE(matches("a/*.tar", "a/b.tar"));
  EXPECT_FALSE(matches("a/*.tar", "a/b/c.tar"));
  EXPECT_TRUE(matches("a/**.tar", "a/b/c.tar"));
  EXPECT_TRUE(matches("a/**/c-*.tar", "a/x/y/c-1.tar"));
  EXPECT_FALSE(matches("a/**/c-*.tar", "a/x/y/c-1/2.tar"));
  EXPECT_TRUE(matches("**/x*y", "a/x/xzy"));
  EXPECT_TRUE(matches("t-?[0-9][!a].tar", "t-x5b.tar"));
  EXPECT_FALSE(matches("t-?[0-9][!a].tar", "t-x5a.tar"));
  EXPECT_FALSE(matches("t-?.tar", "t-/.tar"));
  EXPECT_TRUE(matches("[]]", "]"));
  EXPECT_TRUE(matches("[x", "[x"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("ab", "a"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a1b2b3c"));
}

TEST(Region, NearAndFar) {
  EXPECT_TRUE(is_near("us-central2", "US-CENTRAL2"));
  EXPECT_TRUE(is_near("us-central2", "US"));
  EXPECT_TRUE(is_near("us-central1", "NAM4"));
  EXPECT_TRUE(is_near("europe-west4", "EU"));
  EXPECT_TRUE(is_near("europe-west4", "EUR4"));
  EXPECT_TRUE(is_near("", "US"));
  EXPECT_FALSE(is_near("us-central2", "US-CENTRAL1"));
  EXPECT_FALSE(is_near("us-central2", "EU"));
  EXPECT_FALSE(is_near("asia-east1", "EUROPE-WEST4"));
}

TEST_F(StorageTest, NamesAreEncoded) {
  bucket_.put("a/b c+ü%.tar", "text");
  const auto facts = storage_.stat({"b", "a/b c+ü%.tar"});
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_EQ(facts->size, 4u);
  EXPECT_EQ(facts->crc32c, base::crc32c("text", 4));
  EXPECT_EQ(storage_.read_text({"b", "a/b c+ü%.tar"}).value_or("?"), "text");
}

TEST_F(StorageTest, ListsAllPages) {
  for (int i = 0; i < 7; ++i) bucket_.put(base::str("p/s-", i, ".tar"), "x");
  bucket_.put("p/deep/s-9.tar", "x");
  bucket_.put("q/s-0.tar", "x");
  const auto all = storage_.list("b", "p/");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 8u);
  EXPECT_EQ(storage_.list("b", "p/", true)->size(), 7u);
  const auto some = storage_.glob("gs://b/p/s-[0-3].tar");
  ASSERT_TRUE(some) << some.error().what();
  EXPECT_EQ(*some, (std::vector<std::string>{"gs://b/p/s-0.tar", "gs://b/p/s-1.tar", "gs://b/p/s-2.tar",
                                             "gs://b/p/s-3.tar"}));
  EXPECT_EQ(storage_.glob("gs://b/**.tar")->size(), 9u);
  const auto none = storage_.glob("gs://b/p/*.zip");
  ASSERT_FALSE(none);
  EXPECT_NE(
      std::string(none.error().what()).find("no object matches 'gs://b/p/*.zip' (7 begin with 'gs://b/p/')"),
      std::string::npos)
      << none.error().what();
}

TEST_F(StorageTest, Uploads) {
  UploadOptions options;
  options.chunk_bytes = 256 << 10;
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  for (const std::size_t size : {0, 1, 262'143, 262'144, 262'145, 1'000'000}) {
    const std::string bytes = test::random_bytes(size);
    base::value_or_throw(base::write_file_atomically(folder.path("f"), bytes));
    const auto facts = storage_.upload_file(folder.path("f"), {"b", "x"}, options);
    ASSERT_TRUE(facts) << facts.error().what();
    EXPECT_EQ(facts->size, size);
    EXPECT_TRUE(bucket_.get("x")->bytes == bytes);
    ASSERT_TRUE(storage_.upload_text(bytes, {"b", "y"}, options));
    EXPECT_TRUE(bucket_.get("y")->bytes == bytes);
  }
}

TEST_F(StorageTest, UploadsOnCondition) {
  UploadOptions options;
  options.if_generation = "0";
  ASSERT_TRUE(storage_.upload_text("one", {"b", "x"}, options));
  const auto again = storage_.upload_text("two", {"b", "x"}, options);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kFailedPrecondition);
  options.if_generation = storage_.stat({"b", "x"})->generation;
  ASSERT_TRUE(storage_.upload_text("two", {"b", "x"}, options));
  EXPECT_EQ(bucket_.get("x")->bytes, "two");
}

// Every request of an upload fails once, before or after the server took it in.
TEST_F(StorageTest, UploadsSurviveFailures) {
  UploadOptions options;
  options.chunk_bytes = 256 << 10;
  const std::string bytes = test::random_bytes(700'000);
  for (int broken = 0; broken < 4; ++broken)
    for (const bool taken : {false, true}) {
      if (broken == 0 && taken) continue;  // only begins a session that is not used
      int count = 0;
      set_fault([&](const Request& request) -> std::optional<Reply> {
        if (request.method == "DELETE" || count++ != broken) return std::nullopt;
        if (!taken) return Reply{503};
        (void)bucket_(request);
        Reply reply{200, {}, "lost"};
        reply.cut_after = 0;
        return reply;
      });
      const auto facts = storage_.upload_text(bytes, {"b", "x"}, options);
      if (broken == 3 && taken) {
        // The answer to the last chunk was lost and the session is gone with it: begun again.
        ASSERT_TRUE(facts) << facts.error().what();
      }
      ASSERT_TRUE(facts) << facts.error().what() << " request " << broken << " taken " << taken;
      EXPECT_TRUE(bucket_.get("x")->bytes == bytes);
    }
}

TEST_F(StorageTest, AChunkThatIsTakenInPartIsContinued) {
  const std::string bytes = test::random_bytes(600'000);
  bool cut = false;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.method != "PUT" || cut) return std::nullopt;
    cut = true;
    Request part = request;
    part.body = request.body.substr(0, 262'144);
    part.headers["content-range"] = "bytes 0-262143/*";
    return bucket_(part);
  });
  const auto facts = storage_.upload_text(bytes, {"b", "x"});
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_TRUE(bucket_.get("x")->bytes == bytes);
}

TEST_F(StorageTest, ADamagedUploadIsRemoved) {
  bucket_.damage_uploads();
  const auto facts = storage_.upload_text("text", {"b", "x"});
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code(), Code::kDataLoss);
  EXPECT_NE(std::string(facts.error().what()).find("arrived damaged"), std::string::npos);
  EXPECT_FALSE(bucket_.get("x"));
}

TEST_F(StorageTest, ADroppedUploadLeavesNothing) {
  {
    const auto upload = storage_.start_upload({"b", "x"});
    ASSERT_TRUE(upload);
    ASSERT_TRUE((*upload)->write("text"));
  }
  EXPECT_FALSE(bucket_.get("x"));
}

TEST_F(StorageTest, CopiesAndRemoves) {
  bucket_.put("x", "text");
  const auto facts = storage_.copy({"b", "x"}, {"c", "d/y"});
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_EQ(bucket_.get("d/y")->bytes, "text");
  ASSERT_TRUE(storage_.remove({"b", "x"}));
  EXPECT_FALSE(bucket_.get("x"));
  EXPECT_EQ(storage_.remove({"b", "x"}).error().code(), Code::kNotFound);
}

TEST_F(StorageTest, ComposesBehindWhatIsThere) {
  bucket_.put("x/log", "one\n");
  bucket_.put("x/log.part", "two\n");
  UploadOptions options;
  options.if_generation = storage_.stat({"b", "x/log"})->generation;
  const std::vector<ObjectFacts> parts = {{.name = "x/log"}, {.name = "x/log.part"}};
  const auto facts = storage_.compose(parts, {"b", "x/log"}, options);
  ASSERT_TRUE(facts) << facts.error().what();
  EXPECT_EQ(facts->size, 8U);
  EXPECT_EQ(bucket_.get("x/log")->bytes, "one\ntwo\n");
  // The generation is another now.
  EXPECT_EQ(storage_.compose(parts, {"b", "x/log"}, options).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(storage_.compose({{.name = "y"}}, {"b", "x/log"}).error().code(), Code::kNotFound);
  ObjectFacts log{.name = "x/log", .generation = *options.if_generation};
  EXPECT_EQ(storage_.compose({log}, {"b", "z"}).error().code(), Code::kFailedPrecondition);
  log.generation = facts->generation;
  // An emulator that knows the request by its "destination" drops it else.
  std::string body;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.path.ends_with("/compose")) body = request.body;
    return std::nullopt;
  });
  EXPECT_TRUE(storage_.compose({log}, {"b", "z"}));
  EXPECT_NE(body.find(R"("destination":{"contentType")"), std::string::npos) << body;
}

TEST_F(StorageTest, TheRequesterPaysWhenItIsNamed) {
  bucket_.put("x", "text");
  set_fault([](const Request& request) -> std::optional<Reply> {
    if (request.header("x-goog-user-project") == "payer") return std::nullopt;
    return Reply{
        400,
        {},
        R"({"error":{"message":"Bucket is a requester pays bucket but no user project provided."}})"};
  });
  const auto unpaid = storage_.read_text({"b", "x"});
  ASSERT_FALSE(unpaid);
  EXPECT_NE(std::string(unpaid.error().what()).find("in GOOGLE_CLOUD_QUOTA_PROJECT"), std::string::npos)
      << unpaid.error().what();
  Access access = storage_.access();
  access.payer = "payer";
  const Storage paying(server_.address(), access);
  EXPECT_EQ(paying.read_text({"b", "x"}).value_or(""), "text");
  EXPECT_EQ(test::read_all(paying.find({"b", "x"})).value_or(""), "text");
  EXPECT_TRUE(paying.upload_text("more", {"b", "y"}));
  EXPECT_TRUE(paying.copy({"b", "x"}, {"b", "z"}));
}

TEST_F(StorageTest, StandInsOfTheEnvironment) {
  bucket_.put("x", "text");
  const auto http = std::make_shared<Http>(test::options_with(time_));
  const auto stat = [&]() -> base::Result<ObjectFacts> {
    SLUICE_TRY(const auto storage, Storage::of_environment(http));
    return storage->stat({"b", "x"});
  };
  const test::Environment emulator("STORAGE_EMULATOR_HOST", "");
  {
    const test::Environment google("SLUICE_GOOGLE_ENDPOINT", server_.address() + "/");
    EXPECT_EQ(stat().value().size, 4u);
    // The emulator of this one service comes first.
    const test::Environment other("STORAGE_EMULATOR_HOST", "127.0.0.1:1");
    EXPECT_FALSE(stat());
  }
  for (const char* elsewhere : {"http://example.com", "https://127.0.0.1:1", "http://127.0.0.1:1/path",
                                "http://127.0.0.1@example.com", "127.0.0.1:1"}) {
    const test::Environment google("SLUICE_GOOGLE_ENDPOINT", elsewhere);
    EXPECT_THAT(stat().error().what(), testing::HasSubstr("expected a server on this machine")) << elsewhere;
  }
  for (const char* wrong : {"::1:9023", "[::1", "http://a b:1"}) {
    const test::Environment no_host("STORAGE_EMULATOR_HOST", wrong);
    EXPECT_THAT(stat().error().what(), testing::HasSubstr("expected [http://]HOST:PORT, with brackets"))
        << wrong;
  }
}

TEST_F(StorageTest, AnotherRegionIsOneWarning) {
  set_fault([](const Request& request) -> std::optional<Reply> {
    if (request.path == "/computeMetadata/v1/instance/zone")
      return Reply{200, {}, "projects/1/zones/us-central2-b"};
    if (request.path == "/storage/v1/b/far") return Reply{200, {}, R"({"location":"EUROPE-WEST4"})"};
    return std::nullopt;
  });
  const test::Environment host("GCE_METADATA_HOST", server_.address().substr(7));
  base::set_log_level(base::Level::kInfo);
  testing::internal::CaptureStderr();
  storage_.warn_of_region("far");
  storage_.warn_of_region("far");
  const std::string log = testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("gs://far is in EUROPE-WEST4, this machine in us-central2");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("gs://far is in", first + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace sluice::cloud
