#include "sluice/session/rates/device_peak.h"

#include "sluice/base/strings.h"
#include "sluice/device/open.h"
#include "sluice/device/runtime.h"

namespace sluice::sessions {

std::optional<estimate::Peak> replica_peak() {
  const device::Runtime& rt = device::runtime();
  if (rt.client->platform_name() != "cpu") return estimate::published_peak(rt.devices.front()->kind());
  const device::ProcessorPeak processor = device::processor_peak(rt);
  if (processor.flops_per_second <= 0) return std::nullopt;
  const int replicas = rt.world.local_replicas;
  const estimate::Peak peak{
      .f32 = processor.flops_per_second,
      .source = base::str("measured on ", processor.threads, processor.threads == 1 ? " thread" : " threads",
                          replicas > 1 ? base::str(" that ", replicas, " replicas share") : std::string())};
  return peak.shared_by(replicas);
}

}  // namespace sluice::sessions
