// The place in the user's code where an operation was called: the frames of a call, and their source line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::device {

// Return addresses, the innermost first.
using Frames = std::vector<void*>;

// Returns the caller's frames, at most 48. A thread's first call from a place takes some microseconds.
Frames frames_here();

// Returns how often frames_here() had to walk the stack of this thread so far.
size_t stack_walks();

// Returns a hash that is the same for equal frames, in this process.
uint64_t hash_of(const Frames& frames);

// Returns the source line of the user's first own frame ("train.cc:31"). Without debug information, returns
// its function ("train(Model&) (program+0x1f2a)"); "" if no frame is the user's. The first lookup in a file
// may take seconds if its debug information is large; later ones take microseconds. Any thread.
std::string describe_place(const Frames& frames);

}  // namespace sluice::device
