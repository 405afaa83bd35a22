#include "sluice/text/models/model.h"

namespace sluice::text {
namespace {

struct Kind {
  const char* name;
  base::Result<std::unique_ptr<Model>> (*read)(const JsonObject&, int);
};
const Kind kKinds[] = {
    {"BPE", [](const JsonObject& object, int) { return read_bpe(object); }},
    {"WordPiece", [](const JsonObject& object, int) { return read_word_piece(object); }},
    {"WordLevel", [](const JsonObject& object, int) { return read_word_level(object); }},
    {"Unigram", [](const JsonObject& object, int) { return read_unigram(object); }},
};

}  // namespace

base::Result<std::unique_ptr<Model>> read_model(const Json& json, const std::string& where) {
  SLUICE_TRY(const auto object, JsonObject::of(json, where));
  // Old files have no "type".
  if (!object.has("type") && object.has("merges")) return read_bpe(object);
  if (!object.has("type") && object.has("max_input_chars_per_word")) return read_word_piece(object);
  return read_kind<std::unique_ptr<Model>>(object, "model", kKinds, 0);
}

}  // namespace sluice::text
