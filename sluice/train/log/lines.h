// Files of rows, read line by line: what is held at once does not grow with the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "sluice/base/result.h"

namespace sluice::train {

struct LinePass {
  int64_t lines = 0;         // read
  std::size_t max_held = 0;  // the most bytes of lines that were in memory at once
};

// Calls `act` with each line, without its end, until it fails. An end of the file without a line's end is no
// line: a process was killed while it wrote it. A missing file is an error.
base::Result<LinePass> each_line(const std::string& path,
                                 const std::function<base::Status(const std::string& line)>& act);
// Replaces a file by what `act` appends to `out` for each of its lines. The file stays the same file if no
// line changes, and if something fails.
base::Result<LinePass> rewrite_lines(
    const std::string& path,
    const std::function<base::Status(const std::string& line, std::string& out)>& act);

}  // namespace sluice::train
