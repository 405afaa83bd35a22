// What a pickle may not do: lie so deep in itself that whoever follows it, or frees it, runs out of stack.
#include "sluice/session/files/unpickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::sessions::pickle {
namespace {

using testing::HasSubstr;

class NoObjects : public Objects {
 public:
  base::Result<Ref> load(const Ref&) override { return make(Kind::kNone); }
  base::Result<Ref> call(const std::string&, const std::vector<Ref>&) override { return make(Kind::kNone); }
};

base::Result<Ref> loaded(const std::string& bytes) {
  NoObjects objects;
  return load(bytes, "x.pt", objects);
}

// Opcodes: ) an empty tuple, \x85 a tuple of the top, . the end.
std::string tuples(size_t depth) { return ")" + std::string(depth - 1, '\x85'); }

TEST(Unpickle, ContainersMayBe64Deep) {
  EXPECT_TRUE(loaded(tuples(64) + "."));
  EXPECT_THAT(loaded(tuples(65) + ".").error().what(), HasSubstr("deeper than 64"));
}

TEST(Unpickle, AMillionLevelsAreAnErrorAlsoWhereTheyAreNotTheResult) {
  const std::string deep = tuples(1'000'000);
  EXPECT_FALSE(loaded(deep + "."));
  EXPECT_FALSE(loaded(deep + "0N."));  // dropped
  EXPECT_FALSE(loaded(deep + "q\x01"
                             "0N."));   // kept in the memo
  EXPECT_FALSE(loaded(deep + "\xff"));  // cut off by an opcode that there is not
}

TEST(Unpickle, NothingHoldsItself) {
  // ] an empty list, q and h: into the memo and out of it, a: append.
  EXPECT_THAT(loaded(std::string("]q\0h\0a.", 7)).error().what(), HasSubstr("holds itself"));
  // A dict whose only value is that dict: } an empty dict, s: set.
  EXPECT_FALSE(loaded(std::string("}q\0Nh\0s.", 8)));
}

TEST(Unpickle, TheSameObjectMayStandInManyPlaces) {
  // Each tuple has the one before twice: 2 to the power of 40 leaves, and 41 containers.
  std::string bytes = ")";
  for (char key = 0; key < 40; ++key) bytes += std::string("q") + key + "h" + key + "\x86";
  EXPECT_TRUE(loaded(bytes + "."));
}

}  // namespace
}  // namespace sluice::sessions::pickle
