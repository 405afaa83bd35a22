// Contact sheets: many small images with captions in one.
#pragma once

#include <string>
#include <vector>

#include "sluice/data/images/image.h"

namespace sluice::data {

struct SheetTile {
  Pixels image;  // RGB
  std::string caption;
};

// Puts tiles row by row, `columns` in each, on white. Each image is scaled to fit into side × side pixels
// with its ratio kept. Below it is the end of its caption that fits, because keys differ in their ends.
// Characters other than ASCII's are shown as '?'.
Pixels contact_sheet(const std::vector<SheetTile>& tiles, std::int64_t columns, std::int64_t side);

}  // namespace sluice::data
