// What is asked of S3 and of Hugging Face's hub before the first batch: a list, and nothing for a shard.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>

#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/log.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/storage.h"
#include "sluice/cloud/test_server.h"
#include "sluice/data/dataset.h"
#include "sluice/data/shards/shard_facts.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_support.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;
using Reply = cloud::test::Reply;

// s3://b/… and hf://datasets/o/n/… with the same objects, as the two services describe them.
class OtherStores {
 public:
  OtherStores() {
    cloud::test::stand_for_cloud(server_);
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "HF_ENDPOINT"})
      ::setenv(name, server_.address().c_str(), 1);
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"})
      ::setenv(name, "x", 1);
  }

  void put(const std::string& name, std::string bytes) {
    const std::lock_guard lock(mutex_);
    objects_[name] = std::move(bytes);
  }
  // Requests since the last call: for lists, and for objects whose names end in .tar or .idx.
  std::pair<int, int> counted() { return {lists_.exchange(0), of_shards_.exchange(0)}; }
  std::atomic<bool> in_git{false};  // whether the hub has shards in git itself

 private:
  using Request = cloud::test::Request;

  Reply operator()(const Request& request) {
    const std::lock_guard lock(mutex_);
    for (const std::string api : {"/b/", "/api/datasets/o/n/tree/main/"}) {
      if (!base::starts_with(request.path, api)) continue;
      if (api != "/b/") return count(lists_), tree(request.path.substr(api.size()) + "/");
      if (request.path == api) return count(lists_), list(request.parameter("prefix"));
    }
    for (const char* ending : {".tar", ".idx"})
      if (base::ends_with(request.path, ending)) ++of_shards_;
    for (const std::string root :
         {"/b/", "/large/", "/datasets/o/n/resolve/main/", "/datasets/o/n/resolve/c1/"})
      if (base::starts_with(request.path, root)) return object(root, request);
    return Reply{404};
  }

  static void count(std::atomic<int>& counter) { ++counter; }
  static std::string tag(const std::string& bytes) { return base::hexadecimal(base::sha256(bytes)); }
  bool is_large(const std::string& name) const { return base::ends_with(name, ".tar") && !in_git; }

  Reply list(const std::string& prefix) const {
    std::string items;
    for (const auto& [name, bytes] : objects_)
      if (base::starts_with(name, prefix))
        items += base::str("<Contents><Key>", name, "</Key><Size>", bytes.size(), "</Size><ETag>&quot;",
                           tag(bytes).substr(32), "&quot;</ETag></Contents>");
    return {200, {}, "<ListBucketResult>" + items + "</ListBucketResult>"};
  }

  // A file of git itself has the SHA-1 of its blob, for which 40 digits stand.
  Reply tree(const std::string& folder) const {
    std::string items;
    for (const auto& [name, bytes] : objects_) {
      if (!base::starts_with(name, folder)) continue;
      items += base::str(items.empty() ? "" : ",", R"({"type":"file","path":")", name, R"(","size":)",
                         bytes.size(), R"(,"oid":")", tag(bytes).substr(24), '"');
      if (is_large(name)) items += R"(,"lfs":{"oid":")" + tag(bytes) + R"("})";
      items += '}';
    }
    return {200, {}, "[" + items + "]"};
  }

  Reply object(const std::string& root, const Request& request) const {
    const std::string name = request.path.substr(root.size());
    const auto found = objects_.find(name);
    if (found == objects_.end()) return Reply{404};
    const std::string& bytes = found->second;
    const bool s3 = root == "/b/", hub = base::starts_with(root, "/datasets");
    std::vector<std::string> headers = {"X-Repo-Commit: c1",
                                        "ETag: \"" + tag(bytes).substr(s3 ? 32 : 24) + '"'};
    if (s3)
      headers.push_back("x-amz-checksum-crc32c: " +
                        cloud::base64_of_crc32c(base::crc32c(bytes.data(), bytes.size())));
    if (hub && is_large(name))
      return {302,
              {"X-Repo-Commit: c1", "Location: " + server_.address() + "/large/" + name,
               base::str("X-Linked-Size: ", bytes.size()), "X-Linked-Etag: \"" + tag(bytes) + '"'}};
    std::size_t first = 0, last = 0;
    if (hub || std::sscanf(request.header("range").c_str(), "bytes=%zu-%zu", &first, &last) != 2)
      return {200, headers, bytes};
    if (first >= bytes.size()) return {416, {base::str("Content-Range: bytes */", bytes.size())}};
    last = std::min(last, bytes.size() - 1);
    headers.push_back(base::str("Content-Range: bytes ", first, "-", last, "/", bytes.size()));
    return {206, headers, bytes.substr(first, last - first + 1)};
  }

  std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  std::atomic<int> lists_{0}, of_shards_{0};
  cloud::test::Server server_{[this](const Request& request) { return (*this)(request); }};
};

