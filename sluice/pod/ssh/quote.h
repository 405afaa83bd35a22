// Quoting of words for a POSIX shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::pod {

// Returns the text as one word for sh, with every byte but NUL. Harmless words stay as they are.
std::string quote(std::string_view text);
// Returns the words as one command line.
std::string quote_all(const std::vector<std::string>& words);

// Returns the words of a host or its ssh for a message: on one line in quotes, without terminal control
// sequences, cut after some hundred bytes. So none of its lines looks like one of Sluice's own.
std::string in_quotes(std::string_view said);

}  // namespace sluice::pod
