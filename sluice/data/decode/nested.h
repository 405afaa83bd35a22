// Formats whose values contain values: JSON, MessagePack, CBOR.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/data/decode/decode.h"

namespace sluice::data {

// Values within values, counted from the outermost 1. What is deeper is refused: it would end the process by
// its stack (nlohmann's reader of packed formats calls itself for each level).
inline constexpr int kMaxNesting = 512;

// Whether a text is JSON of at most kMaxNesting levels. Nothing is built of it.
base::Status check_json(std::string_view text);

// MessagePack or CBOR (Format::kMsgpack, kCbor) → JSON text of the same value. What JSON has no form for
// (NaN, infinity) is refused, not changed.
base::Result<std::string> json_of_packed(std::string_view bytes, Format format);

}  // namespace sluice::data
