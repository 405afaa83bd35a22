// Makes the output of workers harmless for the operator's terminal.
#pragma once

#include <string>
#include <string_view>

namespace sluice::pod {

// Colours (complete SGR sequences, ESC [ … m) stay, and end with their line. Every other control character
// except tab, newline and carriage return is made visible: ^[ for escape, ^G for the bell, \x9b for the 8-bit
// ones (as a byte or in UTF-8), \u202e for characters that change the direction of a line. So no worker can
// move the cursor, set the title or make the terminal answer.
class TerminalFilter {
 public:
  // Returns the filtered bytes; an incomplete sequence or character waits for its rest.
  std::string add(std::string_view bytes);
  // Returns the waiting bytes, made harmless, and the end of the colours.
  std::string finish();

 private:
  std::string filter(std::string_view bytes, bool is_end, size_t& taken);
  std::string pending_;
  bool coloured_ = false;
};

// Filters a whole text at once.
std::string harmless(std::string_view text);

}  // namespace sluice::pod
