// A survey is made once for a set, and kept.
#include "sluice/data/order/survey.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/data/order/survey_file.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

class SurveyTest : public ::testing::Test {
 protected:
  std::string texts(int shards) {
    for (int shard = 0; shard < shards; ++shard) {
      test::Members members;
      for (int i = 0; i < 10; ++i) {
        const int number = 10 * shard + i;
        members.emplace_back("k" + std::to_string(1000 + number) + ".txt", std::string(1 + number % 7, 'x'));
      }
      folder_.write("s-" + std::to_string(shard) + ".tar", test::archive(members));
    }
    return folder_.path("s-{0.." + std::to_string(shards - 1) + "}.tar");
  }
  // A set of its own, as in another process. Its lengths are counted in measured_.
  WebDataset set(const std::string& urls, const std::string& name, const std::string& condition = "",
                 bool has_cache = true) {
    LengthOptions options;
    options.length = [this](std::string_view bytes) {
      ++measured_;
      return static_cast<std::int64_t>(bytes.size());
    };
    options.name = name;
    WebDataset all(urls);
    all.to_tuple("txt", "__key__").shuffle(8).interleave(4);
    if (has_cache) all.cache(folder_.path("cache"), 1 << 20);
    if (!condition.empty()) all.where(condition);
    return all.bucket_by_length("txt", {{2, 4}, {2, 8}}, options);
  }
  std::int64_t measured_by(const WebDataset& dataset) {
    measured_ = 0;
    last_size_ = dataset.size();
    return measured_;
  }

  test::Folder folder_;
  std::atomic<std::int64_t> measured_{0};
  std::int64_t last_size_ = 0;
};

TEST_F(SurveyTest, IsMadeOnceForASet) {
  for (const int shards : {2, 8}) {
    const std::string urls = texts(shards);
    const std::int64_t samples = 10 * shards;
    EXPECT_EQ(measured_by(set(urls, "bytes")), samples);
    EXPECT_EQ(measured_by(set(urls, "bytes")), 0) << shards << " shards";
    EXPECT_EQ(last_size_, samples);
    // A filter takes some; its numbers are kept as well.
    const std::int64_t some = measured_by(set(urls, "bytes", "__key__ like k10?5"));
    EXPECT_EQ(some, shards);
    EXPECT_EQ(measured_by(set(urls, "bytes", "__key__ like k10?5")), 0);
    EXPECT_EQ(last_size_, some);
    EXPECT_EQ(set(urls, "bytes", "__key__ like k10?5").left_out(), samples - some);
  }
}

// Without a cache folder it is kept for the user. However many processes start at once, each sample is
// measured once.
TEST_F(SurveyTest, IsMadeOnceWithoutACache) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> kept =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv("XDG_CACHE_HOME", folder_.path("home").c_str(), 1);
  for (const int shards : {2, 8}) {
    const std::string urls = texts(shards);
    measured_ = 0;
    std::vector<std::thread> processes;
    for (int i = 0; i < 4; ++i)
      processes.emplace_back(
          [&] { EXPECT_EQ(set(urls, "bytes", "", /*has_cache=*/false).size(), 10 * shards); });
    for (std::thread& process : processes) process.join();
    EXPECT_EQ(measured_, 10 * shards);
    EXPECT_EQ(measured_by(set(urls, "bytes", "", /*has_cache=*/false)), 0);
  }
  EXPECT_EQ(base::value_or_throw(base::list_directory(usual_survey_folder())).size(), 2U) << "no turn stays";
  forget_old_surveys(usual_survey_folder(), 200);  // the larger one has 8 bytes a sample: 640 and more
  EXPECT_LE(base::value_or_throw(base::list_directory(usual_survey_folder())).size(), 1U);
  kept ? ::setenv("XDG_CACHE_HOME", kept->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(SurveyTest, IsMadeForWhatDiffers) {
  const std::string urls = texts(2);
  EXPECT_EQ(measured_by(set(urls, "bytes")), 20);
  EXPECT_EQ(measured_by(set(urls, "words")), 20) << "another way to measure";
  EXPECT_EQ(measured_by(set(urls, "")), 20);
  EXPECT_EQ(measured_by(set(urls, "")), 20) << "a function without a name may be any";
  const auto any = [](const SampleView&) { return true; };
  EXPECT_EQ(measured_by(set(urls, "bytes").filter(any)), 20);
  EXPECT_EQ(measured_by(set(urls, "bytes").filter(any)), 20) << "a filter that is a function may be any";
  EXPECT_EQ(measured_by(set(urls, "bytes")), 0);
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder_.path("s-0.tar").c_str(), times, 0), 0);
  EXPECT_EQ(measured_by(set(urls, "bytes")), 20) << "a shard was written since";
}

TEST_F(SurveyTest, ADamagedFileIsNotUsed) {
  const std::string path = survey_path(folder_.path("kept"), "identity");
  const std::vector<SurveyedShard> shards = {{{0, 2, 5}, {7, 8, 9}}, {{}, {}}, {{1}, {4}}};
  EXPECT_FALSE(read_survey(path, 3));
  ASSERT_TRUE(write_survey(path, shards));
  const auto kept = read_survey(path, 3);
  ASSERT_TRUE(kept);
  EXPECT_EQ((*kept)[0].taken, shards[0].taken);
  EXPECT_EQ((*kept)[0].lengths, shards[0].lengths);
  EXPECT_EQ((*kept)[2].lengths, shards[2].lengths);
  EXPECT_FALSE(read_survey(path, 2));
  EXPECT_FALSE(read_survey(path, 4));
  const std::string bytes = *base::read_file(path);
  for (const std::size_t at : {std::size_t{3}, std::size_t{20}, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] + 1);
    folder_.write("kept/" + path.substr(path.rfind('/') + 1), other);
    EXPECT_FALSE(read_survey(path, 3)) << at;
  }
  folder_.write("kept/" + path.substr(path.rfind('/') + 1), bytes.substr(0, 30));
  EXPECT_FALSE(read_survey(path, 3));
}

}  // namespace
}  // namespace sluice::data
