// The labels of a set of shards, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "sluice/data/dataset.h"

namespace sluice::data::test {

// Returns the label of each sample by its key. The samples have images, as png, and labels, as cls.
inline std::map<std::string, std::int64_t> labels_in(const std::string& urls) {
  std::map<std::string, std::int64_t> labels;
  const auto stream = WebDataset(urls).images("png").labels("cls").batch(64).open();
  while (auto batch = stream->next())
    for (std::int64_t i = 0; i < batch->count; ++i)
      labels[batch->keys[static_cast<std::size_t>(i)]] = batch->label.data<std::int64_t>()[i];
  return labels;
}

}  // namespace sluice::data::test
