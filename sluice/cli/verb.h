// What a verb of the program is, and how the list of them becomes a command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/base/strings.h"

namespace sluice::cli {

// A mistake in the command line that CLI11 cannot see.
class Usage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `sluice NAME`, or `sluice NOUN NAME` for a verb of a noun.
struct Verb {
  std::string name;
  std::string help;         // one line
  std::string footer = {};  // what --help says behind the flags
  // Adds the flags and positional arguments, which fill what `run` holds.
  std::function<void(CLI::App&)> add_flags = {};
  // Its result is the exit status. It may throw sluice::Error (status 1) or Usage (2). Empty for a noun, of
  // which one verb must be given.
  std::function<int()> run = {};
  std::vector<Verb> verbs = {};
  bool hidden = false;  // not for people
  // A noun of which sluice-torch has more verbs: `sluice` knows only those that it does itself.
  bool more_with_torch = false;
};

// What the chosen verb does; empty until one was parsed.
using Action = std::function<int()>;

// Adds the verbs to the program (or to a noun). Parsing sets the action; both must live as long as the
// parsing.
void add_verbs(CLI::App& program, const std::vector<Verb>& verbs, Action& action);

// Parses the command line and does what the chosen verb does. Returns the exit status: the verb's, 1 after an
// error, 2 for wrong usage. Errors are one line on standard error.
int parse_and_run(CLI::App& program, const std::vector<Verb>& verbs, int argc, char** argv);

// Parses words (without the program's name) and no more: what the verbs do is left to the action. Throws
// Usage for a mistake, CLI::Success for --help and --version.
void parse_line(CLI::App& program, const std::vector<std::string>& words);

// The verb that the command line chose, at any depth.
const CLI::App& chosen_verb(const CLI::App& app);
// The verbs that people see.
std::vector<const CLI::App*> shown_verbs(const CLI::App& app);
// "--epochs" for "--epoch": the long flag of `app` nearest to an unknown one, or "".
std::string nearest_flag(const CLI::App& app, const std::string& flag);

// Of a number: CLI11's own checks name the largest double, in 309 digits.
extern const CLI::Validator kZeroOrMore, kAboveZero;
// Both ends belong to it.
template <typename Number>
CLI::Validator between(Number low, Number high);
// One of these texts. What an option shows of it is its type_name, "a|b".
CLI::Validator one_of(std::vector<std::string> texts);

// What --plugin means wherever it is.
inline constexpr const char* kPluginHelp =
    "auto (a TPU if the machine has one, else a GPU, else the CPU), cpu, tpu, cuda or a path; empty: "
    "$SLUICE_PLUGIN, else auto";

template <typename Number>
CLI::Validator between(Number low, Number high) {
  const auto check = [=](const std::string& text) {
    Number number{};
    if (CLI::detail::lexical_cast(text, number) && number >= low && number <= high) return std::string();
    return base::str("expected ", low, " to ", high, ", found ", text);
  };
  return CLI::Validator(check, CLI::Range(low, high).get_description());
}

}  // namespace sluice::cli
