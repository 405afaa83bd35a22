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

// Tiles row by row, `columns` in each, on white. Each image is made to fit into side × side pixels with its
// ratio kept; under it stand as many characters of the caption as fit (its end: keys differ there).
// Characters other than ASCII's are shown as '?'.
Pixels contact_sheet(const std::vector<SheetTile>& tiles, std::int64_t columns, std::int64_t side);

}  // namespace sluice::data
