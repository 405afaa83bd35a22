#include "sluice/stablehlo/layer_work.h"

#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/location.h"

namespace sluice::stablehlo {

LayerWorks layer_works(const Builder& b, const ProgramFlops& flops) {
  LayerWorks works;
  for (const auto& [number, own] : flops.by_location) {
    const Location location = parse_location(b.location(number));
    LayerWork& work = works[location.layer];
    (location.pass == Pass::kForward ? work.forward : work.backward) += own;
  }
  return works;
}

}  // namespace sluice::stablehlo
