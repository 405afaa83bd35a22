#include "sluice/cloud/object_reader.h"

#include "sluice/base/formats/crc32c.h"
#include "sluice/cloud/test_support.h"

namespace sluice::cloud {
namespace {

using test::Reply;
using test::Request;

bool is_media(const Request& request) { return request.parameter("alt") == "media"; }

class ObjectReaderTest : public test::BucketTest {
 protected:
  base::Result<Remote> find(const std::string& name, double stall_timeout = 0.2) {
    HttpOptions options = test::options_with(time_);
    options.stall_timeout = stall_timeout;
    storage_.emplace(server_.address(),
                     Access{std::make_shared<Http>(options), anonymous_credentials(), true});
    return storage_->find(ObjectName{"b", name});
  }
  // What reading "x" with small ranges gives.
  base::Result<std::string> read(const ReadOptions& options = small()) {
    return test::read_all(find("x"), options);
  }
  static ReadOptions small() {
    ReadOptions options;
    options.range_bytes = 1000;
    options.ranges = 3;
    return options;
  }
  std::string error_of(const base::Result<std::string>& result, Code code) {
    EXPECT_FALSE(result);
    if (result) return "";
    EXPECT_EQ(result.error().code(), code) << result.error().what();
    return result.error().what();
  }

  std::optional<Storage> storage_;
};

TEST_F(ObjectReaderTest, RangesComeInOrder) {
  for (const std::size_t size : {1, 999, 1000, 1001, 2999, 3000, 12'345}) {
    const std::string bytes = test::random_bytes(size);
    bucket_.put("x", bytes);
    const auto found = read();
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_TRUE(*found == bytes) << size;
  }
  const std::string large = test::random_bytes(3'000'000);
  bucket_.put("x", large);
  const auto found = read({});
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == large);
}

TEST_F(ObjectReaderTest, NothingOfAnEmptyObject) {
  bucket_.put("x", "");
  EXPECT_EQ(read().value_or("?"), "");
}

TEST_F(ObjectReaderTest, AnyPart) {
  const std::string bytes = test::random_bytes(5'000);
  bucket_.put("x", bytes);
  for (const std::uint64_t begin : {0, 1, 999, 1000, 4'999, 5'000})
    for (const std::uint64_t size : {0, 1, 1000, 2'500, 9'999}) {
      ReadOptions options = small();
      options.begin = begin;
      options.end = begin + size;
      const auto found = read(options);
      ASSERT_TRUE(found) << found.error().what();
      EXPECT_TRUE(*found == bytes.substr(begin, size)) << size << " from " << begin;
    }
  ReadOptions beyond = small();
  beyond.begin = 5'001;
  error_of(read(beyond), Code::kOutOfRange);
}

// The connection breaks once, after each possible number of bytes of each range.
TEST_F(ObjectReaderTest, BrokenConnectionsGoOnWhereTheyBroke) {
  const std::string bytes = test::random_bytes(90);
  bucket_.put("x", bytes);
  ReadOptions options;
  options.range_bytes = 30;
  options.ranges = 2;
  for (const std::size_t range : {0, 30, 60})
    for (std::size_t cut = 0; cut <= 29; ++cut) {
      std::atomic<bool> broken{false};
      std::atomic<int> resumed{0};
      set_fault([&](const Request& request) -> std::optional<Reply> {
        if (!is_media(request)) return std::nullopt;
        if (request.header("range") == base::str("bytes=", range, "-", range + 29) &&
            !broken.exchange(true)) {
          Reply reply = bucket_(request);
          reply.cut_after = cut;
          return reply;
        }
        if (request.header("range") == base::str("bytes=", range + cut, "-", range + 29)) ++resumed;
        return std::nullopt;
      });
      const auto found = read(options);
      ASSERT_TRUE(found) << found.error().what();
      EXPECT_TRUE(*found == bytes) << "range " << range << " cut after " << cut;
      // What had arrived before a reset may be lost with it: then the range is asked for again.
      EXPECT_TRUE(broken);
    }
}

TEST_F(ObjectReaderTest, ShorterPartsThanAskedForAreContinued) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  set_fault([&](const Request& request) -> std::optional<Reply> {
    std::size_t first = 0, last = 0;
    if (!is_media(request) ||
        std::sscanf(request.header("range").c_str(), "bytes=%zu-%zu", &first, &last) != 2)
      return std::nullopt;
    last = std::min(last, first + 299);
    return Reply{206,
                 {base::str("Content-Range: bytes ", first, "-", last, "/2500")},
                 bytes.substr(first, last - first + 1)};
  });
  const auto found = read();
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
  EXPECT_TRUE(time_.sleeps().empty());
}

TEST_F(ObjectReaderTest, StormsOfRefusalsPass) {
  const std::string bytes = test::random_bytes(9'500);
  bucket_.put("x", bytes);
  std::mutex mutex;
  std::map<std::string, int> refused;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (!is_media(request)) return std::nullopt;
    const std::lock_guard lock(mutex);
    const int count = ++refused[request.header("range")];
    if (count == 1) return Reply{429, {"Retry-After: 7"}};
    if (count == 2) return Reply{503};
    if (count == 3) return Reply{500, {}, "oops"};
    return std::nullopt;
  });
  const auto found = read();
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
  const auto sleeps = time_.sleeps();
  EXPECT_EQ(sleeps.size(), 30u);
  EXPECT_EQ(std::count(sleeps.begin(), sleeps.end(), 7.0), 10);
}

TEST_F(ObjectReaderTest, RefusalsWithoutEndAreAnError) {
  bucket_.put("x", test::random_bytes(5'000));
  set_fault([&](const Request& request) -> std::optional<Reply> {
    return is_media(request) ? std::optional(Reply{503}) : std::nullopt;
  });
  const std::string error = error_of(read(), Code::kUnavailable);
  EXPECT_NE(error.find("gs://b/x at byte 0"), std::string::npos) << error;
  EXPECT_NE(error.find("given up"), std::string::npos) << error;
}

TEST_F(ObjectReaderTest, StallsAreBrokenOff) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  std::atomic<bool> stalled{false};
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.header("range") != "bytes=1000-1999" || stalled.exchange(true)) return std::nullopt;
    Reply reply = bucket_(request);
    reply.cut_after = 100;
    reply.stall = true;
    return reply;
  });
  const auto found = read();
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
}

