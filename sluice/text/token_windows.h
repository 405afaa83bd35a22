// Windows of one length over the tokens of a set, for models that are trained on running text.
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
  // The number of tokens that a window shares with the next one: 1 if the last one is only predicted.
  std::size_t overlap = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
};

// The files of the set are read in sequence as one text: documents are not kept apart, and tokens at the end
// that fill no window are left out. The order of an epoch only depends on the seed, the epoch and the number
// of windows, and gives access to any place: a resumed run needs the epoch and the place where it stopped,
// and replica r of n takes the places r, r + n, … Threads: any number of them.
class TokenWindows {
 public:
  // Throws kInvalidArgument unless the length is above the overlap, and for a set without a whole window.
  TokenWindows(TokenSet set, const WindowOptions& options);

  std::uint64_t size() const { return size_; }  // windows of an epoch
  // Returns the window at a place of an epoch. kOutOfRange for a place past the last one.
  std::vector<std::uint32_t> window(std::uint64_t epoch, std::uint64_t place) const;

 private:
  TokenSet set_;
  WindowOptions options_;
  std::uint64_t size_ = 0;
};

}  // namespace sluice::text
SLUICE_API_END
