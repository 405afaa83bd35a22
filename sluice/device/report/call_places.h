// The place in the user's code that calls an operation of no layer: its name in a profile.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::device {

// Stores the current place, if this instance has no place yet. The caller holds the trace's lock.
void note_call_place(uint32_t instance);
// Returns "train.cc:12", or "" if no place is known. May take a second. Any thread.
std::string call_place(uint32_t instance);

}  // namespace sluice::device