// Two of three ranges come, one stops: what is left of it is asked for again, long before it counts as a
// stall.
TEST_F(ObjectReaderTest, ASlowRangeIsAskedForAgain) {
  const std::string bytes = test::random_bytes(5'500);
  bucket_.put("x", bytes);
  for (const std::string slow : {"bytes=0-999", "bytes=1000-1999", "bytes=3000-3999", "bytes=5000-5499"}) {
    std::atomic<int> asked{0};
    set_fault([&](const Request& request) -> std::optional<Reply> {
      if (request.header("range") != slow || asked++ > 0) return std::nullopt;
      Reply reply = bucket_(request);
      reply.cut_after = 100;
      reply.stall = true;
      return reply;
    });
    ReadOptions options = small();
    options.hedge_after = 0;
    HttpOptions http = test::options_with(time_);
    http.stall_timeout = 1e6;
    storage_.emplace(server_.address(), Access{std::make_shared<Http>(http), anonymous_credentials(), true});
    const auto found = test::read_all(storage_->find(ObjectName{"b", "x"}), options);
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_TRUE(*found == bytes) << slow;
  }
}

// As `rclone serve s3` does: the status of a whole object, and the range that was asked for.
TEST_F(ObjectReaderTest, ARangeWithTheStatusOfAWhole) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.header("range") != "bytes=1000-1999") return std::nullopt;
    return Reply{200, {"Content-Range: bytes 1000-1999/2500"}, bytes.substr(1000, 1000)};
  });
  const auto found = read();
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
}

