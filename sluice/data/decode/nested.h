// Formats whose values contain values: JSON, MessagePack, CBOR.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/decode/decode.h"

namespace sluice::data {

// The deepest nesting that is read; the outermost value has level 1. A deeper value is refused, because
// nlohmann's reader of packed formats calls itself for each level and would overflow the stack.
inline constexpr int kMaxNesting = 512;

// Checks that a text is JSON of at most kMaxNesting levels, without building a tree.
base::Status check_json(std::string_view text);

// Converts MessagePack or CBOR (Format::kMsgpack, kCbor) to JSON text of the same value. Values that JSON has
// no form for (NaN, infinity) are refused, not changed.
base::Result<std::string> json_of_packed(std::string_view bytes, Format format);

}  // namespace sluice::data
