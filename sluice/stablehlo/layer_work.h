// The computation and the memory of each layer of a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sluice/stablehlo/flops.h"

namespace sluice::stablehlo {

class Builder;

struct LayerWork {
  Flops forward;
  Flops backward;     // includes the update
  int64_t bytes = 0;  // its values' part of the peak memory (MemoryEstimate::by_layer)
};
using LayerWorks = std::map<std::string, LayerWork>;  // [Location::layer]

// The work of one program or of several, on one replica.
struct Work {
  LayerWorks layers;
  int64_t peak_bytes = 0, argument_bytes = 0;  // an estimate (MemoryEstimate), of the largest program
};

// Returns the FLOPs of the builder's program, by the layers in its locations.
LayerWorks layer_works(const Builder& b, const ProgramFlops& flops);

}  // namespace sluice::stablehlo
