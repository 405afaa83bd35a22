// Statistics of the images and classes of a set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/batch.h"
#include "sluice/data/images/image.h"
#include "sluice/data/order/filter.h"

namespace sluice::data {

struct DatasetStatisticsOptions {
  std::vector<std::string> urls;
  std::string images = kImageExtensions, labels = "cls";  // extensions, `;` between them
  ColorModel model = ColorModel::kRgb;                    // grey: one channel
  std::vector<Filter> filters;                            // only samples that all filters take are counted
  int workers = 0;                                        // shards at a time; 0: one for each core
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // shards; one thread at a time
};

struct DatasetStatistics {
  std::int64_t samples = 0, images = 0, pixels = 0;
  std::int64_t left_out = 0;                       // samples that the filters do not take
  std::map<std::string, std::int64_t> extensions;  // images with each extension
  std::uint64_t image_bytes = 0;                   // bytes of the files
  std::map<std::int64_t, std::int64_t> classes;    // samples of each class
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> sizes;  // images of each height and width
  std::vector<std::uint64_t> sums, squares;  // for each channel's levels, 0 … 255

  // Over all pixels of all images, in 0 … 1.
  std::vector<double> mean() const, deviation() const;
};

// Decodes every image. The sums are whole numbers, so the result does not depend on the threads.
base::Result<DatasetStatistics> dataset_statistics(const DatasetStatisticsOptions& options);

}  // namespace sluice::data
