// Numbers from text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace sluice::base {

// Reads the whole text as a decimal number of that type: "12", "-3", for floating point also "0.5" and
// "1e-3". Nothing for anything else: white space, a "+", text after the number, or a number that does not
// fit.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace sluice::base
