// Hashes, and the table that finds values by them.
#include "sluice/base/formats/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/interner.h"

namespace sluice::base {
namespace {

// Values from the authors' page, http://www.isthe.com/chongo/tech/comp/fnv/.
TEST(Hash, TextsAreHashedByFnv1a) {
  EXPECT_EQ(hash_text(""), 0xCBF29CE484222325ull);
  EXPECT_EQ(hash_text("a"), 0xAF63DC4C8601EC8Cull);
  EXPECT_EQ(hash_text("foobar"), 0x85944171F73967E8ull);
}

TEST(Hash, OrderAndLengthOfWordsCount) {
  using Words = std::vector<int64_t>;
  const std::set<uint64_t> different = {hash_words(1, Words{}),     hash_words(2, Words{}),
                                        hash_words(1, Words{2}),    hash_words(1, Words{2, 3}),
                                        hash_words(1, Words{3, 2}), hash_words(1, Words{2, 3, 0}),
                                        hash_words(0, Words{}),     hash_words(0, Words{0})};
  EXPECT_EQ(different.size(), 8u);
  EXPECT_EQ(hash_words(1, Words{2, 3}), hash_words(1, std::vector<uint64_t>{2, 3}));
}

struct Word {
  std::string text;
  size_t number;
};

const Word& intern(Interner<Word>& table, const std::string& text, uint64_t hash) {
  return table.find(
      hash, [&](const Word& word) { return word.text == text; },
      [&](size_t number) {
        return Word{text, number};
      });
}

TEST(Interner, EqualValuesHaveOneAddress) {
  Interner<Word> table;
  const Word& a = intern(table, "a", 7);
  const Word& b = intern(table, "b", 7);  // a collision
  EXPECT_NE(&a, &b);
  EXPECT_EQ(&intern(table, "a", 7), &a);
  EXPECT_EQ(&intern(table, "b", 7), &b);
  EXPECT_EQ(a.number, 0u);
  EXPECT_EQ(b.number, 1u);
}

TEST(Interner, AddressesStayWhileThreadsAdd) {
  Interner<Word> table;
  std::vector<std::vector<const Word*>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&table, &mine] {
      for (int i = 0; i < 1000; ++i) {
        const std::string text = std::to_string(i);
        mine.push_back(&intern(table, text, hash_text(text)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : seen) EXPECT_EQ(other, seen.front());
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(seen.front()[i]->text, std::to_string(i));
}

}  // namespace
}  // namespace sluice::base
