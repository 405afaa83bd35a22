// Words for a POSIX shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::pod {

// The text as one word for sh: every byte but NUL survives. Harmless words stay as they are.
std::string quote(std::string_view text);
// The words as one command line.
std::string quote_all(const std::vector<std::string>& words);

// What a host or its ssh said, for a message: on one line in quotes, without what a terminal would obey, cut
// after some hundred bytes. So no line of it looks like one of Sluice's own.
std::string in_quotes(std::string_view said);

}  // namespace sluice::pod
