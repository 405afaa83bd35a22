// Rows of options (base/flag.h) as flags of a verb, from which the help, the keys of a TOML file, the rows of
// docs/flags.md and the shells' completion are made.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/flag.h"

namespace sluice::cli {

using base::ChoiceValue;
using base::Flag;
using base::OnOffValue;
using base::OptionalText;
using base::RepeatedText;
using base::TextList;
using base::toml_key;
using base::Words;

// Adds the flags to a verb. The defaults in the help are the current values. The values, and what the rows
// refer to, must outlive the parsing.
void add_flags(CLI::App& verb, const std::vector<Flag>& flags);

// Returns the long flags that were given so far, with their dashes.
std::set<std::string> given_flags(const CLI::App& verb);

}  // namespace sluice::cli