// Answers that do not fit the question are errors at once.
TEST_F(ObjectReaderTest, WrongAnswers) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  const auto with = [&](const Reply& reply) {
    set_fault([&](const Request& request) -> std::optional<Reply> {
      return request.header("range") == "bytes=1000-1999" ? std::optional(reply) : std::nullopt;
    });
    return error_of(read(), Code::kDataLoss);
  };
  const std::string part = bytes.substr(1000, 1000);
  EXPECT_NE(with({200, {}, bytes}).find("expected status 206"), std::string::npos);
  EXPECT_NE(with({206, {}, part}).find("expected Content-Range: bytes 1000-1999/2500"), std::string::npos);
  EXPECT_NE(with({200, {"Content-Range: bytes 0-999/2500"}, part}).find("asked for"), std::string::npos);
  EXPECT_NE(with({206, {"Content-Range: bytes 999-1998/2500"}, part})
                .find("the server sends 'bytes 999-1998/2500'"),
            std::string::npos);
  EXPECT_NE(with({206, {"Content-Range: bytes 1000-1999/2501"}, part}).find("of 2500"), std::string::npos);
  EXPECT_NE(with({206, {"Content-Range: bytes 1000-2100/2500"}, part}).find("asked for"), std::string::npos);
  EXPECT_NE(with({206, {"Content-Range: bytes 1000-1999/2500"}, bytes}).find("sent more than the 1000 bytes"),
            std::string::npos);
}

// What is pinned by If-Match cannot be another content in an answer of 200: the server has no ranges.
TEST_F(ObjectReaderTest, TheWholeInsteadOfARangeIsNoReplacedObject) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  set_fault([&](const Request& request) -> std::optional<Reply> {
    return is_media(request) ? std::optional(Reply{200, {}, bytes}) : std::nullopt;
  });
  for (const auto& [condition, replaced] :
       {std::pair("If-Match: \"e\"", false), std::pair("If-Range: \"e\"", true)}) {
    auto remote = find("x");
    ASSERT_TRUE(remote);
    remote->condition = condition;
    const std::string error = error_of(test::read_all(std::move(remote), small()), Code::kDataLoss);
    EXPECT_EQ(error.find("was replaced") != std::string::npos, replaced) << error;
    EXPECT_EQ(error.find("expected status 206") != std::string::npos, !replaced) << error;
  }
}

// A Content-Length that promises more than comes counts as a broken connection.
TEST_F(ObjectReaderTest, WrongLengthsAreTriedAgain) {
  const std::string bytes = test::random_bytes(2'500);
  bucket_.put("x", bytes);
  std::atomic<int> count{0};
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.header("range") != "bytes=1000-1999" || count++ > 0) return std::nullopt;
    Reply reply = bucket_(request);
    reply.declared = 1500;
    return reply;
  });
  const auto found = read();
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
}

