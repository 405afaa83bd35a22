// Writes token files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/text/token_file.h"
#include "sluice/text/tools/token_writer.h"

namespace sluice::text::test {

// Writes PATH.bin and PATH.idx, and opens them.
inline TokenFile token_file(const std::string& path, const std::vector<std::vector<std::uint32_t>>& documents,
                            int width = 4) {
  auto writer = base::value_or_throw(TokenWriter::create(path, width));
  for (const auto& ids : documents) base::value_or_throw(writer.add(ids.data(), ids.size()));
  base::value_or_throw(writer.commit());
  return TokenFile::open(path);
}

}  // namespace sluice::text::test
