#include "sluice/text/token_windows.h"

#include <algorithm>
#include <bit>

#include "sluice/base/random.h"
#include "sluice/base/result.h"

namespace sluice::text {

TokenWindows::TokenWindows(TokenSet set, const WindowOptions& options)
    : set_(std::move(set)), options_(options) {
  if (options.length <= options.overlap)
    throw_error(Code::kInvalidArgument, base::str("windows of ", options.length, " tokens that share ",
                                                  options.overlap, ": expected a length above that"));
  for (const TokenFile& file : set_.files())
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + file.tokens());
  if (set_.tokens() < options.length)
    throw_error(Code::kInvalidArgument,
                base::str("the set has ", set_.tokens(), " tokens: expected at least ", options.length,
                          ", the length of a window"));
  size_ = (set_.tokens() - options.overlap) / (options.length - options.overlap);
}

// Four rounds of a Feistel network permute the numbers below a power of four; one that falls behind the last
// window goes through them again until it does not. So nothing is kept for the order of billions of windows.
std::uint64_t TokenWindows::drawn(std::uint64_t epoch, std::uint64_t place) const {
  const int half = (std::bit_width(size_ - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t high = place >> half, low = place & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed = high ^ (base::key({options_.seed, epoch, round, low}) & mask);
      high = low;
      low = mixed;
    }
    place = high << half | low;
  } while (place >= size_);
  return place;
}

std::vector<std::uint32_t> TokenWindows::window(std::uint64_t epoch, std::uint64_t place) const {
  if (place >= size_) throw_error(Code::kOutOfRange, base::str("window ", place, " of ", size_));
  const std::uint64_t number = options_.shuffle ? drawn(epoch, place) : place;
  std::uint64_t begin = number * (options_.length - options_.overlap);
  std::vector<std::uint32_t> ids(options_.length);
  auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
  for (std::size_t done = 0; done < ids.size(); ++file) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(ids.size() - done, ends_[file] - begin));
    const TokenFile& from = set_.files()[file];
    from.copy(begin - (ends_[file] - from.tokens()), count, ids.data() + done);
    done += count;
    begin += count;
  }
  return ids;
}

}  // namespace sluice::text
