// Which devices a program takes, as --devices, --device-ids and SLUICE_DEVICES say it.
#pragma once

#include <string>
#include <vector>

namespace sluice::sessions {

struct DeviceList {
  int count = 0;         // 0: DeviceOptions' default
  std::vector<int> ids;  // these and no others; empty: the first `count`
};

// "" and "all": the default (every device of a TPU or GPU, one of a CPU); "8": the first eight; "[5]", "5,"
// and "0,1,4": these ones. Throws kInvalidArgument, which begins with `what`.
DeviceList parse_devices(const std::string& what, const std::string& text);
// "5", "[5]", "0,1,4": the numbers of devices, each once. Throws as parse_devices does.
std::vector<int> parse_device_ids(const std::string& what, const std::string& text);

}  // namespace sluice::sessions
