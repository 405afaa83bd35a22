// Stacking of decoded samples into one batch.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// The layout of a batch's columns, by which a batch without samples (only padding) is made.
struct BatchLayout {
  struct Item {
    bool text = false, image = false;
    ElementType type = ElementType::kUint8;
    std::vector<std::int64_t> shape;  // the shape of one row
  };
  std::vector<Item> columns;
};

// Returns the layout of a sample's fields as columns. Images become [channels, height, width].
BatchLayout layout_of(const Sample& sample);

// Columns of images that are filled while other samples of the batch are still being decoded: an image is
// copied while it is in the processor's cache, and its memory serves the next one. Threads: any; each row
// once.
class ImageColumns {
 public:
  // Copies the sample's images into their row of `rows` and releases their memory. The first sample sets the
  // layout of the images; an image with another layout is not taken.
  void take(Sample& sample, std::size_t row, std::size_t rows);
  // Returns the field's column; an undefined array if it has no image of this layout.
  Array column(std::size_t field, const BatchLayout::Item& item) const;

 private:
  std::once_flag begun_;
  BatchLayout layout_;
  std::vector<Array> columns_;
};

// Stacks samples into rows; a row without a sample is padding: zeros, and false in the mask. All samples must
// have the layout: the error names two that differ. Fills columns, image, label, mask, keys and count.
// `images` has the images whose memory was released.
base::Result<Batch> collate(std::vector<std::optional<Sample>> rows, const BatchLayout& layout,
                            const ImageColumns& images = {});

}  // namespace sluice::data
