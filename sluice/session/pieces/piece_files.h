// Files of pieces (piece_index.h): which of them belong together.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/session/pieces/piece_index.h"

namespace sluice::sessions {

// Returns whether a text is an index of pieces, and not one of Hugging Face's own form.
bool is_piece_index(const std::string& text);
// Returns the entry kSave of a safetensors header; "" without one.
std::string save_in(std::string_view header);
base::Result<PieceIndex> read_index(const std::string& path);

}  // namespace sluice::sessions
