// The undecoded samples of one part's batches of a mixture, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/data/order/mixture_order.h"
#include "sluice/data/order/part_reader.h"

namespace sluice::data {

struct MixedSource {
  const ReadSettings* settings;  // must live as long as the reader; with facts
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::int64_t capacity = 1;  // samples in a lane's shuffle buffer
};

// `part` says which replicas' batches, of which epoch, from which batch on. Samples say their source, and
// their pass as epoch.
std::unique_ptr<PartReader> make_mixture_reader(std::vector<MixedSource> sources,
                                                std::shared_ptr<const MixtureOrder> order,
                                                const PartOptions& part);

}  // namespace sluice::data
