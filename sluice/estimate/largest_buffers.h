// The largest temporary buffers of a program that libtpu compiled, from the texts that it dumps
// (XLA_FLAGS=--xla_dump_to=FOLDER).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::estimate {

struct LargestBuffer {
  int64_t bytes = 0;        // on one device
  std::string type;         // "f32[1024,4096]"
  std::string instruction;  // of the optimized program: "all-gather.1"
  std::string operation;    // "fc1.weight/aten::mm", where the program names it; else ""
};

// Returns the `count` largest buffers of a program's temporary memory, the largest first. Buffers may use the
// same memory one after the other, so their sum may be more than the memory. `assignment` is the text
// "…buffer-assignment.txt" and `program` the optimized program. A line of another form counts as none.
std::vector<LargestBuffer> largest_buffers(std::string_view assignment, std::string_view program,
                                           size_t count);

// Returns the largest buffers of the program whose texts are in this folder, by the largest assignment if
// there are several; nothing if there is no assignment.
std::vector<LargestBuffer> dumped_buffers(const std::string& folder, size_t count);

}  // namespace sluice::estimate
