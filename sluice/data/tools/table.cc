#include "sluice/data/tools/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/nested.h"

namespace sluice::data {
namespace {

const std::vector<std::string> kFileNames = {"file", "path", "image", "filename"};
const std::vector<std::string> kClassNames = {"class", "label", "cls"};

template <typename... Pieces>
tl::unexpected<Error> line_error(const std::string& name, std::size_t line, const Pieces&... cause) {
  return base::fail(Code::kInvalidArgument, name, ", line ", line, ": ", cause...);
}

base::Result<ListedFile> parse_plain(std::string_view line, const std::string& name, std::size_t number) {
  std::size_t cut = line.find('\t');
  if (cut == std::string_view::npos) cut = line.rfind(',');
  if (cut == std::string_view::npos) cut = line.rfind(' ');
  ListedFile file;
  file.line = number;
  file.path = base::trim(line.substr(0, cut));
  if (cut != std::string_view::npos) file.class_name = base::trim(line.substr(cut + 1));
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r';
  };
  if (std::any_of(line.begin(), line.end(), is_control))
    return base::fail(Code::kInvalidArgument, name, ", line ", number, ": it holds bytes that are not text: ",
                      "expected a folder of classes, or a list with an image and its class in each line");
  if (file.path.empty() || file.class_name.empty())
    return line_error(name, number,
                      "expected an image and its class, separated by a tab, a comma or a space; found '",
                      line, "'");
  return file;
}

base::Result<ListedFile> parse_object(std::string_view line, const std::string& name, std::size_t number) {
  if (const auto status = check_json(line); !status) return line_error(name, number, status.error().what());
  nlohmann::json object = nlohmann::json::parse(line);
  if (!object.is_object()) return line_error(name, number, "expected a JSON object");
  ListedFile file;
  file.line = number;
  const auto take = [&](const std::vector<std::string>& keys) -> std::string {
    for (const std::string& key : keys) {
      if (!object.contains(key)) continue;
      const nlohmann::json value = object[key];
      object.erase(key);
      return value.is_string() ? value.get<std::string>() : value.dump();
    }
    return "";
  };
  file.path = take(kFileNames);
  file.class_name = take(kClassNames);
  if (file.path.empty())
    return line_error(name, number, "expected a member \"", base::join(kFileNames, "\", \""),
                      "\" with a path");
  if (!object.empty()) file.json = object.dump();
  return file;
}

// Returns the cells of a line; nothing if a quote is not closed.
std::optional<std::vector<std::string>> split_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  for (std::string& cell : cells) cell = std::string(base::trim(cell));
  return cells;
}

std::optional<std::size_t> column(const std::vector<std::string>& cells,
                                  const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (std::find(names.begin(), names.end(), cells[i]) != names.end()) return i;
  return std::nullopt;
}

// The columns of a CSV file, which is parsed line by line.
struct CsvColumns {
  std::size_t file = 0, label = kLast;
  bool first = true;
  static constexpr std::size_t kLast = static_cast<std::size_t>(-1);
};

// Parses the cells of a line; returns nothing for a header.
base::Result<std::optional<ListedFile>> parse_cells(std::string_view line, const std::string& name,
                                                    std::size_t number, CsvColumns& columns) {
  const auto cells = split_cells(line);
  if (!cells) return line_error(name, number, "a quote is not closed");
  if (columns.first) {
    columns.first = false;
    const auto file = column(*cells, kFileNames), label = column(*cells, kClassNames);
    if (file && label) {
      columns.file = *file;
      columns.label = *label;
      return std::optional<ListedFile>();
    }
  }
  const std::size_t file = columns.file;
  const std::size_t label = columns.label == CsvColumns::kLast ? cells->size() - 1 : columns.label;
  if (cells->size() < 2 || std::max(label, file) >= cells->size() || (*cells)[file].empty() ||
      (*cells)[label].empty())
    return line_error(name, number, "expected an image and its class in ", std::max(label, file) + 1,
                      " cells, found '", line, "'");
  return std::optional(ListedFile{(*cells)[file], (*cells)[label], "", number});
}

}  // namespace

base::Result<std::vector<ListedFile>> parse_list(std::string_view text, const std::string& name) {
  std::vector<ListedFile> files;
  CsvColumns columns;
  std::size_t number = 0;
  // Spreadsheets begin their CSV with a byte order mark.
  if (base::starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);
  for (const std::string& raw : base::split(text, '\n')) {
    ++number;
    const std::string_view line = base::trim(raw);
    if (line.empty()) continue;
    if (base::ends_with(name, ".jsonl")) {
      SLUICE_TRY(auto file, parse_object(line, name, number));
      files.push_back(std::move(file));
    } else if (base::ends_with(name, ".csv")) {
      SLUICE_TRY(auto file, parse_cells(line, name, number, columns));
      if (file) files.push_back(std::move(*file));
    } else if (line[0] != '#') {
      SLUICE_TRY(auto file, parse_plain(line, name, number));
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace sluice::data
