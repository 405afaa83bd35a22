// Reads a compiled program: its instructions after the compiler's optimisations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

// The instructions of one kind that exchange data between the same devices.
struct Collective {
  std::string kind;   // "all-reduce"
  int64_t count = 0;  // instructions; one in a loop that counts to a constant counts for each round
  int64_t bytes = 0;  // of all their results on one device
  // The first device's group (device_group.h); empty if the program names no groups.
  std::vector<int64_t> group = {};
  // libtpu makes two steps of an exchange between slices: collectives in each slice, and this one over the
  // network, as a send and a receive through the host. It has no group.
  bool between_slices = false;
  bool operator==(const Collective&) const = default;
};

// Returns the collectives of a program in the form "hlo_with_config" (a serialised HloModuleProtoWithConfig),
// by kind and group. libtpu splits the all-reduce of a large value into a reduce-scatter and an all-gather,
// and has what follows computed by one replica for each part: these are two collectives. kDataLoss if the
// bytes are not such a message.
base::Result<std::vector<Collective>> read_collectives(std::string_view hlo_with_config);

}  // namespace sluice::pjrt
