#include "sluice/text/token_batches.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/text/epoch_count.h"
#include "sluice/text/masking.h"
#include "sluice/text/test_tokenizer.h"
#include "sluice/text/test_tokens.h"
#include "sluice/text/token_rows.h"

namespace sluice::text {
namespace {

using test::thrown;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;
using Numbers = std::vector<std::int64_t>;

// Rows of a column.
template <typename T>
std::vector<Numbers> rows_of(const data::Column& column) {
  const auto& shape = column.array.shape();
  const std::int64_t width = shape.size() > 1 ? shape[1] : 1;
  std::vector<Numbers> rows;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const T* const row = column.array.data<T>() + i * width;
    rows.emplace_back(row, row + width);
  }
  return rows;
}
std::vector<Numbers> ids_of(const data::Batch& batch) { return rows_of<std::int64_t>(batch.columns[0]); }

class Batches : public ::testing::Test {
 protected:
  // Documents of these lengths, of ids that all differ, cut into files of three documents each.
  TokenSet set(const std::vector<std::size_t>& lengths, std::uint32_t first_id = 10) {
    std::vector<TokenFile> files;
    std::uint32_t next = first_id;
    for (std::size_t begin = 0; begin < lengths.size(); begin += 3) {
      std::vector<Ids> documents;
      for (std::size_t i = begin; i < std::min(begin + 3, lengths.size()); ++i) {
        Ids ids(lengths[i]);
        for (std::uint32_t& id : ids) id = next++;
        documents.push_back(std::move(ids));
      }
      files.push_back(test::token_file(folder_.path(std::to_string(++files_)), documents));
    }
    return TokenSet(std::move(files));
  }
  static TokenSet random_set(Batches& self, std::size_t documents, std::size_t longest) {
    base::Random random({7});
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < documents; ++i) lengths.push_back(1 + random.below(longest));
    return self.set(lengths);
  }

  // Documents of 1 to 32 tokens: a file of its own costs more than counting a thousand documents.
  TokenSet in_one_file(std::size_t documents) {
    std::vector<Ids> ids;
    for (std::size_t i = 0; i < documents; ++i) ids.emplace_back(1 + (7 * i * i + i / 5) % 32, 5);
    return TokenSet({test::token_file(folder_.path(base::str("one-", ++files_)), ids)});
  }

  static std::vector<data::Batch> all(const TokenBatches& batches, const data::OpenOptions& options = {}) {
    std::vector<data::Batch> result;
    for (auto stream = batches.open(options); auto batch = stream->next();)
      result.push_back(std::move(*batch));
    return result;
  }

  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
  int files_ = 0;
};

TEST_F(Batches, RunningRowsShareTheTokenThatIsOnlyPredicted) {
  const TokenBatches batches(set({4, 3, 4}, 0), {.shapes = {{2, 2}}, .next_token = true, .shuffle = false});
  const auto found = all(batches);
  ASSERT_EQ(found.size(), 2u);  // the fifth row fills no batch
  EXPECT_EQ(batches.batches(1, 0), 2);
  EXPECT_THAT(ids_of(found[0]), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(2, 3, 4)));
  EXPECT_THAT(ids_of(found[1]), ElementsAre(ElementsAre(4, 5, 6), ElementsAre(6, 7, 8)));
  const auto facts = batches.facts(1);
  EXPECT_EQ(facts.tokens, 8u);
  EXPECT_EQ(facts.dropped_rows, 1u);
}

TEST_F(Batches, PaddedRowsAreEmptyAndTold) {
  const TokenBatches batches(set({5}, 1), {.shapes = {{2, 2}}, .padding = 9, .shuffle = false, .pad = true});
  const auto found = all(batches);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 2);
  const TokenBatches odd(set({6}, 1), {.shapes = {{2, 2}}, .padding = 9, .shuffle = false, .pad = true});
  const auto last = all(odd).at(1);
  EXPECT_THAT(ids_of(last), ElementsAre(ElementsAre(5, 6), ElementsAre(9, 9)));
  EXPECT_EQ(last.count, 1);
  EXPECT_TRUE(last.mask.data<bool>()[0]);
  EXPECT_FALSE(last.mask.data<bool>()[1]);
}

