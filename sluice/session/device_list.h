// The devices that a program takes, as --devices, --device-ids and SLUICE_DEVICES specify them.
#pragma once

#include <string>
#include <vector>

namespace sluice::sessions {

struct DeviceList {
  int count = 0;         // 0: DeviceOptions' default
  std::vector<int> ids;  // exactly these devices; empty: the first `count`
};

// Reads "" and "all": the default (every device of a TPU or GPU, one of a CPU); "8": the first eight; "[5]",
// "5," and "0,1,4": exactly these devices. Throws kInvalidArgument; its text begins with `what`.
DeviceList parse_devices(const std::string& what, const std::string& text);
// Reads "5", "[5]" or "0,1,4": device numbers, each at most once. Throws as parse_devices does.
std::vector<int> parse_device_ids(const std::string& what, const std::string& text);

}  // namespace sluice::sessions
