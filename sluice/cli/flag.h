// A flag of a verb as a row of a table: its help, the key of a TOML file, its line on docs/flags.md and the
// shells' completion are all made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::cli {

// One of a few texts.
struct ChoiceValue {
  std::vector<std::string> names;
  std::string now;                               // the default
  std::function<void(const std::string&)> take;  // throws sluice::Error for a text that is none of the names
};
// A switch that is written out: on or off.
struct OnOffValue {
  bool* value;
};
// A text that may be left out: the flag may stand alone.
struct OptionalText {
  std::string* value;
};
// A text each time that the flag is given.
struct RepeatedText {
  std::vector<std::string>* values;
};

// Where a flag's value goes; what is there before is the default. A bool is a flag without a value.
using FlagValue = std::variant<std::string*, int*, std::int64_t*, std::uint64_t*, double*, bool*, ChoiceValue,
                               OnOffValue, OptionalText, RepeatedText>;

struct Flag {
  const char* group;  // the heading in --help
  std::string name;   // "--batch-size"; the key in a TOML file is batch_size, or batch-size
  FlagValue value;
  const char* unit;  // "pixels"; "": none
  std::string help;
  std::pair<std::int64_t, std::int64_t> range = {0, 0};  // of a whole number; {0, 0}: any
};

// Adds the flags to a verb. The defaults that the help shows are the values as they are now.
void add_flags(CLI::App& verb, const std::vector<Flag>& flags);

// "batch_size" of "--batch-size".
std::string toml_key(const std::string& flag);

}  // namespace sluice::cli
