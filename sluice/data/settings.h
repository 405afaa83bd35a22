// What a WebDataset holds.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/data/dataset.h"
#include "sluice/data/decode.h"

namespace sluice::data {

struct WebDataset::Settings {
  // Answers that copies of a dataset share.
  struct Known {
    std::mutex mutex;
    std::optional<std::vector<std::string>> urls;
    std::optional<std::int64_t> size;
  };

  std::vector<std::string> patterns;
  std::shared_ptr<Known> known = std::make_shared<Known>();
  bool shuffle = false;
  std::int64_t buffer_samples = 0, buffer_bytes = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  DecodePlan decode;
  std::vector<std::function<void(Sample&)>> maps;
  std::vector<float> mean, deviation;
  std::int64_t batch = 1;
  std::optional<Remainder> remainder;
  int workers = 0, prefetch = 4;

  Remainder chosen_remainder() const {
    return remainder.value_or(shuffle ? Remainder::kDrop : Remainder::kKeep);
  }
};

}  // namespace sluice::data
