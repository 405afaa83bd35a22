// Options and attributes of plugins, devices and programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sluice/pjrt/c_api.h"

namespace sluice::pjrt {

// An option for a plugin, under its name.
using OptionValue = std::variant<std::string, int64_t, std::vector<int64_t>, float, bool>;
using Options = std::map<std::string, OptionValue>;

// Returns the options in the C API's form, which refers to `options` and must not outlive them.
std::vector<c::PJRT_NamedValue> to_named_values(const Options& options);

// Returns an attribute as text: "1.13.3" for the list 1, 13, 3 if its name ends with "_version", else "[1,
// 13, 3]".
std::string value_text(const c::PJRT_NamedValue& value);
std::map<std::string, std::string> to_texts(const c::PJRT_NamedValue* values, size_t count);

}  // namespace sluice::pjrt
