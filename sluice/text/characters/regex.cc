#include "sluice/text/characters/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr std::size_t kStackBytes = 64 << 10, kMaxStackBytes = 16 << 20;

// What a thread needs to search.
struct Scratch {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr);
  Scratch() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

Scratch& scratch() {
  thread_local Scratch one;
  return one;
}

std::string message_of(int number) {
  PCRE2_UCHAR8 text[256];
  pcre2_get_error_message(number, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What a backslash and a letter stand for, outside and inside of a class.
struct Escape {
  char letter;
  const char *outside, *inside;
};
// Unicode's word characters, and what Oniguruma has from Latin-1 besides: ² ³ ¹ ¼ ½ ¾.
#define SLUICE_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"
constexpr Escape kEscapes[] = {
    // PCRE2's \s has U+180E, which is no white space any more.
    {'s', "\\p{White_Space}", "\\p{White_Space}"},
    {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'w', "[" SLUICE_WORD "]", SLUICE_WORD},
    {'W', "[^" SLUICE_WORD "]", nullptr},
    {'d', "\\p{Nd}", "\\p{Nd}"},
    {'D', "\\P{Nd}", "\\P{Nd}"},
    {'h', "[0-9a-fA-F]", "0-9a-fA-F"},
    {'H', "[^0-9a-fA-F]", nullptr},
};
#undef SLUICE_WORD

}  // namespace

struct Regex::Program {
  pcre2_code* code = nullptr;
  bool fast = false;  // compiled to machine code
  std::string shown;
  ~Program() { pcre2_code_free(code); }
};

base::Result<std::string> ruby_to_pcre(std::string_view pattern) {
  std::string out;
  int depth = 0;  // of classes
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\' && at + 1 < pattern.size()) {
      const char letter = pattern[++at];
      const Escape* known = nullptr;
      for (const Escape& escape : kEscapes)
        if (escape.letter == letter) known = &escape;
      if (known == nullptr) {
        out += c;
        out += letter;
      } else if (depth > 0 && known->inside == nullptr) {
        return base::fail(Code::kUnimplemented, "the pattern '", pattern, "' has \\", letter,
                          " within a class: write what it stands for");
      } else {
        out += depth > 0 ? known->inside : known->outside;
      }
      continue;
    }
    if (depth > 0 && c == '&' && pattern.substr(at, 2) == "&&")
      return base::fail(Code::kUnimplemented, "the pattern '", pattern,
                        "' has && within a class, the intersection of two: write what is left");
    if (c == '(' && depth == 0 && pattern.substr(at, 2) == "(?") {
      // Ruby's m lets the dot match the end of a line, as PCRE2's s does.
      const std::size_t end = pattern.find_first_not_of("imx-", at + 2);
      if (end != std::string_view::npos && (pattern[end] == ':' || pattern[end] == ')')) {
        for (const char flag : pattern.substr(at, end - at)) out += flag == 'm' ? 's' : flag;
        at = end - 1;
        continue;
      }
    }
    if (c == '[' && pattern.substr(at, 2) == "[:" && depth > 0) {
      const std::size_t end = pattern.find(":]", at);
      if (end == std::string_view::npos)
        return base::fail(Code::kInvalidArgument, "the pattern '", pattern, "' has [: without :]");
      out += pattern.substr(at, end + 2 - at);
      at = end + 1;
      continue;
    }
    if (c == '[') {
      if (depth > 0 && pattern.substr(at, 2) == "[^")
        return base::fail(Code::kUnimplemented, "the pattern '", pattern,
                          "' has a class [^…] within another");
      if (depth++ > 0) continue;  // [a[bc]] is [abc]
      out += c;
      if (at + 1 < pattern.size() && pattern[at + 1] == '^') out += pattern[++at];
      if (at + 1 < pattern.size() && pattern[at + 1] == ']') {
        out += "\\]";
        ++at;
      }
      continue;
    }
    if (c == ']' && depth > 0) {
      if (--depth > 0) continue;
    }
    if (c == '}' && depth == 0 && at + 1 < pattern.size() && pattern[at + 1] == '+') {
      // {1,3}+ is a repetition of {1,3}, not a possessive one.
      const std::size_t open = out.rfind('{');
      if (open != std::string::npos && open + 1 < out.size() && out[open + 1] >= '0' && out[open + 1] <= '9')
        return base::fail(Code::kUnimplemented, "the pattern '", pattern,
                          "' repeats a repetition: ", out.substr(open), "}+");
    }
    out += c;
  }
  return out;
}

base::Result<Regex> Regex::build(const std::string& pattern, const std::string& shown, bool literal) {
  auto program = std::make_shared<Program>();
  program->shown = shown;
  int number = 0;
  PCRE2_SIZE place = 0;
  // In Ruby, ^ and $ mean lines.
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
  program->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), options,
                                &number, &place, nullptr);
  if (program->code == nullptr)
    return base::fail(Code::kInvalidArgument, "the pattern '", shown, "': ", message_of(number), " (near '",
                      pattern.substr(std::min<std::size_t>(place, pattern.size())), "')");
  program->fast = pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE) == 0;
  Regex regex;
  regex.program_ = std::move(program);
  return regex;
}

base::Result<Regex> Regex::compile(const std::string& pattern) {
  SLUICE_OK(check_utf8(pattern, "a pattern"));
  SLUICE_TRY(const std::string translated, ruby_to_pcre(pattern));
  return build(translated, pattern, false);
}

base::Result<Regex> Regex::literal(const std::string& text) {
  SLUICE_OK(check_utf8(text, "a pattern"));
  return build(text, text, true);
}

base::Result<Regex> read_pattern(const JsonObject& object) {
  SLUICE_TRY(const auto pattern, object.object("pattern"));
  const bool literal = pattern.has("String");
  SLUICE_TRY(const std::string text, pattern.text(literal ? "String" : "Regex"));
  auto regex = literal ? Regex::literal(text) : Regex::compile(text);
  if (!regex) return base::fail_at(regex, pattern.where());
  return regex;
}

base::Result<bool> Regex::search(std::string_view text, std::size_t from, std::size_t& begin,
                                 std::size_t& end) const {
  Scratch& own = scratch();
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data() == nullptr ? "" : text.data());
  const int found = program_->fast ? pcre2_jit_match(program_->code, subject, text.size(), from,
                                                     PCRE2_NO_UTF_CHECK, own.match, own.context)
                                   : pcre2_match(program_->code, subject, text.size(), from,
                                                 PCRE2_NO_UTF_CHECK, own.match, own.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0)
    return base::fail(Code::kResourceExhausted, "the pattern '", program_->shown, "' on ", text.size(),
                      " bytes of text: ", message_of(found));
  const PCRE2_SIZE* places = pcre2_get_ovector_pointer(own.match);
  begin = places[0];
  end = places[1];
  if (end < begin) end = begin;  // \K
  return true;
}

bool Regex::step(std::string_view text, std::size_t& from) {
  if (from >= text.size()) return false;
  from += utf8_length(text[from]);
  return true;
}

}  // namespace sluice::text
