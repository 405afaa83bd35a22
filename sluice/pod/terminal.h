// What workers write, made harmless for the operator's terminal.
#pragma once

#include <string>
#include <string_view>

namespace sluice::pod {

// Colours (complete SGR sequences, ESC [ … m) stay, and end with their line. Every other control character
// but tab, newline and carriage return is made visible: ^[ for escape, ^G for the bell, \x9b for those of
// eight bits, alone or in UTF-8, \u202e for what turns a line's direction. So no worker moves the cursor,
// sets the title or asks the terminal for an answer.
class TerminalFilter {
 public:
  // What these bytes add; the beginning of a sequence or of a character waits for its rest.
  std::string add(std::string_view bytes);
  // What waited, made visible, and the end of the colours.
  std::string finish();

 private:
  std::string filter(std::string_view bytes, bool is_end, size_t& taken);
  std::string pending_;
  bool coloured_ = false;
};

// A whole text at once.
std::string harmless(std::string_view text);

}  // namespace sluice::pod
