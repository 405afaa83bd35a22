// Errors about the device's memory: what used it, and what helps.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/error.h"
#include "sluice/device/program/program.h"

namespace sluice::device {

// Returns `error` with `doing` before its text ("launching program 3 ('step')"). If memory was short, the
// text also lists what the devices have and hold, what the program needs, its largest values at the peak with
// their layers, the largest values that live between programs, and what to do; the code is then
// kResourceExhausted, even if the plugin reports it only in its text. `program` is null if no program was the
// cause. Takes the trace's lock.
Error explained(const Error& error, std::string_view doing, const Program* program);

// Throws the error of reading a value. If the program that was to compute it failed and that error was not
// reported yet, throws that program's error, which says more. Takes the trace's lock.
[[noreturn]] void throw_read_error(const Error& error, std::string_view what);

}  // namespace sluice::device