OtherStores& stores() {
  static OtherStores one;
  return one;
}

std::string shard_of(int first) {
  test::Members members;
  for (int i = 0; i < 4; ++i) members.emplace_back("k" + std::to_string(10'000 + first + i) + ".txt", "text");
  return test::archive(members);
}

// Puts shards of 4 samples into a folder, with indexes and sizes.json; returns their names.
std::vector<std::string> shards(const std::string& folder, int count) {
  std::vector<std::string> names;
  ShardSizes sizes;
  for (int shard = 0; shard < count; ++shard) {
    ShardIndex index;
    for (int i = 0; i < 4; ++i)
      index.samples.push_back({{"txt", static_cast<std::uint64_t>(512 + 1024 * i), 4,
                                "k" + std::to_string(10'000 + 4 * shard + i) + ".txt"}});
    const std::string bytes = shard_of(4 * shard), name = "s" + std::to_string(1000 + shard);
    stores().put(folder + "/" + name + ".tar", bytes);
    stores().put(folder + "/" + name + ".idx", *format_index(index));
    sizes[name + ".tar"] = ShardRecord(4, {bytes.size(), base::crc32c(bytes.data(), bytes.size())});
    names.push_back(folder + "/" + name + ".tar");
  }
  stores().put(folder + "/sizes.json", format_sizes(sizes));
  return names;
}

std::vector<std::string> in(const std::string& bucket, std::vector<std::string> names) {
  for (std::string& name : names) name = bucket + name;
  return names;
}

WebDataset dataset(const std::vector<std::string>& urls) {
  return WebDataset(urls).to_tuple("txt", "__key__").shuffle(8).interleave(8).batch(8).workers(1).prefetch(1);
}

class OtherStoresTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    base::set_log_level(base::Level::kError);
    stores().in_git = false;
  }
  void TearDown() override { base::set_log_level(base::Level::kInfo); }
};

TEST_P(OtherStoresTest, NothingIsRequestedForAShardThatIsListedAndCounted) {
  for (const int count : {32, 192}) {
    const auto urls = in(GetParam(), shards("n" + std::to_string(count), count));
    stores().counted();
    const auto facts = learn_shards(urls);
    ASSERT_TRUE(facts) << facts.error().what();
    EXPECT_EQ(stores().counted(), (std::pair{1, 0})) << count << " shards";
    EXPECT_EQ(facts->total, 4 * count);
    for (const std::string& version : facts->versions) EXPECT_THAT(version, HasSubstr(" bytes of version "));
    // A run, and a run that resumes, open only the shards that their batches are from.
    std::vector<std::string> keys;
    const auto stream = dataset(urls).open();
    auto batch = stream->next();
    ASSERT_TRUE(batch);
    const auto started = stores().counted();
    EXPECT_EQ(started.first, 1);
    EXPECT_LE(started.second, 120) << count << " shards";
    keys = batch->keys;
    const auto resumed = dataset(urls).resume(stream->state(), {});
    while ((batch = resumed->next())) keys.insert(keys.end(), batch->keys.begin(), batch->keys.end());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys.size(), 4u * static_cast<std::size_t>(count));
    EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
  }
}

TEST_P(OtherStoresTest, AShardThatIsReplacedIsFound) {
  const auto names = shards("replaced", 16), urls = in(GetParam(), names);
  const auto stream = dataset(urls).open();
  ASSERT_TRUE(stream->next());
  const std::string state = stream->state();
  for (const std::string& name : names) stores().put(name, shard_of(7000));  // as many bytes and samples
  EXPECT_THAT(test::thrown([&] {
                while (stream->next()) {
                }
              }),
              HasSubstr("was replaced while its set is in use"));
  EXPECT_THAT(test::thrown([&] { dataset(urls).resume(state, {}); }),
              HasSubstr("other contents than they had"));
}

INSTANTIATE_TEST_SUITE_P(Buckets, OtherStoresTest, ::testing::Values("s3://b/", "hf://datasets/o/n/"));

// A list has another hash of such a file than the answer for it, so that it does not pin the content.
TEST(OtherStores, TheHubIsAskedForAShardThatIsInGitItself) {
  const auto urls = in("hf://datasets/o/n/", shards("git", 16));
  stores().in_git = true;
  stores().counted();
  ASSERT_TRUE(learn_shards(urls));
  EXPECT_GE(stores().counted().second, 16);
  stores().in_git = false;
}

}  // namespace
}  // namespace sluice::data
