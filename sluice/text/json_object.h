// Fields of a JSON object, with errors that name their place in the file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/base/text/join.h"

namespace sluice::text {

using Json = nlohmann::json;

// An object of a file and its place there ("tokenizer.json: normalizer"). The JSON must outlive it.
class JsonObject {
 public:
  // kInvalidArgument if the JSON is not an object.
  static base::Result<JsonObject> of(const Json& json, std::string where);

  const std::string& where() const { return where_; }
  // Null counts as absent.
  bool has(const char* name) const;
  base::Result<const Json*> field(const char* name) const;
  base::Result<JsonObject> object(const char* name) const;
  base::Result<std::string> text(const char* name) const;  // valid UTF-8
  base::Result<std::string> text_or(const char* name, std::string absent) const;
  base::Result<bool> flag(const char* name) const;
  base::Result<bool> flag_or(const char* name, bool absent) const;
  base::Result<std::int64_t> number(const char* name, std::int64_t low, std::int64_t high) const;
  base::Result<char32_t> character(const char* name) const;  // a text of one code point
  base::Result<const Json*> list(const char* name) const;    // an array

  template <typename... Pieces>
  tl::unexpected<Error> fail(const Pieces&... pieces) const {
    return base::fail(Code::kInvalidArgument, where_, ": ", pieces...);
  }
  // Returns the error kUnimplemented: "WHERE: unknown TYPE; known are …, did you mean …?".
  tl::unexpected<Error> unknown(std::string_view kind, const std::string& found,
                                const std::vector<std::string>& known) const;

 private:
  const Json* json_ = nullptr;
  std::string where_;
};

inline constexpr std::int64_t kMaxId = (std::int64_t{1} << 31) - 1;
// The components of a Sequence may be Sequences, up to this depth.
inline constexpr int kMaxDepth = 16;

// Reads an object by its "type", with a table of {name, read}.
template <typename Made, typename Kinds>
base::Result<Made> read_kind(const JsonObject& object, std::string_view what, const Kinds& kinds, int depth) {
  if (depth > kMaxDepth) return object.fail("components within components, deeper than ", kMaxDepth);
  SLUICE_TRY(const std::string type, object.text("type"));
  std::vector<std::string> known;
  for (const auto& kind : kinds) {
    if (type == kind.name) return kind.read(object, depth);
    known.emplace_back(kind.name);
  }
  return object.unknown(what, type, known);
}

// Reads the components that an object lists under this name; those that are null are left out.
template <typename Part>
base::Result<std::vector<Part>> read_parts(const JsonObject& object, const char* name, int depth,
                                           base::Result<Part> (*read)(const Json&, const std::string& where,
                                                                      int depth)) {
  SLUICE_TRY(const Json* const list, object.list(name));
  std::vector<Part> parts;
  for (std::size_t i = 0; i < list->size(); ++i) {
    SLUICE_TRY(auto part, read((*list)[i], base::str(object.where(), ".", name, "[", i, "]"), depth + 1));
    if (part) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace sluice::text
