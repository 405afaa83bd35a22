// The copy of a device value on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

#include "sluice/device/value.h"
#include "sluice/pjrt/event.h"

namespace sluice::device {

// The copy of the first replica's value, row-major. Once the copy has arrived, nobody may write to it.
struct HostCopy {
  std::mutex mutex;  // guards the wait
  at::Tensor value;
  pjrt::Event copied;
};

// Uploads a value and keeps the host's copy. Replicas may not differ.
DataPtr upload_and_keep(const at::Tensor& host);

// Returns the copy, made now unless it exists; waits. The caller holds the trace's lock.
at::Tensor copy_on_host(Data& data, std::string_view what);

}  // namespace sluice::device
