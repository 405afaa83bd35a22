#include "sluice/text/token_windows.h"

#include "sluice/base/result.h"
#include "sluice/text/permutation.h"

namespace sluice::text {

TokenWindows::TokenWindows(TokenSet set, const WindowOptions& options)
    : set_(std::move(set)), options_(options) {
  if (options.length <= options.overlap)
    throw_error(Code::kInvalidArgument, base::str("windows of ", options.length, " tokens that share ",
                                                  options.overlap, ": expected a length above that"));
  if (set_.tokens() < options.length)
    throw_error(Code::kInvalidArgument,
                base::str("the set has ", set_.tokens(), " tokens: expected at least ", options.length,
                          ", the length of a window"));
  size_ = (set_.tokens() - options.overlap) / (options.length - options.overlap);
}

std::vector<std::uint32_t> TokenWindows::window(std::uint64_t epoch, std::uint64_t place) const {
  if (place >= size_) throw_error(Code::kOutOfRange, base::str("window ", place, " of ", size_));
  const std::uint64_t number = options_.shuffle ? permuted(place, size_, options_.seed, epoch) : place;
  std::vector<std::uint32_t> ids(options_.length);
  set_.copy(number * (options_.length - options_.overlap), ids.size(), ids.data());
  return ids;
}

}  // namespace sluice::text