TEST_F(Batches, EveryDocumentComesOnceInAListedShape) {
  const std::vector<data::LengthShape> shapes = {{4, 32}, {8, 16}, {16, 8}};
  const TokenBatches batches(random_set(*this, 300, 32),
                             {.kind = RowKind::kDocuments, .shapes = shapes, .seed = 3, .pad = true});
  for (const std::int64_t replicas : {1, 2}) {
    std::set<std::int64_t> first_ids;
    std::int64_t documents = 0, count = 0;
    for (const data::Batch& batch : all(batches, {.replicas = replicas})) {
      ++count;
      const auto& shape = batch.columns[0].array.shape();
      EXPECT_THAT(shapes, Contains(data::LengthShape{shape[0] / replicas, shape[1]}));
      const auto rows = ids_of(batch);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t length = batch.lengths.data<std::int64_t>()[i];
        if (!batch.mask.data<bool>()[i]) {
          EXPECT_EQ(length, 0);
          continue;
        }
        ++documents;
        first_ids.insert(rows[i][0]);
        EXPECT_TRUE(length > shape[1] / 2 || shape[1] == 8) << "in the shortest shape that holds it";
        EXPECT_THAT(Numbers(rows[i].begin() + length, rows[i].end()), Each(0));
        for (std::int64_t j = 1; j < length; ++j) EXPECT_EQ(rows[i][j], rows[i][0] + j);
      }
    }
    EXPECT_EQ(documents, 300);
    EXPECT_EQ(first_ids.size(), 300u);
    EXPECT_EQ(batches.batches(replicas, 0), count);
  }
}

TEST_F(Batches, PackedRowsHoldWholeDocumentsWithTheirBorders) {
  const TokenBatches batches(set({3, 2, 4, 1, 5}), {.kind = RowKind::kPacked,
                                                    .shapes = {{2, 8}},
                                                    .begin = 1,
                                                    .padding = 0,
                                                    .shuffle = false,
                                                    .pad = true});
  const auto found = all(batches);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(ids_of(found[0]), ElementsAre(ElementsAre(1, 10, 11, 12, 1, 13, 14, 0),
                                            ElementsAre(1, 15, 16, 17, 18, 1, 19, 0)));
  EXPECT_THAT(rows_of<std::int32_t>(found[0].columns[1])[1], ElementsAre(1, 1, 1, 1, 1, 2, 2, 0));
  EXPECT_THAT(rows_of<std::int32_t>(found[0].columns[2])[1], ElementsAre(0, 1, 2, 3, 4, 0, 1, 0));
  EXPECT_THAT(ids_of(found[1]).at(0), ElementsAre(1, 20, 21, 22, 23, 24, 0, 0));
}

// At an epoch's end documents that fill no batch of their shape come in batches of longer ones.
TEST_F(Batches, AnEpochLeavesOutLessThanOneBatchOfTheLongestShape) {
  const TokenBatches batches(random_set(*this, 300, 32),
                             {.kind = RowKind::kDocuments, .shapes = {{4, 32}, {8, 16}, {16, 8}}, .seed = 3});
  bool longer = false;
  for (const std::int64_t replicas : {1, 2, 4}) {
    std::set<std::int64_t> first_ids;
    for (const data::Batch& batch : all(batches, {.replicas = replicas})) {
      EXPECT_EQ(batch.count, batch.size());  // whole batches only
      const auto rows = ids_of(batch);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        first_ids.insert(rows[i][0]);
        const auto length = static_cast<std::size_t>(batch.lengths.data<std::int64_t>()[i]);
        longer = longer || (rows[i].size() > 8 && length <= rows[i].size() / 2);
        for (std::size_t j = 0; j < rows[i].size(); ++j)
          EXPECT_EQ(rows[i][j], j < length ? rows[i][0] + static_cast<std::int64_t>(j) : 0);
      }
    }
    const TokenBatchFacts facts = batches.facts(replicas);
    EXPECT_EQ(first_ids.size(), facts.rows);
    EXPECT_EQ(facts.rows + facts.dropped_rows, 300u);
    EXPECT_LT(facts.dropped_rows, static_cast<std::uint64_t>(4 * replicas));
  }
  EXPECT_TRUE(longer);
}

