// Logs in a bucket of the test's own process.
#include "sluice/provision/remote/log_bucket.h"

#include <gmock/gmock.h>

#include <fstream>
#include <mutex>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/cloud/test_support.h"

namespace sluice::provision {
namespace {

using cloud::test::Reply;
using cloud::test::Request;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogBucketTest : public cloud::test::BucketTest {
 protected:
  void write(int from, int to) {
    std::ofstream file(folder_.path("worker-0.log"), std::ios::app);
    for (int line = from; line < to; ++line) file << "line " << line << '\n';
  }
  std::string text() const { return base::value_or_throw(base::read_file(folder_.path("worker-0.log"))); }
  std::string copied() const {
    return bucket_.get("logs/worker-0.log").value_or(cloud::test::Bucket::Object{}).bytes;
  }
  LogBucket copier() { return {storage_, folder_.path(), {"b", "logs"}}; }

  const base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  cloud::Storage storage_{server_.address(),
                          cloud::Access{std::make_shared<cloud::Http>(cloud::test::options_with(time_)),
                                        cloud::anonymous_credentials(), true}};
};

TEST_F(LogBucketTest, ALogGrows) {
  LogBucket copier = this->copier();
  ASSERT_TRUE(copier.copy());  // no log yet
  write(0, 10);
  ASSERT_TRUE(copier.copy());
  write(10, 30);
  ASSERT_TRUE(copier.copy());
  EXPECT_EQ(copied(), text());
  EXPECT_THAT(bucket_.names(), ElementsAre("logs/worker-0.log"));
}

TEST_F(LogBucketTest, SeveralCopyAtOnce) {
  write(0, 1);
  std::vector<std::thread> copiers;
  std::mutex mutex;
  std::vector<std::string> failed;
  for (int n = 0; n < 3; ++n)
    copiers.emplace_back([&] {
      LogBucket one = copier();
      for (int round = 0; round < 40; ++round)
        if (const auto done = one.copy(); !done) {
          const std::scoped_lock lock(mutex);
          failed.push_back(done.error().what());
        }
    });
  for (int n = 1; n < 200; ++n) {
    write(n, n + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (auto& one : copiers) one.join();
  EXPECT_THAT(failed, IsEmpty());
  LogBucket last = copier();
  ASSERT_TRUE(last.copy());
  EXPECT_EQ(copied(), text());
  EXPECT_THAT(bucket_.names(), ElementsAre("logs/worker-0.log"));
}

TEST_F(LogBucketTest, AnAnswerIsLost) {
  LogBucket copier = this->copier();
  int composed = 0;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (!request.path.ends_with("/compose") || composed++ > 0) return std::nullopt;
    bucket_(request);
    return Reply{503};
  });
  write(0, 10);
  ASSERT_TRUE(copier.copy());
  write(10, 20);
  const auto status = copier.copy();
  ASSERT_TRUE(status) << status.error().what();
  EXPECT_EQ(composed, 2);
  EXPECT_EQ(copied(), text());
  EXPECT_THAT(bucket_.names(), ElementsAre("logs/worker-0.log"));
}

// The same bucket as a store that cannot put objects behind each other.
class WholeObjects : public cloud::Store {
 public:
  explicit WholeObjects(const cloud::Store& store) : store_(store) {}
  base::Result<cloud::ObjectFacts> stat(const cloud::ObjectName& name,
                                        const std::atomic<bool>* cancelled) const override {
    return store_.stat(name, cancelled);
  }
  base::Result<std::vector<cloud::ObjectFacts>> list(const std::string& bucket, const std::string& prefix,
                                                     bool flat) const override {
    return store_.list(bucket, prefix, flat);
  }
  base::Result<cloud::Remote> find(const cloud::ObjectName& name,
                                   const std::atomic<bool>* cancelled) const override {
    return store_.find(name, cancelled);
  }
  base::Result<std::string> read_text(const cloud::ObjectName& name) const override {
    return store_.read_text(name);
  }
  base::Result<std::unique_ptr<cloud::Upload>> start_upload(
      const cloud::ObjectName& name, const cloud::UploadOptions& options) const override {
    return store_.start_upload(name, options);
  }
  base::Result<cloud::ObjectFacts> copy(const cloud::ObjectName& from, const cloud::ObjectName& to,
                                        const cloud::UploadOptions& options) const override {
    return store_.copy(from, to, options);
  }
  base::Status remove(const cloud::ObjectName& name, const std::string& generation) const override {
    return store_.remove(name, generation);
  }

