#include "sluice/session/files/pair_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace sluice::sessions {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PairNames, SaysWhichAreMissingAndWhichAreTooMany) {
  const std::vector<std::string> model = {"fc.weight", "fc.bias", "norm.weight"};
  const NamePairs pairs = pair_names<std::string>(model, {"extra", "fc.bias", "fc.weight", "another"});
  EXPECT_THAT(pairs.places, ElementsAre(2, 1, std::nullopt));
  EXPECT_THAT(pairs.others, ElementsAre(0, 3));
}

TEST(PairNames, EmptyLists) {
  EXPECT_THAT(pair_names<std::string>({}, {}).places, IsEmpty());
  EXPECT_THAT(pair_names<std::string>({"a"}, {}).places, ElementsAre(std::nullopt));
  EXPECT_THAT(pair_names<std::string>({}, {"a"}).others, ElementsAre(0));
}

struct CountedName {
  int number;
  static inline int64_t comparisons = 0;
  bool operator<(const CountedName& other) const {
    ++comparisons;
    return number < other.number;
  }
};

// Compares two lists of `size` names in opposite orders.
int64_t comparisons_of(int size) {
  std::vector<CountedName> first, second;
  for (int i = 0; i < size; ++i) {
    first.push_back({i});
    second.push_back({size - 1 - i});
  }
  CountedName::comparisons = 0;
  EXPECT_THAT(pair_names(first, second).others, IsEmpty());
  return CountedName::comparisons;
}

TEST(PairNames, ComparisonsGrowAsNLogN) {
  const auto few = static_cast<double>(comparisons_of(1000));
  const auto many = static_cast<double>(comparisons_of(100000));
  const double exponent = std::log(many / few) / std::log(100.0);
  EXPECT_LE(exponent, 1.15) << few << " and " << many << " comparisons";
}

}  // namespace
}  // namespace sluice::sessions
