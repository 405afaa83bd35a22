#include "sluice/session/pretrained/weight_files.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/formats/unique_json.h"
#include "sluice/base/text/strings.h"
#include "sluice/session/pieces/piece_files.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {
namespace weight_files_detail {

// The kinds of files, in the order in which transformers chooses among them.
struct Kind {
  const char* one;
  const char* index;  // the index of several files
};
constexpr Kind kKinds[] = {{"model.safetensors", "model.safetensors.index.json"},
                           {"pytorch_model.bin", "pytorch_model.bin.index.json"}};

}  // namespace weight_files_detail

base::Result<WeightIndex> parse_weight_index(const std::string& path, const std::string& text) {
  const auto parsed = base::parse_unique_json(text);
  if (!parsed) return base::fail_at(parsed, path);
  const auto& json = *parsed;
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return base::fail(Code::kDataLoss, path, ": expected a JSON object with the object \"weight_map\"");
  WeightIndex index;
  for (const auto& [name, file] : json["weight_map"].items()) {
    const std::string within = file.is_string() ? file.get<std::string>() : "";
    if (within.find('/') != std::string::npos || !base::safe_join(".", within))
      return base::fail(Code::kDataLoss, path, ": the tensor ", name,
                        " must be in a file of the same folder, not ", file.dump());
    index[within].insert(name);
  }
  return index;
}

std::string find_weight_files(const std::string& folder) {
  for (const auto& kind : weight_files_detail::kKinds)
    for (const char* const name : {kind.one, kind.index})
      if (const std::string path = base::join_path(folder, name); base::path_exists(path)) return path;
  return "";
}

base::Result<NamedTensors> read_weight_files(const std::string& folder) {
  const std::string found = find_weight_files(folder);
  if (found.empty())
    return base::fail(Code::kNotFound, "there are no weights in ", folder,
                      " (expected model.safetensors, pytorch_model.bin, or an index of several such files: ",
                      "model.safetensors.index.json or pytorch_model.bin.index.json)");
  if (!base::ends_with(found, ".json")) return read_tensors(found);
  const std::string& index_path = found;
  SLUICE_TRY(const std::string text, base::read_file(index_path));
  if (is_piece_index(text)) return read_all_stored(index_path);
  SLUICE_TRY(const WeightIndex index, parse_weight_index(index_path, text));
  NamedTensors all;
  std::set<std::string> seen;
  for (const auto& [file, names] : index) {
    const std::string path = base::join_path(folder, file);
    SLUICE_TRY(NamedTensors tensors, read_tensors(path));
    std::set<std::string> missing = names;
    for (auto& [name, tensor] : tensors) {
      missing.erase(name);
      if (!seen.insert(name).second)
        return base::fail(Code::kDataLoss, path, ": the tensor ", name,
                          " is in another file of the index too");
      all.emplace_back(std::move(name), std::move(tensor));
    }
    if (!missing.empty())
      return base::fail(Code::kDataLoss, path, ": the tensor ", *missing.begin(), " is missing, which ",
                        index_path, " says is here");
  }
  return all;
}

}  // namespace sluice::sessions
