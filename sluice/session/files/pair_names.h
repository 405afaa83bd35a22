// Finds which of two lists have the same names, such as a model's tensors and those of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace sluice::sessions {

struct NamePairs {
  std::vector<std::optional<size_t>> places;  // for each name of the first list, where the second list has it
  std::vector<size_t> others;                 // the places of the second list's other names, in their order
};

// Takes O(N log N) comparisons for N names. A name that a list has twice is paired with one of the two.
template <typename Name>
NamePairs pair_names(const std::vector<Name>& first, const std::vector<Name>& second) {
  std::vector<size_t> order(second.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return second[a] < second[b]; });
  NamePairs pairs;
  std::vector<bool> paired(second.size(), false);
  for (const Name& name : first) {
    const auto found = std::lower_bound(order.begin(), order.end(), name,
                                        [&](size_t at, const Name& wanted) { return second[at] < wanted; });
    const bool same = found != order.end() && !(name < second[*found]);
    pairs.places.push_back(same ? std::optional(*found) : std::nullopt);
    if (same) paired[*found] = true;
  }
  for (size_t i = 0; i < second.size(); ++i)
    if (!paired[i]) pairs.others.push_back(i);
  return pairs;
}

}  // namespace sluice::sessions
