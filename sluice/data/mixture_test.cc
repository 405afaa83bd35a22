#include "sluice/data/mixture.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::HasSubstr;

class MixTest : public DatasetTest {
 protected:
  // Shards NAME-0.tar …; keys begin with the name.
  WebDataset source(const std::string& name, int count, int each) {
    int next = 0;
    for (int shard = 0; shard < count; ++shard) {
      test::Members members;
      for (int i = 0; i < each; ++i, ++next) {
        const std::string key = name + std::to_string(1000 + next);
        members.emplace_back(key + ".png", png_of(next));
        members.emplace_back(key + ".cls", std::to_string(next % 10));
      }
      folder_.write(name + "-" + std::to_string(shard) + ".tar", test::archive(members));
    }
    return WebDataset(folder_.path(name + "-{0.." + std::to_string(count - 1) + "}.tar"))
        .images("png")
        .labels("cls")
        .shuffle(40)
        .interleave(8)
        .seed(3)
        .batch(4);
  }
  Mix three() {
    return Mix({{source("a", 3, 50), 0.6, "a"},
                {source("b", 2, 20).crop(4, 1).flip(), 0.3, "b"},
                {source("c", 1, 9), 0.1, "c"}});
  }
};

TEST_F(MixTest, SourcesComeByTheirShares) {
  const Mix mix = three().epoch_samples(400);
  EXPECT_EQ(mix.size(), 400);
  EXPECT_EQ(mix.batches(), 100);
  const auto stream = mix.open({});
  std::map<char, int> counts;
  while (const auto batch = stream->next()) {
    ASSERT_EQ(batch->size(), 4);
    for (std::size_t i = 0; i < 4; ++i) {
      ++counts[batch->keys[i][0]];
      EXPECT_EQ(batch->keys[i][0], "abc"[batch->sources[i]]);
    }
  }
  EXPECT_EQ(counts, (std::map<char, int>{{'a', 240}, {'b', 120}, {'c', 40}}));
  EXPECT_EQ(stream->statistics().sources, (std::vector<std::int64_t>{240, 120, 40}));
  const auto taken = mix.taken(1);
  EXPECT_EQ(taken[1].name, "b");
  EXPECT_EQ(taken[1].samples, 120);
  EXPECT_DOUBLE_EQ(taken[1].passes, 6);
}

TEST_F(MixTest, EverySampleComesOnceAPass) {
  const Mix mix = three().epoch_samples(400);
  std::map<char, std::vector<std::string>> keys;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto stream = mix.open({.epoch = epoch});
    while (const auto batch = stream->next())
      for (const std::string& key : batch->keys) keys[key[0]].push_back(key);
  }
  const std::map<char, int> sizes = {{'a', 150}, {'b', 40}, {'c', 9}};
  for (const auto& [name, size] : sizes) {
    std::map<std::string, int> seen;
    for (const std::string& key : keys[name]) ++seen[key];
    EXPECT_EQ(static_cast<int>(seen.size()), size);
    const int passes = static_cast<int>(keys[name].size()) / size;
    for (const auto& [key, count] : seen) EXPECT_TRUE(count == passes || count == passes + 1) << key << count;
  }
}

TEST_F(MixTest, JoinedSetsHaveEachSampleOnce) {
  const Mix mix = Mix::join({source("a", 3, 50), source("b", 2, 25)});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto order = keys(all(*mix.open({.epoch = epoch})));
    EXPECT_EQ(order.size(), 200u);
    EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 200u);
  }
  const auto repeated =
      keys(all(*Mix({{source("a", 3, 50), 1}, {source("b", 2, 25), 3}}, MixBy::kRepeat).open({})));
  std::map<std::string, int> seen;
  for (const std::string& key : repeated) ++seen[key];
  for (const auto& [key, count] : seen) EXPECT_EQ(count, key[0] == 'a' ? 1 : 3);
  const auto chosen =
      keys(all(*Mix({{source("a", 3, 50), 30}, {source("b", 2, 25), 10}}, MixBy::kChoose).open({})));
  EXPECT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), 40u);
}

