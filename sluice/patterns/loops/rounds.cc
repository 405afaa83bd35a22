// Every maximal repeat has a Lyndon word as a root of its period, for one of the two orders of the symbols,
// so it is enough to look at the longest Lyndon word at each position (Bannai et al., "The 'runs' theorem").
// Positions are compared by hashes of the symbols from there on.
#include "sluice/patterns/loops/rounds.h"

#include <algorithm>
#include <tuple>

namespace sluice::patterns {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t times(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  const uint64_t sum = static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}

// Finds how far the sequence is equal at two positions.
class Comparer {
 public:
  explicit Comparer(std::span<const uint32_t> symbols) : symbols_(symbols) {
    hashes_.resize(symbols.size() + 1);
    powers_.resize(symbols.size() + 1, 1);
    constexpr uint64_t kBase = 0x1234567890ABCDEull;
    for (size_t i = 0; i < symbols.size(); ++i) {
      hashes_[i + 1] = (times(hashes_[i], kBase) + symbols[i] + 1) % kPrime;
      powers_[i + 1] = times(powers_[i], kBase);
    }
  }

  size_t size() const { return symbols_.size(); }
  uint32_t at(size_t i) const { return symbols_[i]; }

  // Counts the equal symbols from i and from j on; i < j.
  size_t ahead(size_t i, size_t j) const {
    return longest(size() - j, [&](size_t n) { return hash(i, n) == hash(j, n); });
  }
  // Counts the equal symbols in front of i and of j; i < j.
  size_t behind(size_t i, size_t j) const {
    return longest(i, [&](size_t n) { return hash(i - n, n) == hash(j - n, n); });
  }

 private:
  uint64_t hash(size_t begin, size_t count) const {
    const uint64_t front = times(hashes_[begin], powers_[count]);
    const uint64_t all = hashes_[begin + count];
    return all >= front ? all - front : all + kPrime - front;
  }

  // Returns the largest n up to limit for which `holds` is true; it must be true for all smaller ones.
  template <typename Holds>
  static size_t longest(size_t limit, const Holds& holds) {
    size_t good = 0, step = 1;
    while (good + step <= limit && holds(good + step)) {
      good += step;
      step *= 2;
    }
    for (; step > 0; step /= 2)
      if (good + step <= limit && holds(good + step)) good += step;
    return good;
  }

  std::span<const uint32_t> symbols_;
  std::vector<uint64_t> hashes_, powers_;
};

// Adds the repeats with a root that is a Lyndon word of the order, or of the opposite one.
void add_repeats(const Comparer& c, bool opposite, size_t min_rounds, std::vector<Repeat>& found) {
  const size_t n = c.size();
  const auto smaller = [&](size_t i, size_t j) {  // the suffix at i comes before the suffix at j; i < j
    const size_t equal = c.ahead(i, j);
    if (j + equal == n) return false;
    return (c.at(i + equal) < c.at(j + equal)) != opposite;
  };
  std::vector<size_t> end(n);  // of the longest Lyndon word that begins here
  for (size_t i = n; i-- > 0;) {
    size_t j = i + 1;
    while (j < n && smaller(i, j)) j = end[j];
    end[i] = j;
    const size_t period = j - i;
    if (j >= n || period > n / min_rounds) continue;
    const Repeat repeat{i - c.behind(i, j), j + c.ahead(i, j), period};
    if (repeat.rounds() >= min_rounds) found.push_back(repeat);
  }
}

}  // namespace

std::vector<Repeat> find_repeats(std::span<const uint32_t> symbols, size_t min_rounds) {
  std::vector<Repeat> found;
  if (symbols.size() < min_rounds) return found;
  const Comparer comparer(symbols);
  add_repeats(comparer, false, min_rounds, found);
  add_repeats(comparer, true, min_rounds, found);
  std::sort(found.begin(), found.end(), [](const Repeat& a, const Repeat& b) {
    return std::tie(a.period, a.begin) < std::tie(b.period, b.begin);
  });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace sluice::patterns
