// One device that this process drives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sluice/base/result.h"
#include "sluice/pjrt/api.h"

namespace sluice::pjrt {

// Bytes on a device, as far as the plugin reports them.
struct MemoryStats {
  int64_t in_use = 0;
  std::optional<int64_t> peak, limit, reserved, largest_free;
};

// Owned by its client and valid as long as the client. Threads: any.
class Device {
 public:
  static base::Result<Device> describe(const Api& api, c::PJRT_Device* raw);

  // Unique over all processes.
  int id() const { return id_; }
  // The number of the chip or core within this host.
  int local_hardware_id() const { return local_hardware_id_; }
  int process_index() const { return process_index_; }
  // "cpu", "TPU v3", "NVIDIA H200" …
  const std::string& kind() const { return kind_; }
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  // Returns the use of its memory now; nullopt if the plugin does not report it (XLA's CPU plugin).
  std::optional<MemoryStats> memory() const;

  c::PJRT_Device* raw() const { return raw_; }

 private:
  Device() = default;

  Api api_;
  c::PJRT_Device* raw_ = nullptr;
  int id_ = 0, local_hardware_id_ = 0, process_index_ = 0;
  std::string kind_;
  std::map<std::string, std::string> attributes_;
};

}  // namespace sluice::pjrt
