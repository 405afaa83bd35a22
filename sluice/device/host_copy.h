// The copy of a device value on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

#include "sluice/device/value.h"
#include "sluice/pjrt/event.h"

namespace sluice::device {

// That of the first replica, row-major. Once it is there nobody may write to it.
struct HostCopy {
  std::mutex mutex;  // guards the wait
  at::Tensor value;
  pjrt::Event copied;
};

// Uploads a value and keeps the host's copy. Replicas may not differ.
DataPtr upload_and_keep(const at::Tensor& host);

// The copy, made now where there is none; waits. The caller holds the trace's lock.
at::Tensor copy_on_host(Data& data, std::string_view what);

}  // namespace sluice::device
