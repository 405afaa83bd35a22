#include "sluice/text/set_facts.h"

#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/parse_json.h"

namespace sluice::text {
namespace {

constexpr char kTokenizer[] = "tokenizer.json";

}  // namespace

base::Result<std::optional<SetFacts>> set_facts(const TokenSet& set) {
  if (set.files().empty()) return std::optional<SetFacts>();
  // The name is PREFIX-0000.
  const std::string& name = set.files().front().name();
  const std::size_t number = name.find_last_not_of("0123456789");
  if (number == std::string::npos || name[number] != '-' || number + 1 == name.size())
    return std::optional<SetFacts>();
  const std::string path = name.substr(0, number) + ".json";
  if (!base::path_exists(path)) return std::optional<SetFacts>();
  SLUICE_TRY(const std::string text, base::read_file(path));
  const auto json = base::parse_json(text);
  if (!json.is_object() || !json.contains("vocabulary_size") || !json["vocabulary_size"].is_number_unsigned())
    return base::fail(
        Code::kDataLoss, path,
        ": expected an object with the number \"vocabulary_size\", as 'sluice text pack' writes it");
  SetFacts facts;
  facts.vocabulary_size = json["vocabulary_size"].get<std::size_t>();
  if (const auto found = json.find("tokenizer"); found != json.end() && found->is_string())
    facts.tokenizer = found->get<std::string>();
  return std::optional(facts);
}

std::string tokenizer_beside(const TokenSet& set) {
  if (set.files().empty()) return "";
  const std::string path = base::join_path(base::parent_path(set.files().front().name()), kTokenizer);
  return base::path_exists(path) ? path : "";
}

std::string tokenizer_file(const std::string& path) {
  return base::is_directory(path) ? base::join_path(path, kTokenizer) : path;
}

base::Status keep_tokenizer(const std::string& path, const std::string& folder, bool overwrite) {
  SLUICE_TRY(const std::string text, base::read_file(tokenizer_file(path)));
  const std::string kept = base::join_path(folder, kTokenizer);
  if (base::path_exists(kept)) {
    SLUICE_TRY(const std::string before, base::read_file(kept));
    if (before == text) return {};
    if (!overwrite)
      return base::fail(
          Code::kAlreadyExists, kept,
          " belongs to another tokenizer: all sets of a folder share one. Choose another folder, or "
          "--overwrite when nothing in it is needed any more");
  }
  SLUICE_OK(base::make_directories(folder));
  return base::write_file_atomically(kept, text);
}

}  // namespace sluice::text
