// The tokens of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::text {

// A part of a text, in bytes.
struct Span {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

// All lists have one entry for each token.
struct Encoding {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> type_ids;   // 0 for the first text and 1 for the second, or as the file says
  std::vector<std::uint32_t> special;    // 1: added by the file's template or padding, not part of the text
  std::vector<std::uint32_t> attention;  // 0: padding
  // The part of its text that each token stands for; {0, 0}: no part. Empty unless requested.
  std::vector<Span> offsets;
  std::vector<std::string> tokens;  // as the file spells them; empty unless offsets are requested
};

}  // namespace sluice::text
SLUICE_API_END