 private:
  const cloud::Store& store_;
};

TEST_F(LogBucketTest, ElsewhereAWholeLogGoesUpWhenItHasGrown) {
  const WholeObjects store(storage_);
  LogBucket one(store, folder_.path(), {"b", "logs"}), other(store, folder_.path(), {"b", "logs"});
  write(0, 20'000);
  ASSERT_TRUE(one.copy(false));
  EXPECT_EQ(copied(), text());
  const std::string before = text();
  write(20'000, 21'000);  // a twentieth
  ASSERT_TRUE(one.copy(false));
  EXPECT_EQ(copied(), before);
  ASSERT_TRUE(other.copy());
  EXPECT_EQ(copied(), text());
  write(21'000, 26'000);
  ASSERT_TRUE(one.copy(false));  // which sees that the other was quicker
  EXPECT_EQ(copied(), text());
  write(26'000, 26'001);
  ASSERT_TRUE(other.copy());
  EXPECT_EQ(copied(), text());
  EXPECT_THAT(bucket_.names(), ElementsAre("logs/worker-0.log"));
}

// A log in several files (--log-size): what was sent is not sent again, and what is removed here stays there.
TEST_F(LogBucketTest, AFileThatIsCompleteDoesNotWait) {
  const WholeObjects store(storage_);
  LogBucket copier(store, folder_.path(), {"b", "logs"});
  write(0, 20'000);
  ASSERT_TRUE(copier.copy(false));
  write(20'000, 20'100);
  const std::string first = text();
  ASSERT_TRUE(copier.copy(false));
  EXPECT_NE(copied(), first);
  const std::string second = "worker-0.from-000000000300000.log", third = "worker-0.from-000000000400000.log";
  base::value_or_throw(base::write_file_atomically(folder_.path(second), "second\n"));
  ASSERT_TRUE(copier.copy(false));
  EXPECT_EQ(copied(), first);
  base::value_or_throw(base::write_file_atomically(folder_.path(third), "third\n"));
  base::value_or_throw(base::remove_file(folder_.path(second)));
  std::size_t sent = 0;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    sent += request.body.size();
    return std::nullopt;
  });
  ASSERT_TRUE(copier.copy(false));
  EXPECT_LT(sent, 1000U);
  EXPECT_THAT(bucket_.names(), ElementsAre("logs/" + second, "logs/" + third, "logs/worker-0.log"));
}

TEST(LogTarget, BucketsOfThreeStores) {
  EXPECT_EQ(log_target("gs://b", "r")->url(), "gs://b/r");
  EXPECT_EQ(log_target("s3://b/p/", "r")->url(), "s3://b/p/r");
  EXPECT_EQ(log_target("az://a/c/p", "r")->url(), "az://a/c/p/r");
  for (const char* wrong : {"hf://o/n", "/tmp/logs", "gs://"})
    EXPECT_THAT(log_target(wrong, "r").error().what(), testing::HasSubstr("expected gs://BUCKET/PREFIX"))
        << wrong;
}

TEST_F(LogBucketTest, WhatIsThereAndLongerIsReplaced) {
  bucket_.put("logs/worker-0.log", std::string(10'000, 'x'));
  write(0, 10);
  LogBucket copier = this->copier();
  ASSERT_TRUE(copier.copy());
  EXPECT_EQ(copied(), text());
}

}  // namespace
}  // namespace sluice::provision
