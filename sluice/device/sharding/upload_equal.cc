#include "sluice/device/sharding/upload_equal.h"

#include <utility>

#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {

at::Tensor upload_equal(const at::Tensor& host, at::Device device) {
  if (!device.is_xla() || !runtime().world.mesh_spans_processes()) return host.to(device);
  DataPtr data = upload_data({host});
  data->sameness = Sameness::kGlobal;
  const auto lock = lock_trace();
  return make_tensor(std::move(data));
}

}  // namespace sluice::device
