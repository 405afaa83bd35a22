// Truncation and padding of what a tokenizer makes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/text/encoding.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

enum class Side { kLeft, kRight };

struct Truncation {
  enum class Strategy { kLongestFirst, kOnlyFirst, kOnlySecond };
  std::size_t length = 0;  // tokens, special ones included
  Strategy strategy = Strategy::kLongestFirst;
  Side side = Side::kRight;  // where tokens are left out
};
// Nothing for null.
base::Result<std::optional<Truncation>> read_truncation(const Json& json, const std::string& where);
// `added`: special tokens that come later. kInvalidArgument where there is no room for them, or one text
// alone cannot be cut enough.
base::Status truncate(const Truncation& truncation, std::size_t added, Encoding& first, Encoding* second);

struct Padding {
  std::optional<std::size_t> length;  // tokens; nothing: as long as the text is
  std::size_t multiple = 1;           // the length is rounded up to a multiple
  Side side = Side::kRight;
  std::uint32_t id = 0, type = 0;
  std::string token;
};
base::Result<std::optional<Padding>> read_padding(const Json& json, const std::string& where);
// `offsets`: the padding has offsets and names too.
void pad(const Padding& padding, bool offsets, Encoding& encoding);

}  // namespace sluice::text