TEST_F(Batches, LongDocumentsAreRefusedCutOrSplit) {
  const auto ids = [&](LongDocument how, bool next_token) {
    const TokenBatches batches(set({2, 5}), {.kind = RowKind::kDocuments,
                                             .shapes = {{1, 2}},
                                             .long_document = how,
                                             .next_token = next_token,
                                             .shuffle = false,
                                             .pad = true});
    Numbers firsts;
    for (const auto& batch : all(batches)) firsts.push_back(ids_of(batch)[0][0]);
    const auto facts = batches.facts(1);
    EXPECT_EQ(facts.cut_tokens, how == LongDocument::kCut ? 3u : 0u);
    EXPECT_EQ(facts.split_documents, how == LongDocument::kSplit ? 1u : 0u);
    return firsts;
  };
  EXPECT_THAT(thrown([&] { ids(LongDocument::kError, false); }),
              HasSubstr("document 1 has 5 tokens: expected at most 2 for rows of 2"));
  EXPECT_THAT(ids(LongDocument::kCut, false), ElementsAre(10, 12));
  EXPECT_THAT(ids(LongDocument::kSplit, false), ElementsAre(10, 12, 14, 16));
  EXPECT_THAT(ids(LongDocument::kSplit, true), ElementsAre(10, 12, 14));  // one token alone predicts nothing
}

class EachKind : public Batches, public ::testing::WithParamInterface<RowKind> {
 protected:
  TokenBatches make(bool pad = false) {
    TokenBatchOptions options;
    options.kind = GetParam();
    options.shapes = {{4, 32}};
    if (GetParam() == RowKind::kDocuments) options.shapes = {{4, 32}, {8, 16}};
    options.begin = 1;
    options.end = 2;
    options.padding = 3;
    options.seed = 5;
    options.pad = pad;
    options.masking = MaskingOptions{.mask = 4, .vocabulary = 100'000, .never = {1, 2, 3, 4}};
    return TokenBatches(random_set(*this, 200, 30), options);
  }
};

// Counted in the batches: without padding and what is put around documents and rows.
TEST_P(EachKind, TheTokensOfBatchesAreKnownBefore) {
  for (const bool pad : {false, true}) {
    const TokenBatches batches = make(pad);
    for (const std::int64_t replicas : {1, 2}) {
      std::vector<std::uint64_t> found;
      for (const data::Batch& batch : all(batches, {.epoch = 1, .replicas = replicas})) {
        std::int64_t tokens = GetParam() == RowKind::kRunning ? batch.count * 30 : 0;
        if (GetParam() == RowKind::kDocuments)
          for (std::int64_t i = 0; i < batch.size(); ++i)
            tokens += std::max<std::int64_t>(batch.lengths.data<std::int64_t>()[i] - 2, 0);
        if (GetParam() == RowKind::kPacked)
          for (const auto& row : rows_of<std::int32_t>(batch.columns[1]))
            tokens += std::count_if(row.begin(), row.end(), [](auto document) { return document > 0; }) -
                      2 * *std::max_element(row.begin(), row.end());
        found.push_back(static_cast<std::uint64_t>(tokens));
      }
      EXPECT_EQ(batches.tokens_of_batches(replicas, 1), found);
      EXPECT_EQ(std::accumulate(found.begin(), found.end(), std::uint64_t{0}),
                batches.facts(replicas, 1).tokens);
    }
  }
}

TEST_P(EachKind, GoesOnAtAnyBatch) {
  const TokenBatches batches = make();
  const auto whole = all(batches, {.epoch = 1});
  ASSERT_GT(whole.size(), 3u);
  EXPECT_EQ(static_cast<std::int64_t>(whole.size()), batches.batches(1, 1));
  for (std::size_t k = 0; k <= whole.size(); ++k) {
    data::OpenOptions there{.epoch = 1, .skip_batches = static_cast<std::int64_t>(k)};
    auto stream = batches.resume(batches.state(there), {});
    for (std::size_t i = k; i < whole.size(); ++i) {
      const auto batch = stream->next();
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->index, static_cast<std::int64_t>(i));
      for (std::size_t c = 0; c < batch->columns.size(); ++c) {
        const auto& a = batch->columns[c].array;
        const auto& b = whole[i].columns[c].array;
        ASSERT_EQ(a.shape(), b.shape());
        EXPECT_EQ(std::memcmp(a.data<char>(), b.data<char>(), a.bytes()), 0);
      }
      EXPECT_EQ(stream->state(), batches.state({.epoch = 1, .skip_batches = batch->index + 1}));
    }
    EXPECT_FALSE(stream->next().has_value());
  }
}

