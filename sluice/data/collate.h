// From decoded samples to one batch.
#pragma once

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

// The layout of a sample's fields as columns. Pictures become [channels, height, width].
BatchLayout layout_of(const Sample& sample);

// Stacks samples into rows; a row without a sample is padding: zeros, and false in the mask. All samples must
// have the layout: the error names two that differ. Fills columns, image, label, mask, keys and count.
base::Result<Batch> collate(std::vector<std::optional<Sample>> rows, const BatchLayout& layout);

}  // namespace sluice::data
