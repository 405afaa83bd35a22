#include "sluice/session/pieces/piece_files.h"

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"

namespace sluice::sessions {

std::string save_in(std::string_view text) {
  const auto header = base::parse_json(text);
  const nlohmann::json::json_pointer place("/__metadata__/" + std::string(kSave));
  const bool there = header.is_object() && header.contains(place) && header[place].is_string();
  return there ? header[place].get<std::string>() : "";
}

bool is_piece_index(const std::string& text) {
  const auto json = base::parse_json(text);
  return json.is_object() && json.contains("tensors");
}

base::Result<PieceIndex> read_index(const std::string& path) {
  SLUICE_TRY(const std::string text, base::read_file(path));
  return parse_index(text, path);
}

}  // namespace sluice::sessions
