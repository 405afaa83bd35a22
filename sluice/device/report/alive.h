// The values that are on the device now, for errors about its memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/device/value.h"

namespace sluice::device {

// What is known of one value.
struct AliveValue {
  int64_t bytes = 0;  // on each device
  std::string type;   // "64x3x7x7xf32", as values print it
  std::string what;   // "fc.weight"; "of aten::mul, read after conv1.weight"; "from the host"
};

struct AliveValues {
  int64_t count = 0, bytes = 0;     // of all
  std::vector<AliveValue> largest;  // at most as many as asked for, the largest first
};

// Counts the values from now on, until they are destroyed; their buffers and names are there. Those that are
// counted already are left out. Any thread.
void note_alive(std::span<Data* const> values);
// Any thread.
AliveValues alive_values(size_t count);

}  // namespace sluice::device