TEST_P(EachKind, HostsAndReplicasShareTheRowsOfOneGlobalBatch) {
  const TokenBatches batches = make(/*pad=*/true);
  const auto together = all(batches, {.replicas = 4});
  const auto first = all(batches, {.part = 0, .parts = 2, .replicas = 2});
  const auto second = all(batches, {.part = 1, .parts = 2, .replicas = 2});
  ASSERT_EQ(together.size(), first.size());
  ASSERT_EQ(together.size(), second.size());
  for (std::size_t i = 0; i < together.size(); ++i) {
    auto rows = ids_of(first[i]);
    for (auto& row : ids_of(second[i])) rows.push_back(row);
    EXPECT_EQ(rows, ids_of(together[i]));
    auto keys = first[i].keys;
    keys.insert(keys.end(), second[i].keys.begin(), second[i].keys.end());
    EXPECT_EQ(keys, together[i].keys);
    EXPECT_EQ(first[i].count + second[i].count, together[i].count);
    EXPECT_EQ(first[i].global_count, together[i].count);
    // The same rows as with one replica of four times as many.
    EXPECT_NEAR(first[i].weight + second[i].weight, 2, 1e-6);
  }
}

TEST_P(EachKind, EpochsDiffer) {
  const TokenBatches batches = make();
  EXPECT_NE(ids_of(all(batches, {.epoch = 0})[0]), ids_of(all(batches, {.epoch = 1})[0]));
}

TEST_P(EachKind, OtherDataIsNotGoneOnWith) {
  const TokenBatches batches = make();
  const std::string state = batches.state({.skip_batches = 2});
  EXPECT_NO_THROW(batches.resume(state, {}));
  EXPECT_THAT(thrown([&] { make().resume(state, {}); }), HasSubstr("shards is"));  // files of other names
}

INSTANTIATE_TEST_SUITE_P(Rows, EachKind,
                         ::testing::Values(RowKind::kRunning, RowKind::kDocuments, RowKind::kPacked),
                         [](const auto& info) {
                           return std::string(info.param == RowKind::kRunning     ? "Running"
                                              : info.param == RowKind::kDocuments ? "Documents"
                                                                                  : "Packed");
                         });

