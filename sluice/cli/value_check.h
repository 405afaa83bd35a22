// What the flags of a verb expect and what a line gives them: of an empty or wrong value CLI11 says neither.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

// "a whole number from 1 to 1000", "a number above 0", "f32 or bf16", "a text".
std::string expected_value(const CLI::Option& option);

// From now on the options of this verb refuse what is no number where they take one, and flags without a
// value what is neither true nor false.
void check_values(CLI::App& verb);

// "--ttl: expected a text, found nothing; is a variable empty or unset?" for the first flag of the line whose
// value is empty, left out or another flag, and for an empty argument; "" where there is none. A flag whose
// help says what "empty:" means may be empty, and so may all words behind -- and those of a command.
// `words`: without the program's name.
std::string missing_value(const CLI::App& program, const std::vector<std::string>& words);

// What CLI11 says of an error, or what it should say.
std::string message_of(const CLI::ParseError& error);

}  // namespace sluice::cli
