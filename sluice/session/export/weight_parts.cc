#include "sluice/session/export/weight_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/text/strings.h"
#include "sluice/session/export/weight_stream.h"
#include "sluice/session/pieces/piece_index.h"

namespace sluice::sessions {

std::vector<WeightPart> divide_weights(const std::vector<SafetensorsEntry>& tensors, uint64_t part_bytes) {
  std::vector<WeightPart> parts;
  WeightPart open;
  uint64_t bytes = 0;
  const auto close = [&] {
    if (!open.tensors.empty()) parts.push_back(std::move(open));
    open = {};
    bytes = 0;
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t more = bytes_of(tensors[i]);
    if (more > part_bytes) {
      parts.push_back({"", {i}});
      continue;
    }
    if (more > part_bytes - bytes) close();
    open.tensors.push_back(i);
    bytes += more;
  }
  close();
  if (parts.empty()) parts.emplace_back();
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].file = parts.size() == 1
                        ? std::string(kModel) + ".safetensors"
                        : part_name(kModel, static_cast<int>(i), static_cast<int>(parts.size()));
  return parts;
}

std::string weight_index_text(const std::vector<WeightPart>& parts,
                              const std::vector<SafetensorsEntry>& tensors) {
  nlohmann::json files = nlohmann::json::object();
  uint64_t bytes = 0;
  for (const WeightPart& part : parts) {
    for (const size_t i : part.tensors) {
      files[tensors[i].name] = part.file;
      bytes += bytes_of(tensors[i]);
    }
  }
  const nlohmann::json json = {{"metadata", {{"total_size", bytes}}}, {"weight_map", std::move(files)}};
  return json.dump(2) + "\n";
}

bool is_weight_file(const std::string& name) {
  return has_parts({name}) || name == "model.safetensors" || name == "state.safetensors" ||
         name == "state.json" || base::starts_with(name, "pytorch_model");
}

}  // namespace sluice::sessions
