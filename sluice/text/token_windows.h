// The tokens of a set in windows of one length, for models that are trained on running text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/text/token_file.h"

SLUICE_API_BEGIN
namespace sluice::text {

struct WindowOptions {
  std::size_t length = 1024;  // tokens of a window
  // Tokens that a window shares with the one behind it: 1 where the last one is only to be predicted.
  std::size_t overlap = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
};

// The files of the set are one text, one behind the other; documents are not kept apart, and the tokens at
// the end that fill no window are left out. The order of an epoch depends on the seed, the epoch and the
// number of windows alone, and any place of it can be asked for: a run that goes on needs to know the epoch
// and the place where it stopped, and replica r of n takes the places r, r + n, … Threads: any number of
// them.
class TokenWindows {
 public:
  // Throws kInvalidArgument for a length that is not above the overlap, and for a set without one window.
  TokenWindows(TokenSet set, const WindowOptions& options);

  std::uint64_t size() const { return size_; }  // of an epoch
  // The window at a place of an epoch. kOutOfRange names a place behind the last one.
  std::vector<std::uint32_t> window(std::uint64_t epoch, std::uint64_t place) const;

 private:
  TokenSet set_;
  WindowOptions options_;
  std::uint64_t size_ = 0;
};

}  // namespace sluice::text
SLUICE_API_END