TEST_F(ObjectReaderTest, AReplacedObjectIsAnError) {
  bucket_.put("x", test::random_bytes(25'000));
  auto remote = find("x");
  ASSERT_TRUE(remote);
  auto reader = open_reader(*remote, small());
  ASSERT_TRUE(reader);
  ASSERT_TRUE((*reader)->next(10));
  bucket_.put("x", test::random_bytes(25'000, 2));
  const std::string error = error_of(test::read_all(**reader), Code::kDataLoss);
  EXPECT_NE(error.find("gs://b/x was replaced or removed while it was read"), std::string::npos) << error;
}

TEST_F(ObjectReaderTest, DamageIsFoundBeforeTheEnd) {
  const std::string bytes = test::random_bytes(5'500);
  bucket_.put("x", bytes);
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (request.header("range") != "bytes=2000-2999") return std::nullopt;
    Reply reply = bucket_(request);
    reply.body[500] = static_cast<char>(reply.body[500] ^ 1);
    return reply;
  });
  auto remote = find("x");
  ASSERT_TRUE(remote);
  auto reader = open_reader(*remote, small());
  std::size_t seen = 0;
  base::Result<std::string_view> some = (*reader)->next(700);
  for (; some && !some->empty(); some = (*reader)->next(700)) seen += some->size();
  ASSERT_FALSE(some);
  EXPECT_EQ(some.error().code(), Code::kDataLoss);
  EXPECT_NE(std::string(some.error().what()).find("do not fit its crc32c"), std::string::npos);
  EXPECT_LE(seen, 5'000u) << "the last range is handed out after the comparison only";
  // A part cannot be compared.
  ReadOptions part = small();
  part.begin = 1;
  EXPECT_TRUE(read(part));
}

TEST_F(ObjectReaderTest, MissingAndForbidden) {
  EXPECT_EQ(find("missing").error().code(), Code::kNotFound);
  set_fault([](const Request&) { return Reply{403, {}, R"({"error":{"message":"no access"}})"}; });
  const auto refused = find("x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_NE(std::string(refused.error().what()).find("GOOGLE_APPLICATION_CREDENTIALS"), std::string::npos);
}

TEST_F(ObjectReaderTest, StoppingEarlyAndCancelling) {
  bucket_.put("x", test::random_bytes(100'000));
  {
    auto reader = open_reader(*find("x"), small());
    ASSERT_TRUE((*reader)->next(10));
  }
  std::atomic<bool> cancelled{false};
  ReadOptions options = small();
  options.cancelled = &cancelled;
  set_fault([&](const Request& request) -> std::optional<Reply> {
    if (!is_media(request)) return std::nullopt;
    cancelled = true;
    Reply reply = bucket_(request);
    reply.cut_after = 0;
    reply.stall = true;
    return reply;
  });
  error_of(read(options), Code::kCancelled);
}

TEST_F(ObjectReaderTest, ManyReadersAtOnce) {
  const std::string bytes = test::random_bytes(300'000);
  bucket_.put("x", bytes);
  // A busy machine lets a thread wait for longer than 0.2 s: its connection would be replaced.
  const auto remote = find("x", 30);
  ASSERT_TRUE(remote);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      ReadOptions options;
      options.range_bytes = 20'000;
      options.ranges = 4;
      const auto found = test::read_all(base::Result<Remote>(*remote), options);
      good += found && *found == bytes ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_LE(server_.connections(),
            33);  // one for each thread of the pool, and the one that asked for the facts
}

// The memory of all readers together is bounded: with more readers, ranges are smaller.
TEST_F(ObjectReaderTest, ManyOpenReadersAskForSmallerRanges) {
  bucket_.put("x", test::random_bytes(3 << 20));
  const auto remote = find("x");
  ASSERT_TRUE(remote);
  std::atomic<std::uint64_t> largest{0}, asked{0};
  set_fault([&](const Request& request) -> std::optional<Reply> {
    std::uint64_t first = 0, last = 0;
    if (is_media(request) &&
        std::sscanf(request.header("range").c_str(), "bytes=%lu-%lu", &first, &last) == 2) {
      largest = std::max<std::uint64_t>(largest, last + 1 - first);
      ++asked;
    }
    return std::nullopt;
  });
  std::vector<std::unique_ptr<ObjectReader>> readers;
  for (const std::size_t count : {512, 4096}) {
    while (readers.size() < count) readers.push_back(*open_reader(*remote));
    largest = asked = 0;
    ASSERT_TRUE(readers.back()->next(1));
    readers.pop_back();  // its transfers have ended
    EXPECT_GE(asked, 1u);
    EXPECT_LE(count * largest * asked, 512u << 20) << count << " readers";
  }
}

// Plain files on web servers.
class PageTest : public ObjectReaderTest {
 protected:
  base::Result<std::string> read_page(Fault fault, const ReadOptions& options = small()) {
    set_fault(std::move(fault));
    HttpOptions http = test::options_with(time_);
    http.stall_timeout = 0.2;
    return test::read_all(find_page(std::make_shared<Http>(http), server_.address() + "/x.tar?key=secret"),
                          options);
  }
  // Parts of the bytes, as a web server gives them.
  static Reply part(const Request& request, const std::string& bytes, const std::string& tag) {
    std::size_t first = 0, last = 0;
    const bool pinned = request.header("if-range").empty() || request.header("if-range") == tag;
    if (!pinned || std::sscanf(request.header("range").c_str(), "bytes=%zu-%zu", &first, &last) != 2)
      return {200, {"ETag: " + tag}, bytes};
    if (first >= bytes.size()) return {416, {base::str("Content-Range: bytes */", bytes.size())}};
    last = std::min(last, bytes.size() - 1);
    return {206,
            {"ETag: " + tag, base::str("Content-Range: bytes ", first, "-", last, "/", bytes.size())},
            bytes.substr(first, last - first + 1)};
  }
};

TEST_F(PageTest, ServersWithRanges) {
  const std::string bytes = test::random_bytes(12'345);
  std::atomic<int> refused{0};
  const auto found = read_page([&](const Request& request) {
    return std::optional(refused++ == 2 ? Reply{503} : part(request, bytes, "\"one\""));
  });
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
  EXPECT_EQ(read_page([&](const Request& request) {
              return std::optional(part(request, "", "\"one\""));
            }).value_or("?"),
            "");
}

TEST_F(PageTest, AnotherContentIsAnError) {
  const std::string bytes = test::random_bytes(12'345);
  std::atomic<int> count{0};
  const std::string error =
      error_of(read_page([&](const Request& request) {
                 return std::optional(part(request, bytes, count++ < 3 ? "\"one\"" : "\"two\""));
               }),
               Code::kDataLoss);
  EXPECT_NE(error.find("was replaced or removed while it was read"), std::string::npos) << error;
  EXPECT_EQ(error.find("secret"), std::string::npos) << error;
}

TEST_F(PageTest, ServersWithoutRanges) {
  const std::string bytes = test::random_bytes(700'000);
  const auto whole = [&](const Request&) { return std::optional(Reply{200, {"ETag: \"one\""}, bytes}); };
  auto found = read_page(whole);
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
  ReadOptions options;
  options.begin = 300'000;
  options.end = 600'001;
  found = read_page(whole, options);
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes.substr(300'000, 300'001));
}

TEST_F(PageTest, ServersWithoutRangesThatBreak) {
  const std::string bytes = test::random_bytes(700'000);
  std::atomic<int> count{0};
  const auto breaking = [&](const std::string& first_tag, const std::string& second_tag) {
    count = 0;
    return [&, first_tag, second_tag](const Request&) {
      const int round = ++count;
      const std::string tag = round <= 2 ? first_tag : second_tag;
      Reply reply{200, tag.empty() ? std::vector<std::string>() : std::vector<std::string>{"ETag: " + tag},
                  bytes};
      if (round == 2) reply.cut_after = 400'000;
      return std::optional(reply);
    };
  };
  const auto found = read_page(breaking("\"one\"", "\"one\""));
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_TRUE(*found == bytes);
  EXPECT_NE(error_of(read_page(breaking("\"one\"", "\"two\"")), Code::kDataLoss).find("was replaced"),
            std::string::npos);
  EXPECT_NE(error_of(read_page(breaking("", "")), Code::kDataLoss).find("the connection broke after"),
            std::string::npos);
}

TEST_F(PageTest, MissingPages) {
  error_of(read_page([](const Request&) { return std::optional(Reply{404}); }), Code::kNotFound);
}

}  // namespace
}  // namespace sluice::cloud
