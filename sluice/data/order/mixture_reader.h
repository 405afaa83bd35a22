// The undecoded samples of one part's batches of a mixture, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/data/order/mixture_order.h"
#include "sluice/data/order/part_reader.h"

namespace sluice::data {

struct MixedSource {
  const ReadSettings* settings;  // must outlive the reader; with facts
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::int64_t capacity = 1;  // samples in a lane's shuffle buffer
};

// Makes a reader of the batches that `part` describes: its replicas, epoch and first batch. Samples have
// their source, and their pass as their epoch.
std::unique_ptr<PartReader> make_mixture_reader(std::vector<MixedSource> sources,
                                                std::shared_ptr<const MixtureOrder> order,
                                                const PartOptions& part);

}  // namespace sluice::data
