#include "sluice/session/rates/device_peak.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/device/open.h"
#include "sluice/device/runtime.h"

namespace sluice::sessions {
namespace {

std::string source(int threads) { return "measured on " + base::counted(threads, "thread"); }

}  // namespace

std::optional<estimate::Peak> replica_peak() {
  const device::Runtime& rt = device::runtime();
  if (rt.client->platform_name() != "cpu") return estimate::published_peak(rt.devices.front()->kind());
  const device::ProcessorPeak processor = device::processor_peak(rt);
  if (processor.flops_per_second <= 0) return std::nullopt;
  const int replicas = rt.world.local_replicas;
  estimate::Peak peak{.f32 = processor.flops_per_second, .source = source(processor.threads)};
  if (replicas > 1) peak.source += base::str(" that ", replicas, " replicas share");
  return peak.shared_by(replicas);
}

profile::Peaks call_peaks() {
  const device::Runtime& rt = device::runtime();
  if (rt.client->platform_name() != "cpu") return {};
  const device::CallPeak peak = device::call_peak(rt);
  return {peak.flops_per_second, peak.bytes_per_second, source(peak.threads)};
}

}  // namespace sluice::sessions
