#include "sluice/base/text/quantity.h"

#include <array>
#include <cstddef>
#include <cstdio>

#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

using Prefixes = std::array<const char*, 6>;

std::string scaled(double number, double step, const Prefixes& prefixes, std::string_view unit) {
  constexpr double kFourDigits = 999.5;  // as three digits are rounded
  std::size_t place = 0;
  for (; number >= kFourDigits && place + 1 < prefixes.size(); ++place) number /= step;
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), number < kFourDigits ? "%.3g %s" : "%.0f %s", number,
                prefixes[place]);
  return text.data() + std::string(unit);
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
  if (ends_with(noun, "s") || (ends_with(noun, "ch") && noun != "epoch")) return text + "es";
  const bool ies = ends_with(noun, "y") && noun.size() > 1 &&
                   std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos;
  if (!ies) return text + "s";
  text.pop_back();
  return text + "ies";
}

std::string counted(std::int64_t number, std::string_view noun) {
  return grouped(number) + " " + plural(number, noun);
}

std::string unit_text(double number, std::string_view unit) {
  return scaled(number, 1000, {"", "k", "M", "G", "T", "P"}, unit);
}

std::string size_text(std::uint64_t bytes) { return unit_text(static_cast<double>(bytes), "B"); }

std::string memory_text(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"", "Ki", "Mi", "Gi", "Ti", "Pi"}, "B");
}

}  // namespace sluice::base