TEST_F(Batches, RefuseAnotherSetInMidEpoch) {
  const TokenBatchOptions options{.shapes = {{1, 4}}, .seed = 1};
  const TokenBatches before(set({8, 8}), options), other(set({8, 8}, 90), options);
  TokenBatchOptions seeded = options;
  seeded.seed = 2;
  const TokenBatches drawn(set({8, 8}), seeded);
  const std::string state = before.state({.skip_batches = 1});
  EXPECT_THAT(thrown([&] { drawn.resume(state, {}); }), HasSubstr("seed is 2 now and was 1"));
  EXPECT_THAT(thrown([&] { other.resume(state, {}); }), HasSubstr("cannot continue in mid-epoch"));

  // The masking chooses among other tokens.
  const TokenSet documents = set({8, 8});
  const auto masked = [&](std::uint64_t vocabulary, std::vector<std::uint32_t> never) {
    TokenBatchOptions changed = options;
    changed.masking = MaskingOptions{.mask = 4, .vocabulary = vocabulary, .never = std::move(never)};
    return TokenBatches(documents, changed);
  };
  const std::string hidden = masked(100, {1, 2, 4}).state({.skip_batches = 1});
  EXPECT_NO_THROW(masked(100, {1, 2, 4}).resume(hidden, {}));
  EXPECT_THAT(thrown([&] { masked(100, {1, 4}).resume(hidden, {}); }), HasSubstr("masked is"));
  EXPECT_THAT(thrown([&] { masked(101, {1, 2, 4}).resume(hidden, {}); }), HasSubstr("masked is"));
}

TEST_F(Batches, MaskingDrawsItsShareAndItsThreeKinds) {
  MaskingOptions options{.share = 0.15, .mask = 4, .vocabulary = 1'000'000, .never = {0, 1}};
  Masking masking(options);
  constexpr std::int64_t kLength = 100;
  const std::int64_t count = predictions_of(options, kLength);
  ASSERT_EQ(count, 15);
  int masked = 0, kept = 0, other = 0;
  std::vector<int> at(kLength);
  constexpr int kRows = 2000;
  for (int row = 0; row < kRows; ++row) {
    Numbers ids(kLength), places(count), targets(count);
    for (std::int64_t i = 0; i < kLength; ++i) ids[i] = 1000 + i;
    ids[0] = 0;
    ids[99] = 1;
    masking.draw(base::key({static_cast<std::uint64_t>(row)}), kLength, ids.data(), count, places.data(),
                 targets.data());
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    for (std::int64_t i = 0; i < count; ++i) {
      ++at[places[i]];
      ASSERT_EQ(targets[i], 1000 + places[i]);
      const std::int64_t now = ids[places[i]];
      (now == 4 ? masked : now == targets[i] ? kept : other) += 1;
    }
  }
  const double all = kRows * 15;
  EXPECT_NEAR(masked / all, 0.8, 0.01);
  EXPECT_NEAR(kept / all, 0.1, 0.01);
  EXPECT_NEAR(other / all, 0.1, 0.01);
  EXPECT_EQ(at[0] + at[99], 0);
  for (std::int64_t i = 1; i < 99; ++i) EXPECT_NEAR(at[i], all / 98, 100) << i;
}

TEST_F(Batches, ShortRowsPredictLess) {
  MaskingOptions options{.mask = 4, .vocabulary = 10, .never = {1}};
  Masking masking(options);
  Numbers ids = {1, 7, 1, 0, 0, 0, 0, 0, 0, 0}, places(2), targets(2);
  masking.draw(1, 3, ids.data(), 2, places.data(), targets.data());
  EXPECT_THAT(places, ElementsAre(1, 0));
  EXPECT_THAT(targets, ElementsAre(7, -100));
  Numbers special = {1, 1, 1};
  masking.draw(1, 3, special.data(), 2, places.data(), targets.data());
  EXPECT_THAT(targets, ElementsAre(-100, -100));
  EXPECT_THAT(special, ElementsAre(1, 1, 1));
}

