// From decoded samples to one batch.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"

namespace sluice::data {

// What a batch without samples, all padding, looks like: the columns of another batch, without its contents.
struct BatchLayout {
  struct Item {
    bool text = false, image = false;
    ElementType type = ElementType::kUint8;
    std::vector<std::int64_t> shape;  // of one row
  };
  std::vector<Item> columns;
};

// The layout of a sample's fields as columns. Images become [channels, height, width].
BatchLayout layout_of(const Sample& sample);

// Columns of images that are filled while other samples of the batch are still being decoded: an image is
// copied while it is in the processor's cache, and its memory serves the next one. Threads: any, but each row
// once.
class ImageColumns {
 public:
  // Copies the sample's images into their row of `rows` and releases their memory. The first sample says
  // how images look; one that looks otherwise is left alone.
  void take(Sample& sample, std::size_t row, std::size_t rows);
  // The field's column; not defined where there is none of these images.
  Array column(std::size_t field, const BatchLayout::Item& item) const;

 private:
  std::once_flag begun_;
  BatchLayout layout_;
  std::vector<Array> columns_;
};

// Stacks samples into rows; a row without a sample is padding: zeros, and false in the mask. All samples must
// have the layout: the error names two that differ. Fills columns, image, label, mask, keys and count.
// `images` has those images whose memory was released.
base::Result<Batch> collate(std::vector<std::optional<Sample>> rows, const BatchLayout& layout,
                            const ImageColumns& images = {});

}  // namespace sluice::data
