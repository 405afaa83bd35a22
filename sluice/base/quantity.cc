#include "sluice/base/quantity.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include "sluice/base/strings.h"

namespace sluice::base {
namespace {

using Units = std::array<const char*, 6>;

std::string in_units(std::uint64_t bytes, double step, const Units& units) {
  constexpr double kFourDigits = 999.5;  // as three digits are rounded
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= kFourDigits && unit + 1 < units.size(); ++unit) number /= step;
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), number < kFourDigits ? "%.3g %s" : "%.0f %s", number, units[unit]);
  return text.data();
}

}  // namespace

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string plural(std::int64_t number, std::string_view noun) {
  std::string text(noun);
  if (number == 1) return text;
  if (ends_with(noun, "s")) return text + "es";
  const bool ies = ends_with(noun, "y") && noun.size() > 1 &&
                   std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos;
  if (!ies) return text + "s";
  text.pop_back();
  return text + "ies";
}

std::string counted(std::int64_t number, std::string_view noun) {
  return grouped(number) + " " + plural(number, noun);
}

std::string size_text(std::uint64_t bytes) {
  return in_units(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB"});
}

std::string memory_text(std::uint64_t bytes) {
  return in_units(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

}  // namespace sluice::base
