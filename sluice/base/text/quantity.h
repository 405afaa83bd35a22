// Counts and amounts as text for people. Output that programs read has plain numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::base {

std::string grouped(std::int64_t number);  // "12,345"

// Returns the English noun for `number` things: plural(1, "sample") is "sample", plural(2, "sample")
// "samples"; "class" gives "classes", "try" "tries".
std::string plural(std::int64_t number, std::string_view noun);
std::string counted(std::int64_t number, std::string_view noun);  // "1 sample", "12,345 samples"

// Three significant digits, and a unit with its prefix: unit_text(4.165e9, "FLOP") is "4.17 GFLOP". Sizes of
// files and transfers are in thousands ("1.53 GB", "64 MB", "768 B"), memory in steps of 1024 ("1.53 GiB").
std::string unit_text(double number, std::string_view unit);
std::string size_text(std::uint64_t bytes);
std::string memory_text(std::uint64_t bytes);

}  // namespace sluice::base
