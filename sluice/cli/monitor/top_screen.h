// The full screen of `sluice top`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sluice::cli {

// Shows the lines, refreshed each second, until q or Ctrl-C. `title` comes first. Arrow and page keys scroll.
// Throws Usage if there is no terminal.
void show_screen(const std::function<std::string()>& title,
                 const std::function<std::vector<std::string>()>& lines);

}  // namespace sluice::cli
