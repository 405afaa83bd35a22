// Logs that grow, in a bucket of the test's own process. S3 and Azure: tests/stores.
#include "sluice/cloud/stores/growing_object.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <functional>

#include "sluice/base/files/file.h"
#include "sluice/cloud/storage.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

using test::Reply;
using test::Request;

class GrowingObjectTest : public test::BucketTest {
 protected:
  GrowingObjectTest() {
    set_fault([this](const Request& request) -> std::optional<Reply> {
      if (refuses_compose_ && request.path.ends_with("/compose")) return Reply{501};
      sent_bytes_ += request.body.size();
      if (request.path.ends_with("/compose")) ++composed_;
      return std::nullopt;
    });
  }
  void write(const std::string& bytes) { std::ofstream(path_, std::ios::app | std::ios::binary) << bytes; }
  base::Status send(GrowingObject& object) {
    SLUICE_TRY(const auto size, base::file_size(path_));
    return object.send(path_, size);
  }
  // Sends if it is due, as every 30 seconds.
  base::Status look(GrowingObject& object) {
    SLUICE_TRY(const auto size, base::file_size(path_));
    SLUICE_TRY(const bool due, object.is_due(path_, size));
    time_.advance(30);
    return due ? object.send(path_, size) : base::Status();
  }
  // A new log of `size` bytes in so many pieces, each of which `look` sees. Returns the bytes that were sent.
  double bytes_sent(std::size_t size, std::size_t pieces, const std::function<void()>& look_at_it) {
    base::value_or_throw(base::remove_file(path_));
    sent_bytes_ = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
      write(test::random_bytes(size / pieces, i));
      look_at_it();
    }
    return static_cast<double>(sent_bytes_);
  }
  GrowingObject object() { return {storage_, {"b", "run/events.out.tfevents.1"}, time_.clock().now}; }
  GrowingObject copier() {
    return {storage_, {"b", "run/events.out.tfevents.1"}, time_.clock().now, Writers::kCopiers};
  }
  std::string stored() const {
    return bucket_.get("run/events.out.tfevents.1").value_or(test::Bucket::Object{}).bytes;
  }
  std::string text() const { return base::value_or_throw(base::read_file(path_)); }

  std::atomic<bool> refuses_compose_{false};
  std::atomic<std::size_t> sent_bytes_{0};
  std::atomic<int> composed_{0};
  const base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  const std::string path_ = folder_.path("log");
  Storage storage_{server_.address(),
                   Access{std::make_shared<Http>(test::options_with(time_)), anonymous_credentials(), true}};
};

// Bytes on their way grow with the file, not with the number of pieces: p = 1 of bytes ~ pieces^0 * size.
TEST_F(GrowingObjectTest, EachByteIsSentOnce) {
  constexpr std::size_t kSize = 1'000'000;
  for (const std::size_t pieces : {10, 100}) {
    GrowingObject object = this->object();
    const double sent = bytes_sent(kSize, pieces, [&] {
      base::value_or_throw(look(object));
      EXPECT_TRUE(stored() == text());
    });
    EXPECT_LT(sent, 1.1 * kSize) << pieces << " pieces";
    EXPECT_THAT(bucket_.names(), testing::ElementsAre("run/events.out.tfevents.1"));
  }
}

TEST_F(GrowingObjectTest, AFileThatWasReplacedOrTruncatedIsSentWhole) {
  GrowingObject object = this->object();
  write("one, two");
  ASSERT_TRUE(send(object));
  ASSERT_TRUE(base::write_file_atomically(path_, "another file, longer"));
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), text());
  std::ofstream(path_, std::ios::trunc) << "short";
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), "short");
  std::ofstream(path_, std::ios::trunc) << "the same file, but other bytes in place of its first ones";
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), text());
  EXPECT_EQ(composed_, 0);
  write(", and more");
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), text());
  EXPECT_EQ(composed_, 1);
}

TEST_F(GrowingObjectTest, BytesOfTwoWritersAreNotMixed) {
  GrowingObject object = this->object();
  write("mine 1\n");
  ASSERT_TRUE(send(object));
  bucket_.put("run/events.out.tfevents.1", "theirs 1\n");
  write("mine 2\n");
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), "mine 1\nmine 2\n");
}

// A piece is sent by each copier at most, however many pieces there are, and neither replaces the other's.
TEST_F(GrowingObjectTest, TwoCopiersOfOneLog) {
  constexpr std::size_t kSize = 1'000'000;
  for (const std::size_t pieces : {10, 100}) {
    (void)storage_.remove({"b", "run/events.out.tfevents.1"}, "");
    GrowingObject one = copier(), other = copier();
    const double sent = bytes_sent(kSize, pieces, [&] {
      base::value_or_throw(look(one));
      base::value_or_throw(look(other));
      EXPECT_TRUE(stored() == text());
    });
    EXPECT_LT(sent, 2.3 * kSize) << pieces << " pieces";
  }
}

TEST_F(GrowingObjectTest, AnAnswerThatIsLostIsFound) {
  GrowingObject object = this->object();
  write("one ");
  ASSERT_TRUE(send(object));
  bool lost = false;
  std::size_t whole = 0;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.method == "PUT" && request.body.size() > 4) ++whole;
    if (!request.path.ends_with("/compose") || lost) return std::nullopt;
    lost = true;
    bucket_(request);
    return Reply{503};
  });
  write("two ");
  ASSERT_TRUE(send(object));
  write("six ");
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), "one two six ");
  EXPECT_TRUE(lost);
  EXPECT_EQ(whole, 0U);
}

TEST_F(GrowingObjectTest, AFetchedFileIsContinued) {
  bucket_.put("run/events.out.tfevents.1", "fetched ");
  const ObjectName name{"b", "run/events.out.tfevents.1"};
  const auto facts = base::value_or_throw(storage_.stat(name));
  write("fetched ");
  GrowingObject object = this->object();
  ASSERT_TRUE(object.adopt(path_, facts));
  write("more");
  ASSERT_TRUE(send(object));
  EXPECT_EQ(stored(), "fetched more");
  EXPECT_EQ(composed_, 1);
  // Another content than the facts': the whole file is sent.
  ASSERT_TRUE(base::write_file_atomically(path_, "FETCHED more"));
  GrowingObject other = this->object();
  ASSERT_TRUE(other.adopt(path_, base::value_or_throw(storage_.stat(name))));
  write(" yet");
  ASSERT_TRUE(send(other));
  EXPECT_EQ(stored(), "FETCHED more yet");
  EXPECT_EQ(composed_, 1);
}

// Whole files at growing intervals: bytes ~ size * log(pieces).
TEST_F(GrowingObjectTest, AStoreThatCannotAppendGetsWholeFilesSeldom) {
  const test::Quiet quiet;
  refuses_compose_ = true;
  constexpr std::size_t kSize = 2'000'000;
  std::vector<double> sent;
  for (const std::size_t pieces : {100, 400}) {
    GrowingObject object = this->object();
    sent.push_back(bytes_sent(kSize, pieces, [&] { base::value_or_throw(look(object)); }) / kSize);
    ASSERT_TRUE(send(object));
    EXPECT_TRUE(stored() == text());
  }
  EXPECT_LT(sent[0], 12);  // 50 times the size if each piece brought the whole file
  EXPECT_LT(sent[1], 12);  // 200 times
}

}  // namespace
}  // namespace sluice::cloud
