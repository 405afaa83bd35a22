// Messages for empty and wrong values: CLI11 names neither what a flag expects nor what was found.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

// Returns, for example, "a whole number from 1 to 1000", "a number above 0", "f32 or bf16" or "a text".
std::string expected_value(const CLI::Option& option);

// Makes the options of this verb refuse a value that is not a number if they take one; flags without a value
// refuse a value that is neither true nor false.
void check_values(CLI::App& verb);

// Returns "--ttl: expected a text, found nothing; is a variable empty or unset?" for the first flag of the
// line whose value is empty, left out or another flag, and a message for an empty argument; "" if there is
// neither. A flag whose help says what "empty:" means may be empty, and so may all words after -- and a
// command's words. `words`: without the program's name.
std::string missing_value(const CLI::App& program, const std::vector<std::string>& words);

// Returns CLI11's message for an error, or a clearer one.
std::string message_of(const CLI::ParseError& error);

}  // namespace sluice::cli
