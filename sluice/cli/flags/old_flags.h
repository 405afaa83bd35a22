// Answers flags of the PyTorch/XLA job that `sluice train` succeeds with the new flags.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// Returns the answer to a command line of `sluice train` (the words after the verb) that has flags of that
// job: the new name of each, and the whole new command line. "" if it has no such flags.
std::string answer_to_old_flags(const std::vector<std::string>& words);
// Returns the answer for a key in a TOML file: "num_epochs is now epochs"; "" for any other key.
std::string answer_to_old_key(const std::string& key);

}  // namespace sluice::cli