TEST_F(MixTest, TheOrderDoesNotDependOnHostsOrThreads) {
  constexpr std::int64_t kReplicas = 8;
  const Mix mix = three().epoch_samples(410).from(5, {0.1, 0.2, 0.7});
  std::string first;
  for (const std::int64_t hosts : {1, 2, 8}) {
    std::vector<std::string> replicas(kReplicas);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      for (std::int64_t host = 0; host < hosts; ++host) {
        const auto stream = mix.open({epoch, host, hosts, kReplicas / hosts, 0});
        std::int64_t batches = 0;
        while (const auto batch = stream->next()) {
          ++batches;
          for (std::size_t row = 0; row < batch->keys.size(); ++row)
            replicas[static_cast<std::size_t>(host * kReplicas / hosts) + row / 4] += batch->keys[row] + " ";
        }
        EXPECT_EQ(batches, mix.batches(kReplicas, epoch));
      }
    }
    const std::string keys = base::join(replicas, "\n");
    if (first.empty()) first = keys;
    ASSERT_EQ(keys, first) << hosts << " hosts";
  }
  // Another number of replicas, with the same global batch, has the same samples in each batch.
  const auto batch_sets = [&](std::int64_t replicas, std::int64_t rows) {
    std::vector<std::set<std::string>> sets;
    const Mix same({{source("a", 3, 50).batch(rows), 0.6}, {source("b", 2, 20).batch(rows), 0.4}});
    for (const Batch& batch : all(*same.open({.replicas = replicas})))
      sets.emplace_back(batch.keys.begin(), batch.keys.end());
    return sets;
  };
  EXPECT_EQ(batch_sets(1, 16), batch_sets(4, 4));
}

TEST_F(MixTest, AStateResumesExactly) {
  const Mix mix = three().epoch_samples(240).from(37, {0.1, 0.2, 0.7});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto whole = all(*mix.open({.epoch = epoch}));
    for (const std::size_t taken : {0u, 1u, 23u, 37u, 59u, 60u}) {
      const auto stream = mix.open({.epoch = epoch});
      for (std::size_t i = 0; i < taken; ++i) static_cast<void>(stream->next());
      const auto rest = mix.resume(stream->state(), {});
      for (std::size_t i = taken; i < whole.size(); ++i) {
        const auto batch = rest->next();
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->keys, whole[i].keys) << i;
        ASSERT_EQ(std::string(batch->image.data<char>(), batch->image.bytes()),
                  std::string(whole[i].image.data<char>(), whole[i].image.bytes()));
      }
      EXPECT_FALSE(rest->next());
    }
  }
  const std::string state = mix.open({.epoch = 1})->state();
  EXPECT_EQ(state, mix.state({.epoch = 1}));
  const Mix other = three().epoch_samples(240);
  EXPECT_THAT(test::thrown([&] { other.resume(state, {}); }),
              HasSubstr("share is 0:0.6,0.3,0.1 now and was 0:0.6,0.3,0.1;37:0.1,0.2,0.7"));
  const Mix two({{source("a", 2, 50), 0.5}, {source("b", 2, 20), 0.5}});
  const std::string before = two.state({});
  const Mix changed({{source("a", 2, 50), 0.5}, {source("b", 2, 21), 0.5}});
  EXPECT_THAT(test::thrown([&] { changed.resume(before, {}); }),
              HasSubstr("source1.samples is 42 now and was 40"));
}

// A small source that comes twice in an epoch is cropped in another way each time.
TEST_F(MixTest, EachPassHasItsOwnCrops) {
  const Mix mix({{source("a", 1, 8).crop(2, 2).flip(), 12}}, MixBy::kRepeat);
  std::map<std::string, std::set<std::string>> images;
  for (const Batch& batch : all(*mix.open({})))
    for (std::size_t i = 0; i < 4; ++i)
      images[batch.keys[i]].insert(std::string(batch.image.data<char>() + i * 12, 12));
  for (const auto& [key, different] : images) EXPECT_GT(different.size(), 3u) << key;
}

