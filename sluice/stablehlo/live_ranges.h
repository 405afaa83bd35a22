// An estimate of the memory that a program needs, made only from its text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::stablehlo {

// One value of the program.
struct LiveValue {
  std::string operation;  // "stablehlo.convolution"; "argument"
  std::string location;  // "layer1.0.conv1.weight/aten::convolution"; of an argument, its first use; "": none
  std::string type;      // "tensor<128x64x112x112xf32>"
  int64_t bytes = 0;
};

struct MemoryEstimate {
  int64_t peak_bytes = 0;
  std::string peak_location;       // the operation during which the peak is reached
  std::vector<LiveValue> largest;  // the values that live at the peak, the largest first
  int64_t argument_bytes = 0;
  std::map<std::string, int64_t> by_layer;  // [Location::layer]: the other values that live then
};

// Reads text in the form that Builder::finish writes, and follows each value from the operation that makes it
// to its last use. Arguments live throughout, and a result that takes an argument's memory adds nothing.
// Constants, broadcasts and reshapes are not counted, because compilers do not store them. All other values
// are counted as if nothing was fused, in the order of the text and without padding, so a compiler's program
// may need more or less. `count` limits `largest`.
//
// kInvalidArgument: the text has no function @main in that form.
base::Result<MemoryEstimate> estimate_memory(std::string_view text, size_t count = 10);

}  // namespace sluice::stablehlo
