// The values that are on the device now, for errors about its memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/device/value.h"

namespace sluice::device {

// The facts about one value.
struct AliveValue {
  int64_t bytes = 0;  // on each device
  std::string type;   // "64x3x7x7xf32", as values print it
  std::string what;   // "fc.weight"; "of aten::mul, read after conv1.weight"; "from the host"
};

struct AliveValues {
  int64_t count = 0, bytes = 0;     // of all values
  std::vector<AliveValue> largest;  // the largest first, at most the requested number
};

// Counts the values from now on, until they are destroyed; they must have their buffers and names. Values
// that are counted already are skipped. Any thread.
void note_alive(std::span<Data* const> values);
// Returns the counts, and the `count` largest values. Any thread.
AliveValues alive_values(size_t count);

}  // namespace sluice::device