TEST_F(Batches, SayWhatIsWrong) {
  const auto make = [&](const TokenBatchOptions& options) {
    return thrown([&] { TokenBatches(set({3, 4}), options); });
  };
  EXPECT_THAT(make({.shapes = {}}), HasSubstr("need a shape"));
  EXPECT_THAT(make({.kind = RowKind::kPacked, .shapes = {{1, 8}, {2, 4}}}),
              HasSubstr("have one shape, not 2x4,1x8"));
  EXPECT_THAT(make({.shapes = {{1, 2}}, .begin = 0, .end = 1}),
              HasSubstr("1x2: expected one row of 3 tokens"));
  EXPECT_THAT(make({.kind = RowKind::kDocuments, .shapes = {{1, 8}, {2, 8}}}),
              HasSubstr("two have the length 8"));
  EXPECT_THAT(make({.shapes = {{1, 8}}}), HasSubstr("the set has 7 tokens, less than one row of 8"));
  EXPECT_THAT(make({.shapes = {{1, 2}}, .masking = MaskingOptions{.share = 0}}), HasSubstr("above 0"));
  EXPECT_THAT(make({.shapes = {{1, 2}}, .masking = MaskingOptions{.mask = 5, .vocabulary = 5}}),
              HasSubstr("the mask token 5"));
  const TokenBatches small(set({3, 4}), {.shapes = {{1, 2}}, .vocabulary = 14, .shuffle = false});
  EXPECT_THAT(thrown([&] { all(small); }),
              HasSubstr("the id 14 at place 1 of document 1 (token 4 of the file)"));
}

// A start passes each document once, however many things are asked of the epoch, and the next start none.
TEST_F(Batches, DocumentsAreCountedOnce) {
  for (const TokenBatchOptions& options :
       {TokenBatchOptions{.kind = RowKind::kPacked, .shapes = {{2, 32}}, .seed = 3, .packing_window = 4},
        TokenBatchOptions{.kind = RowKind::kDocuments, .shapes = {{2, 16}, {2, 32}}, .seed = 3}})
    for (const std::size_t documents : {300, 3000}) {
      const TokenSet set = in_one_file(documents);
      std::uint64_t before = passed_by_plans();
      const auto passed = [&] { return passed_by_plans() - std::exchange(before, passed_by_plans()); };
      const TokenBatches batches(set, options);
      EXPECT_LT(passed(), 100u) << "a set is opened at a cost that does not depend on its size";
      const auto count = batches.batches(2, 0);
      EXPECT_EQ(passed(), documents);
      const auto tokens = batches.tokens_of_batches(2, 0);
      const TokenBatchFacts facts = batches.facts(2);
      EXPECT_EQ(std::ssize(tokens), count);
      EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0}), facts.tokens);
      EXPECT_EQ(batches.size(), static_cast<std::int64_t>(facts.rows + facts.dropped_rows));
      EXPECT_EQ(passed(), 0u);
      EXPECT_EQ(std::ssize(all(batches, {.replicas = 2})), count);
      // The size that a count for other replicas gives.
      EXPECT_EQ(TokenBatches(set, options).size(), batches.size());
    }
}

TEST_F(Batches, ACountIsKeptForTheNextStart) {
  const std::string folder = folder_.path("kept");
  const TokenBatchOptions options{.kind = RowKind::kPacked, .shapes = {{2, 32}}, .packing_window = 4};
  for (const std::size_t documents : {300, 3000}) {
    const TokenSet set = in_one_file(documents);
    const auto counted = [&](const std::string& order, std::int64_t epoch = 0) {
      const std::uint64_t before = passed_by_plans();
      const EpochCount kept = kept_count(set, options, epoch, 2, order, folder);
      const std::uint64_t passed = passed_by_plans() - before;
      const EpochCount right = count_epoch(set, options, epoch, 2);
      EXPECT_EQ(kept.tokens, right.tokens);
      EXPECT_EQ(text_of(kept.facts), text_of(right.facts));
      EXPECT_EQ(kept.facts.places, right.facts.places);
      return passed;
    };
    EXPECT_EQ(counted("a"), documents);
    EXPECT_EQ(counted("a"), 0u) << documents << " documents";
    EXPECT_EQ(counted("epoch 1", 1), documents);
    EXPECT_EQ(counted("epoch 1", 1), 0u);
    const timespec times[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (set.files()[0].name() + ".idx").c_str(), times, 0), 0);
    EXPECT_EQ(counted("a"), documents) << "a file was written since";
  }
}

}  // namespace
}  // namespace sluice::text
