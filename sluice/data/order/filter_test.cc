// Filters against sets that hold nothing but what they take.
#include "sluice/data/order/filter.h"

#include <gmock/gmock.h>

#include "sluice/data/mixture.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/test_dataset.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Keys = std::vector<std::string>;

class FilterTest : public DatasetTest {
 protected:
  // The same shards without the samples whose class is not among these, with the same names.
  std::string without(const std::string& urls, const std::string& classes) {
    std::string result;
    for (const std::string& url : WebDataset(urls).urls()) {
      test::Members members;
      ShardReader reader(*open_source(url), Wanted{});
      RawSample sample;
      while (*reader.next(sample))
        if (classes.find(sample.find("cls")->bytes) != std::string::npos)
          for (const Field& field : sample.fields) members.emplace_back(field.member, field.bytes);
      const std::string name = url.substr(url.rfind('/') + 1);
      result += (result.empty() ? "" : "::") + folder_.write("less/" + name, test::archive(members));
    }
    return result;
  }
  static void index(const std::string& urls) {
    for (const std::string& url : WebDataset(urls).urls()) ASSERT_TRUE(write_index(url, *index_shard(url)));
  }
  Keys taken(const std::string& condition) {
    return keys(all(*WebDataset(folder_.path("c.tar")).to_tuple("__key__").where(condition).batch(4).open()));
  }
};

