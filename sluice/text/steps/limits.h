// Truncation and padding of a tokenizer's output.
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
  std::size_t length = 0;  // in tokens, including the special ones
  Strategy strategy = Strategy::kLongestFirst;
  Side side = Side::kRight;  // the side that is cut
};
// Returns nullopt for null.
base::Result<std::optional<Truncation>> read_truncation(const Json& json, const std::string& where);
// `added` is the number of special tokens that are added later. kInvalidArgument if they leave no room, or if
// the one text that may be cut is too short.
base::Status truncate(const Truncation& truncation, std::size_t added, Encoding& first, Encoding* second);

struct Padding {
  std::optional<std::size_t> length;  // in tokens; nullopt: the text's length
  std::size_t multiple = 1;           // the length is rounded up to a multiple of this
  Side side = Side::kRight;
  std::uint32_t id = 0, type = 0;
  std::string token;
};
base::Result<std::optional<Padding>> read_padding(const Json& json, const std::string& where);
// With `offsets` the padding also has offsets and names.
void pad(const Padding& padding, bool offsets, Encoding& encoding);

}  // namespace sluice::text
