// Flags of a verb as rows of a table, from which the help, the keys of a TOML file, the rows of docs/flags.md
// and the shells' completion are made.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::cli {

// One of several texts.
struct ChoiceValue {
  std::vector<std::string> names;
  std::string now;                               // the default
  std::function<void(const std::string&)> take;  // throws sluice::Error for any other text
};
// A switch that is written out: on or off.
struct OnOffValue {
  bool* value;
};
// An optional text: the flag may be given without a value.
struct OptionalText {
  std::string* value;
};
// One more text each time the flag is given.
struct RepeatedText {
  std::vector<std::string>* values;
};

// Where a flag's value is stored; the value there before is the default. A bool is a flag without a value.
using FlagValue = std::variant<std::string*, int*, std::int64_t*, std::uint64_t*, double*, bool*, ChoiceValue,
                               OnOffValue, OptionalText, RepeatedText>;

struct Flag {
  const char* group;  // the heading in --help
  std::string name;   // "--batch-size"; the key in a TOML file is batch_size, or batch-size
  FlagValue value;
  const char* unit;  // "pixels"; "": none
  std::string help;
  std::pair<std::int64_t, std::int64_t> range = {0, 0};  // for a whole number; {0, 0}: any
};

// Adds the flags to a verb. The defaults in the help are the current values.
void add_flags(CLI::App& verb, const std::vector<Flag>& flags);

// Returns "batch_size" for "--batch-size".
std::string toml_key(const std::string& flag);

}  // namespace sluice::cli