TEST_F(FilterTest, ConditionsLookAtMembersKeysAndJson) {
  folder_.write("c.tar", test::archive({{"a.cls", "0"},
                                        {"a.JSON", R"({"split": "train", "size": {"w": 224}})"},
                                        {"b.cls", " 3\n"},
                                        {"b.json", R"({"split": "test", "size": {"w": 1e2}})"},
                                        {"c.cls", "7"},
                                        {"c.json", R"({"split": null, "good": true})"},
                                        {"da.cls", "x"}}));
  EXPECT_THAT(taken("cls in 0,3"), ElementsAre("a", "b"));
  EXPECT_THAT(taken("cls not in 0, 3"), ElementsAre("c", "da"));
  EXPECT_THAT(taken("CLS=7.0"), ElementsAre("c"));
  EXPECT_THAT(taken("cls != x"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(taken("cls<=3"), ElementsAre("a", "b"));
  EXPECT_THAT(taken("cls > 3"), ElementsAre("c"));
  EXPECT_THAT(taken("json:split = train"), ElementsAre("a"));
  EXPECT_THAT(taken("json:split != train"), ElementsAre("b"));
  EXPECT_THAT(taken("json:size.w >= 100"), ElementsAre("a", "b"));
  EXPECT_THAT(taken("json:size.w = 100"), ElementsAre("b"));
  EXPECT_THAT(taken("json:good = true"), ElementsAre("c"));
  EXPECT_THAT(taken("__key__ like ?a"), ElementsAre("da"));
  EXPECT_THAT(taken("__key__ not like *a"), ElementsAre("b", "c"));
  EXPECT_THAT(taken("__key__ in c,a"), ElementsAre("a", "c"));
}

TEST_F(FilterTest, SenselessConditionsAreNamed) {
  const auto error = [](const std::string& condition) {
    return test::thrown([&] { WebDataset("x.tar").where(condition); });
  };
  EXPECT_THAT(error("cls"), HasSubstr("the condition 'cls' has no operator: expected such as 'cls in 0,3'"));
  EXPECT_THAT(error("cls not 3"), HasSubstr("has no operator"));
  EXPECT_THAT(error("cls inside 3"), HasSubstr("has no operator"));
  EXPECT_THAT(error(" = 3"), HasSubstr("names no member"));
  EXPECT_THAT(error("json:a..b = 3"), HasSubstr("names no field of the JSON"));
  EXPECT_THAT(error("cls in 1,,2"), HasSubstr("has an empty value"));
  EXPECT_THAT(error("cls ="), HasSubstr("has an empty value"));
  EXPECT_THAT(error("cls < many"), HasSubstr("compares with 'many', which is not a number"));
}

TEST_F(FilterTest, TheOrderIsThatOfASetWithoutTheOthers) {
  const std::string urls = shards(5, 23), less = without(urls, "035");
  for (const bool indexed : {false, true}) {
    if (indexed) index(urls);
    for (const int parts : {1, 2}) {
      for (int part = 0; part < parts; ++part) {
        for (const bool shuffled : {false, true}) {
          auto filtered = dataset(urls).where("cls in 0,3,5"), smaller = dataset(less);
          if (shuffled) filtered.shuffle(12).interleave(4), smaller.shuffle(12).interleave(4);
          EXPECT_EQ(filtered.size(), smaller.size());
          EXPECT_EQ(filtered.left_out(), 5 * 23 - smaller.size());
          EXPECT_EQ(filtered.batches(parts), smaller.batches(parts));
          for (const int skip : {0, 1})
            EXPECT_EQ(everything(*filtered.open(1, part, parts, skip)),
                      everything(*smaller.open(1, part, parts, skip)))
                << indexed << parts << part << shuffled << skip;
        }
      }
    }
  }
}

TEST_F(FilterTest, AsTheDocumentationShowsIt) {
  test::Members members;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "k" + std::to_string(100 + i);
    members.emplace_back(key + ".png", png_of(i));
    members.emplace_back(key + ".cls", std::to_string(i % 10));
    members.emplace_back(key + ".json", "\"" + std::string(i < 20 ? 10 : 300, 'x') + "\"");
  }
  const std::string urls = folder_.write("j.tar", test::archive(members));
  // clang-format off
  // [filter]
  auto train = WebDataset(urls)
                   .where("cls in 0,3,5")
                   .filter([](const SampleView& sample) { return sample.member("json")->size() < 200; }, "json")
                   .shuffle(10'000)
                   .images("png")
                   .labels("cls")
                   .batch(8);
  // [end]
  // clang-format on
  EXPECT_EQ(train.size(), 6);
  EXPECT_EQ(train.left_out(), 34);
}

TEST_F(FilterTest, ResumingNeedsTheSameSamples) {
  const std::string urls = shards(4, 20);
  auto filtered = dataset(urls).where("cls < 6").shuffle(10).interleave(2);
  auto stream = filtered.open(0);
  stream->next();
  const std::string state = stream->state();
  std::string rest = everything(*stream);
  // Another function that takes the same.
  auto same = dataset(urls)
                  .filter([](const SampleView& sample) { return sample.member("cls")->front() < '6'; }, "cls")
                  .shuffle(10)
                  .interleave(2);
  EXPECT_EQ(everything(*same.resume(state, {})), rest);
  // As many others.
  auto others = dataset(urls).where("cls > 3").shuffle(10).interleave(2);
  EXPECT_THAT(test::thrown([&] { others.resume(state, {}); }), HasSubstr("filter is "));
}

TEST_F(FilterTest, NumbersAndKeysAreThoseOfWhatIsTaken) {
  const std::string urls = shards(2, 20);
  auto filtered = dataset(urls).where("cls = 3");
  EXPECT_EQ(filtered[2].key, "k1023");
  EXPECT_EQ(filtered.find("k1023"), 2);
  EXPECT_EQ(filtered.find("k1022"), std::nullopt);
  EXPECT_THAT(test::thrown([&] { filtered[4]; }), HasSubstr("sample 4 of 4"));
}

TEST_F(FilterTest, AMixtureTakesEachSourcesOwn) {
  const std::string urls = shards(2, 20);
  const auto source = [&](const char* condition) {
    return dataset(urls).where(condition).shuffle(8).interleave(2).batch(4);
  };
  const auto mixture = Mix::join({source("cls = 3"), source("cls in 5,6")});
  EXPECT_EQ(mixture.size(), 12);
  for (const Batch& batch : all(*mixture.open(OpenOptions{})))
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      const auto label = batch.label.data<std::int64_t>()[i];
      EXPECT_TRUE(batch.sources[i] == 0 ? label == 3 : label == 5 || label == 6);
    }
}

TEST_F(FilterTest, PaddingLooksLikeASampleThatIsTaken) {
  const std::string path = folder_.write(
      "s.tar", test::archive({{"a.png", "damaged"}, {"a.cls", "0"}, {"b.png", png_of(1)}, {"b.cls", "1"}}));
  const auto batches = all(*dataset(path).where("cls = 1").pad().batch(1).open(0, 1, 2));
  ASSERT_THAT(batches, SizeIs(1));
  EXPECT_EQ(batches[0].count, 0);
  EXPECT_EQ(batches[0].image.shape(), (std::vector<std::int64_t>{1, 3, 4, 4}));
}

TEST_F(FilterTest, NothingLeftIsAnError) {
  const std::string urls = shards(2, 20);
  EXPECT_THAT(test::thrown([&] { dataset(urls).where("clas in 1").where("cls = 1").size(); }),
              HasSubstr("0 of the 40 samples of " + folder_.path("s-0.tar") +
                        " and others are taken: expected some for which 'clas in 1' and 'cls = 1' holds"));
  EXPECT_THAT(test::thrown([&] { dataset("-").where("cls = 1").open(); }), HasSubstr("or filtered"));
}

TEST_F(FilterTest, AFilterThatFailsNamesTheSample) {
  const std::string urls = shards(1, 5, {{"z.png", png_of(0)}, {"z.cls", "1"}, {"z.json", "{\"a\": "}});
  auto filtered = dataset(urls).filter([](const SampleView& sample) {
    if (sample.key() == "k1002") throw std::runtime_error("no opinion");
    return true;
  });
  EXPECT_THAT(test::thrown([&] { filtered.size(); }),
              HasSubstr("s-0.tar: sample k1002 (at byte 4096): in the filter 'filter()': no opinion"));
  EXPECT_EQ(filtered.on_error(OnError::kSkip).size(), 5);
  EXPECT_THAT(test::thrown([&] { dataset(urls).where("json:a = 1").size(); }),
              HasSubstr("in the filter 'json:a = 1': not valid JSON"));
}

TEST_F(FilterTest, WhatCannotBeReadIsABadSampleNotOneLeftOut) {
  const std::string urls = shards(1, 20);
  index(urls);
  const std::string path = folder_.path("s-0.tar");
  std::string bytes = *base::read_file(path);
  bytes[15 * 2048 + 10] ^= 1;  // a header in the last quarter
  ASSERT_TRUE(base::write_file_atomically(path, bytes));
  EXPECT_THAT(test::thrown([&] { dataset(urls).where("cls = 3").size(); }), HasSubstr("damaged"));
  auto filtered = dataset(urls).where("cls = 3").on_error(OnError::kSkip).max_bad(10);
  EXPECT_EQ(filtered.size(), 2 + 5);  // 3 and 13, and all from the damage on
  const auto stream = filtered.open(0);
  all(*stream);
  EXPECT_GE(stream->statistics().bad, 1);
}

}  // namespace
}  // namespace sluice::data
