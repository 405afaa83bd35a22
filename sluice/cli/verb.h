// The verbs of the program, and the command line that a list of them makes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/pjrt/machine/plugin_help.h"

namespace sluice::cli {

// A mistake in the command line that CLI11 cannot see.
class Usage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the value, or throws the error as Usage: for what the user wrote on the command line.
template <typename T>
T value_or_usage(base::Result<T> result) {
  if (!result) throw Usage(result.error().what());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// `sluice NAME`, or `sluice NOUN NAME` for a verb of a noun.
struct Verb {
  std::string name;
  std::string help;         // one line
  std::string footer = {};  // printed by --help after the flags
  // Adds the flags and positional arguments, which fill what `run` holds.
  std::function<void(CLI::App&)> add_flags = {};
  // Returns the exit status. It may throw sluice::Error (status 1) or Usage (2). It is empty for a noun,
  // which needs a verb.
  std::function<int()> run = {};
  std::vector<Verb> verbs = {};
  bool hidden = false;  // not shown to users
  // For a noun with more verbs in sluice-torch: `sluice` only knows the verbs that it runs itself.
  bool more_with_torch = false;
};

// Runs the chosen verb; empty until a verb was parsed.
using Action = std::function<int()>;

// Adds the verbs to the program (or to a noun). Parsing sets `action`. Both must outlive the parsing.
void add_verbs(CLI::App& program, const std::vector<Verb>& verbs, Action& action);

// Parses the command line and runs the chosen verb. Returns the exit status: the verb's, 1 after an error, 2
// for wrong usage. An error is one line on standard error.
int parse_and_run(CLI::App& program, const std::vector<Verb>& verbs, int argc, char** argv);

// Only parses words (without the program's name); the caller runs the action. Throws Usage for a mistake,
// CLI::Success for --help and --version.
void parse_line(CLI::App& program, const std::vector<std::string>& words);

// Returns the verb that the command line chose, at any depth.
const CLI::App& chosen_verb(const CLI::App& app);
// Returns the verbs that users see.
std::vector<const CLI::App*> shown_verbs(const CLI::App& app);
// Returns the long flag of `app` that is nearest to an unknown one ("--epochs" for "--epoch"), or "".
std::string nearest_flag(const CLI::App& app, const std::string& flag);

// Checks of a number. CLI11's own checks name the largest double, in 309 digits.
extern const CLI::Validator kZeroOrMore, kAboveZero;
// Both ends are allowed.
template <typename Number>
CLI::Validator between(Number low, Number high);
// Allows only these texts. The option's help shows them as its type_name, "a|b".
CLI::Validator one_of(std::vector<std::string> texts);

using pjrt::kPluginHelp;

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
