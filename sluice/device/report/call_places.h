// Where in the user's code operations are called that belong to no layer: what a profile calls them.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::device {

// Keeps the current place, if it is the first one of this instance. The caller holds the trace's lock.
void note_call_place(uint32_t instance);
// "train.cc:12", or "" where none is known. May take a second. Threads: any.
std::string call_place(uint32_t instance);

}  // namespace sluice::device
