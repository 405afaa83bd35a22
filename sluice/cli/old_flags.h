// The flags of the PyTorch/XLA job that `sluice train` succeeds, answered with the new ones.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// What to say of a command line of `sluice train` (the words behind the verb) that has flags of that job:
// each of them with its new name, and the whole command line again. "" when it has none.
std::string answer_to_old_flags(const std::vector<std::string>& words);
// The same of a key in a TOML file: "num_epochs is now epochs"; "" for any other key.
std::string answer_to_old_key(const std::string& key);

}  // namespace sluice::cli
