// A text from elsewhere as people may see it.
#pragma once

#include <string>
#include <string_view>

#include "sluice/base/text/printable.h"
#include "sluice/base/text/shown_url.h"

namespace sluice::base {

// Returns the text without the secrets in its addresses, and with nothing that controls a terminal. Every
// message on a terminal and in a log that may name an address goes through it. Threads: any.
inline std::string shown_text(std::string_view text) { return printable(shown_urls(text)); }

}  // namespace sluice::base
