// Errors about the device's memory: what had it, and what helps.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/error.h"
#include "sluice/device/program.h"

namespace sluice::device {

// `error` with `doing` before its text ("launching program 3 ('step')"). When memory was short, it also says
// what the devices have and hold, what the program needs, its largest values at the peak with their layers,
// the largest values that live between programs, and what to do; its code is then kResourceExhausted, also
// where the plugin says it by its text alone. `program` is null where no program was the cause. Takes the
// trace's lock.
Error explained(const Error& error, std::string_view doing, const Program* program);

// Throws the error of reading a value. When the program that was to make it failed and nobody has heard of it
// yet, that program's error, which says more. Takes the trace's lock.
[[noreturn]] void throw_read_error(const Error& error, std::string_view what);

}  // namespace sluice::device
