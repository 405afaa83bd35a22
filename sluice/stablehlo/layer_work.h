// What each layer of a program computes and holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sluice/stablehlo/flops.h"

namespace sluice::stablehlo {

class Builder;

struct LayerWork {
  Flops forward;
  Flops backward;     // the update's too
  int64_t bytes = 0;  // of what it made of all that is alive when most is (MemoryEstimate::by_layer)
};
using LayerWorks = std::map<std::string, LayerWork>;  // [Location::layer]

// Of one program or of several, on one replica.
struct Work {
  LayerWorks layers;
  int64_t peak_bytes = 0, argument_bytes = 0;  // an estimate (MemoryEstimate), of the largest program
};

// The FLOPs of the program that the builder has, by the layers in its locations.
LayerWorks layer_works(const Builder& b, const ProgramFlops& flops);

}  // namespace sluice::stablehlo
