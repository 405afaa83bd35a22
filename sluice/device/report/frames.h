// Where in the user's code an operation was called: the frames of a call, and the source line they stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::device {

// Return addresses, the innermost first.
using Frames = std::vector<void*>;

// The caller's, 48 at most; some microseconds.
Frames frames_here();

// The same for the same frames, in this process.
uint64_t hash_of(const Frames& frames);

// The source line of the first frame that is the user's own ("train.cc:31"); without debug information its
// function
// ("train(Model&) (program+0x1f2a)"); "" when no frame is. The first look into a file may take seconds where
// its debug information is large, the next ones take microseconds. Threads: any.
std::string describe_place(const Frames& frames);

}  // namespace sluice::device
