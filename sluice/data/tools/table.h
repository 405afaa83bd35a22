// Lists of samples as people write them: lines of text, CSV files, JSON lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::data {

// One line: a file, its class as written (may be empty in JSON lines), and the rest of a JSON line.
struct ListedFile {
  std::string path, class_name;
  std::string json;  // the object's other entries, as an object; empty: it has no others
  std::size_t line = 0;
};

// Parses a list, by its name: `.jsonl` (an object a line, with "file", "path", "image" or "filename", and
// perhaps "class", "label" or "cls"); `.csv` (quotes as in RFC 4180; a first line that names such columns
// chooses them, else the first cell is the file and the last one its class); else a file and its class,
// separated by a tab, a comma or the last space, where `#` begins a comment. Errors name the line.
base::Result<std::vector<ListedFile>> parse_list(std::string_view text, const std::string& name);

}  // namespace sluice::data
