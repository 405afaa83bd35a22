#include "sluice/data/order/sequence_packer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "sluice/base/random.h"

namespace sluice::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The definition, slowly: every place of every sequence, and all that are open looked at from the first on.
std::vector<std::vector<std::int64_t>> slowly(const std::vector<std::int64_t>& lengths, std::int64_t length,
                                              std::size_t window) {
  std::vector<std::vector<std::int64_t>> open, done;
  for (std::size_t document = 0; document < lengths.size(); ++document) {
    const auto size = static_cast<std::size_t>(lengths[document]), room = static_cast<std::size_t>(length);
    if (size == 0) continue;
    bool placed = false;
    for (auto& tokens : open) {
      if (placed || tokens.size() + size > room) continue;
      tokens.insert(tokens.end(), size, static_cast<std::int64_t>(document));
      placed = true;
    }
    if (!placed) open.emplace_back(size, static_cast<std::int64_t>(document));
    for (std::size_t i = open.size(); i-- > 0;)
      if (open[i].size() == room) {
        done.push_back(open[i]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      }
    if (open.size() > window) {
      done.push_back(open.front());
      open.erase(open.begin());
    }
  }
  done.insert(done.end(), open.begin(), open.end());
  return done;
}

std::vector<std::int64_t> tokens_of(const PackedSequence& sequence) {
  std::vector<std::int64_t> tokens;
  for (const PackedDocument& one : sequence.documents) {
    EXPECT_EQ(one.begin, static_cast<std::int64_t>(tokens.size()));
    tokens.insert(tokens.end(), static_cast<std::size_t>(one.length), one.document);
  }
  return tokens;
}

std::vector<std::int64_t> random_lengths(std::uint64_t seed, std::size_t count, std::uint64_t most) {
  base::Random random({seed});
  std::vector<std::int64_t> lengths(count);
  for (auto& length : lengths) length = static_cast<std::int64_t>(random.below(most + 1));
  return lengths;
}

TEST(SequencePacker, PacksAsTheDefinitionSays) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto lengths = random_lengths(seed, 300, 1 + seed % 4 * 5);
    const auto window = static_cast<std::int64_t>(1 + seed % 7);
    SequencePacker packer(17, window);
    std::vector<PackedSequence> done;
    for (const std::int64_t length : lengths) ASSERT_TRUE(packer.add(length, done));
    packer.finish(done);
    std::vector<std::vector<std::int64_t>> found;
    for (const PackedSequence& sequence : done) found.push_back(tokens_of(sequence));
    EXPECT_EQ(found, slowly(lengths, 17, static_cast<std::size_t>(window))) << seed;
  }
}

TEST(SequencePacker, LittleIsPadding) {
  const auto lengths = random_lengths(1, 20'000, 2048);
  SequencePacker packer(2048, 64);
  std::vector<PackedSequence> done;
  for (const std::int64_t length : lengths) ASSERT_TRUE(packer.add(length, done));
  packer.finish(done);
  const auto used = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  EXPECT_GT(static_cast<double>(used) / static_cast<double>(done.size() * 2048), 0.9);
}

TEST(SequencePacker, WhatWaitsIsAllThatAStoppedReaderNeeds) {
  const auto lengths = random_lengths(7, 200, 9);
  SequencePacker packer(16, 3);
  std::vector<PackedSequence> done;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    ASSERT_TRUE(packer.add(lengths[i], done));
    // Each document is in a sequence that came out, or waits.
    std::vector<std::int64_t> seen = packer.waiting();
    for (const PackedSequence& sequence : done)
      for (const PackedDocument& one : sequence.documents) seen.push_back(one.document);
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> added;
    for (std::size_t document = 0; document <= i; ++document)
      if (lengths[document] > 0) added.push_back(static_cast<std::int64_t>(document));
    ASSERT_EQ(seen, added);
  }
}

TEST(SequencePacker, WhatIsTooLongIsAnErrorOrCutAndCounted) {
  std::vector<PackedSequence> done;
  SequencePacker strict(8, 2);
  ASSERT_TRUE(strict.add(3, done));
  EXPECT_THAT(strict.add(9, done).error().what(),
              HasSubstr("document 1 has a length of 9: expected at most 8"));
  SequencePacker cutting(8, 2, TooLong::kCut);
  ASSERT_TRUE(cutting.add(9, done));
  EXPECT_EQ(cutting.cut(), 1);
  EXPECT_THAT(done.at(0).documents, ElementsAre(PackedDocument{0, 0, 8}));
}

TEST(SequencePacker, BordersTellDocumentsApart) {
  const PackedSequence sequence{{{4, 0, 2}, {9, 2, 3}}};
  std::vector<std::int32_t> ordinals(7, -1), positions(7, -1);
  fill_borders(sequence, 7, ordinals.data(), positions.data());
  EXPECT_THAT(ordinals, ElementsAre(1, 1, 2, 2, 2, 0, 0));
  EXPECT_THAT(positions, ElementsAre(0, 1, 0, 1, 2, 0, 0));
}

}  // namespace
}  // namespace sluice::data
