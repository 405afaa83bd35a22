#include "sluice/replica/connect.h"

#include "sluice/base/result.h"
#include "sluice/device/runtime.h"
#include "sluice/replica/launch_check.h"

namespace sluice::replica {

void connect_device(const std::shared_ptr<Processes>& processes, const DeviceOptions& options) {
  (void)options;
  device::set_launch_check([check = std::make_shared<LaunchCheck>(processes)](
                               const device::LaunchRecord& launch) { (*check)(launch); });
}

}  // namespace sluice::replica
