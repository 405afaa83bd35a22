#include "sluice/pod/terminal.h"

#include "sluice/base/text/printable.h"

namespace sluice::pod {
namespace {

constexpr size_t kLongestColour = 64;
constexpr std::string_view kNoColour = "\x1b[0m";

// Returns the bytes of the SGR sequence at the beginning; 0: it is another text; npos: it may become one.
size_t colour_size(std::string_view text) {
  for (size_t i = 1; i < text.size() && i < kLongestColour; ++i) {
    const char c = text[i];
    if (i == 1 ? c == '[' : (c >= '0' && c <= '9') || c == ';' || c == ':') continue;
    return i > 1 && c == 'm' ? i + 1 : 0;
  }
  return text.size() < kLongestColour ? std::string_view::npos : 0;
}

// Returns the bytes of the multibyte UTF-8 character at the beginning; 0: it is not one; npos: its end is
// missing.
size_t character_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead >= 0xF5 ? 0 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return std::string_view::npos;
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return size;
}

std::string in_hex(unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Returns a visible form of a control character's byte.
std::string visible(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 ? in_hex(byte) : std::string{'^', static_cast<char>(byte ^ 0x40)};
}

bool is_high_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 && byte < 0xA0;
}

}  // namespace

// `taken`: the number of bytes processed. The rest may be an incomplete sequence or character; with `is_end`
// there is no rest.
std::string TerminalFilter::filter(std::string_view bytes, bool is_end, size_t& taken) {
  std::string shown;
  for (taken = 0; taken < bytes.size();) {
    const std::string_view rest = bytes.substr(taken);
    const char c = rest[0];
    size_t size = 1;
    if (c == '\x1b' || static_cast<unsigned char>(c) >= 0x80) {
      size = c == '\x1b' ? colour_size(rest) : character_size(rest);
      if (size == std::string_view::npos && !is_end) break;
      const bool is_whole = size != 0 && size != std::string_view::npos;
      if (!is_whole) {
        size = 1;
        shown += c == '\x1b' || is_high_control(c) ? visible(c) : std::string(1, c);
      } else if (size == 2 && c == '\xC2' && is_high_control(rest[1])) {
        shown += visible(rest[1]);
      } else if (c != '\x1b' && base::printable(rest.substr(0, size)).size() > size) {
        shown += base::printable(rest.substr(0, size));  // a character that changes the direction of the line
      } else {
        shown += rest.substr(0, size);
        if (c == '\x1b') coloured_ = rest.substr(0, size) != kNoColour && size > 3;
      }
    } else if (c == '\n') {
      if (coloured_) shown += kNoColour;
      coloured_ = false;
      shown += c;
    } else {
      const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
      shown += is_control && c != '\t' && c != '\r' ? visible(c) : std::string(1, c);
    }
    taken += size;
  }
  return shown;
}

std::string TerminalFilter::add(std::string_view bytes) {
  pending_ += bytes;
  size_t taken = 0;
  const std::string shown = filter(pending_, false, taken);
  pending_.erase(0, taken);
  return shown;
}

std::string TerminalFilter::finish() {
  size_t taken = 0;
  std::string shown = filter(pending_, true, taken);
  pending_.clear();
  if (coloured_) shown += kNoColour;
  coloured_ = false;
  return shown;
}

std::string harmless(std::string_view text) {
  TerminalFilter filter;
  const std::string shown = filter.add(text);
  return shown + filter.finish();
}

}  // namespace sluice::pod