TEST_F(MixTest, SharesOfTokens) {
  folder_.write("long.tar",
                test::archive({{"l0.txt", "one two three four"}, {"l1.txt", "one two three four"}}));
  folder_.write("short.tar", test::archive({{"s0.txt", "one"}, {"s1.txt", "one"}}));
  const auto texts = [&](const char* name) {
    return WebDataset(folder_.path(name)).decode("rgb8").to_tuple("txt").shuffle(10).interleave(4).batch(4);
  };
  const auto words = [](const Sample& sample) {
    const auto& text = std::get<std::string>(sample.fields[0]);
    return 1.0 + static_cast<double>(std::count(text.begin(), text.end(), ' '));
  };
  Mix mix({{texts("long.tar"), 0.5}, {texts("short.tar"), 0.5}});
  mix.epoch_samples(100).by_size(words);
  double tokens[2] = {};
  for (const Batch& batch : all(*mix.open({})))
    for (std::size_t i = 0; i < batch.keys.size(); ++i)
      tokens[batch.sources[i]] += batch.sources[i] == 0 ? 4 : 1;
  EXPECT_EQ(tokens[0], 80);
  EXPECT_EQ(tokens[1], 80);
}

TEST_F(MixTest, TheExampleOfTheDocs) {
  // clang-format off
  // [mixture]
  auto photos = WebDataset("photos-{000..099}.tar").shuffle(10'000).images("jpg").labels("cls").batch(64);
  auto drawn = WebDataset("drawn-{0..9}.tar").shuffle(1'000).images("png").labels("cls").flip().batch(64);
  auto train = Mix({{photos, 0.7}, {drawn, 0.3}}).epoch_samples(100'000).from(10'000, {0.5, 0.5});
  // [end]
  // clang-format on
  EXPECT_EQ(train.size(), 100'000);
}

TEST_F(MixTest, WrongMixturesSayWhatIsWrong) {
  const WebDataset a = source("a", 1, 8), b = source("b", 1, 8);
  const auto message = [](auto&& make) { return test::thrown([&] { make(); }); };
  EXPECT_THAT(message([&] { Mix({{a, 0.5}, {WebDataset(b).batch(8), 0.5}}); }), HasSubstr("batch() of"));
  EXPECT_THAT(message([&] { Mix({{a, 0}, {b, 0}}); }), HasSubstr("all shares are 0"));
  EXPECT_THAT(message([&] { Mix({{a, -1}, {b, 1}}); }), HasSubstr("a share of -1"));
  EXPECT_THAT(message([&] {
                Mix({{a, 0}, {b, 1}}, MixBy::kRepeat);
              }),
              HasSubstr("expected a number above 0"));
  EXPECT_THAT(message([&] {
                Mix({{WebDataset("x.tar").to_tuple("cls"), 1}});
              }),
              HasSubstr("is not shuffled"));
  EXPECT_THAT(message([&] { Mix({{a, 1}, {b, 1}}).from(3, {1}); }), HasSubstr("1 shares for 2 sources"));
  EXPECT_THAT(message([&] {
                Mix({{a, 1}, {b, 1}}).from(3, {1, 0}).from(3, {0, 1});
              }),
              HasSubstr("expected 4"));
  EXPECT_THAT(message([&] {
                Mix({{a, 1}, {b, 1}}).epoch_samples(3).open({});
              }),
              HasSubstr("do not fill one batch"));
  EXPECT_THAT(message([&] { Mix({{a, 1}, {b, 1}}).open({.replicas = 3}); }), HasSubstr("interleave(9)"));
  EXPECT_THAT(
      message([&] {
        Mix({{WebDataset("-").images("png").labels("cls").shuffle(1).interleave(8).batch(4), 1}}).open({});
      }),
      HasSubstr("only once"));
}

}  // namespace
}  // namespace sluice::data
