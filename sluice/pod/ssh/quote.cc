#include "sluice/pod/ssh/quote.h"

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"

namespace sluice::pod {

std::string quote(std::string_view text) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string quote_all(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quote(word);
  return line;
}

std::string in_quotes(std::string_view said) {
  constexpr size_t kMaxSaid = 600;
  const std::string_view text = base::trim(said);
  return base::str('"', base::printable_line(text.substr(0, kMaxSaid)), text.size() > kMaxSaid ? "…" : "",
                   '"');
}

}  // namespace sluice::pod
