#include "sluice/replica/connect.h"

#include "sluice/base/result.h"
#include "sluice/device/runtime.h"
#include "sluice/replica/launch_check.h"
#include "sluice/replica/transport.h"

namespace sluice::replica {

void connect_device(const std::shared_ptr<Processes>& processes) {
  if (processes == nullptr) {
    device::set_transport({});
    device::set_launch_check({});
    return;
  }
  device::set_transport([processes] { return base::value_or_throw(make_transport(processes)); });
  device::set_launch_check([check = std::make_shared<LaunchCheck>(processes)](
                               const device::LaunchRecord& launch) { (*check)(launch); });
}

}  // namespace sluice::replica
