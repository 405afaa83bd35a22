#include "sluice/text/characters/unicode.h"

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <cstring>

#include "sluice/base/check.h"

namespace sluice::text {
namespace {

// The bytes at a place that begin a character; `whole` says whether they are a complete one.
struct Begun {
  std::size_t bytes;
  bool whole;
};

Begun begun_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return {1, true};
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0) return {1, false};
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i == text.size()) return {i, false};
    // Overlong forms, surrogates and values above U+10FFFF are recognized at the second byte.
    const unsigned low = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(at + i) < low || byte(at + i) > high) return {i, false};
  }
  return {length, true};
}

bool in_mask(char32_t code, std::uint32_t mask) {
  return (U_MASK(u_charType(static_cast<UChar32>(code))) & mask) != 0;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    while (at + 8 <= text.size()) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080ull) != 0) break;
      at += 8;
    }
    if (at == text.size()) break;
    const Begun begun = begun_at(text, at);
    if (!begun.whole) return at;
    at += begun.bytes;
  }
  return std::string_view::npos;
}

base::Status check_utf8(std::string_view text, std::string_view what, std::uint64_t offset) {
  const std::size_t at = first_invalid_utf8(text);
  if (at == std::string_view::npos) return {};
  char value[8];
  std::snprintf(value, sizeof value, "0x%02X", static_cast<unsigned char>(text[at]));
  return base::fail(Code::kInvalidArgument, what, ": expected UTF-8, found the byte ", value, " at byte ",
                    offset + at, ", which no character has there; convert the text (iconv -t UTF-8) first");
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Begun begun = begun_at(text, at);
    if (begun.whole) {
      valid.append(text, at, begun.bytes);
    } else {
      valid += "\xEF\xBF\xBD";
    }
    at += begun.bytes;
  }
  return valid;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

void append_utf8(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080ull) != 0) return false;
  }
  for (; at < text.size(); ++at)
    if (static_cast<unsigned char>(text[at]) >= 0x80) return false;
  return true;
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
  return u_isUWhiteSpace(static_cast<UChar32>(code)) != 0;
}

bool is_word(char32_t code) {
  if (code < 0x80)
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || code == '_' ||
           (code >= 'a' && code <= 'z');
  return u_isUAlphabetic(static_cast<UChar32>(code)) != 0 ||
         in_mask(code, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_JOIN_CONTROL) != 0;
}

bool is_ascii_punctuation(char32_t code) {
  return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
         (code >= 123 && code <= 126);
}
bool is_punctuation(char32_t code) { return in_mask(code, U_GC_P_MASK); }
bool is_number(char32_t code) { return in_mask(code, U_GC_N_MASK); }
bool is_mark(char32_t code) { return in_mask(code, U_GC_M_MASK); }
bool is_nonspacing_mark(char32_t code) { return in_mask(code, U_GC_MN_MASK); }
bool is_control(char32_t code) { return in_mask(code, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK); }

char32_t lower_case(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  return static_cast<char32_t>(u_tolower(static_cast<UChar32>(code)));
}

struct Graphemes::Impl {
  UText* text = nullptr;
  UBreakIterator* breaks = nullptr;
  std::size_t at = 0;
};

Graphemes::Graphemes(std::string_view text) : impl_(new Impl) {
  UErrorCode status = U_ZERO_ERROR;
  impl_->text = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  impl_->breaks = ubrk_open(UBRK_CHARACTER, "", nullptr, 0, &status);
  ubrk_setUText(impl_->breaks, impl_->text, &status);
  SLUICE_CHECK(U_SUCCESS(status), "ICU opens its rules of grapheme clusters");
}

Graphemes::~Graphemes() {
  ubrk_close(impl_->breaks);
  utext_close(impl_->text);
  delete impl_;
}

bool Graphemes::next(std::size_t& begin, std::size_t& end) {
  const int32_t to = ubrk_next(impl_->breaks);
  if (to == UBRK_DONE) return false;
  begin = impl_->at;
  end = impl_->at = static_cast<std::size_t>(to);
  return true;
}

}  // namespace sluice::text
