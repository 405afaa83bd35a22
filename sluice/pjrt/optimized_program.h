// What stands in a compiled program: its instructions after the compiler's optimisations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

// The instructions of one kind that exchange data between devices.
struct Collective {
  std::string kind;   // "all-reduce"
  int64_t count = 0;  // instructions; one in a loop counts once
  int64_t bytes = 0;  // of their results on one device, together
  bool operator==(const Collective&) const = default;
};

// The collectives of a program in the form "hlo_with_config" (a serialised HloModuleProtoWithConfig), by
// kind. kDataLoss when the bytes are no such message.
base::Result<std::vector<Collective>> read_collectives(std::string_view hlo_with_config);

}  // namespace sluice::pjrt
