#include "sluice/text/characters/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "sluice/text/characters/ruby_pattern.h"
#include "sluice/text/characters/unicode.h"

namespace sluice::text {
namespace {

constexpr std::size_t kStackBytes = 64 << 10, kMaxStackBytes = 16 << 20;

// The memory with which one thread searches.
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

// A context in which only LF ends a line, as in Ruby.
pcre2_compile_context* line_feeds() {
  static auto* const context = [] {
    auto* made = pcre2_compile_context_create(nullptr);
    pcre2_set_newline(made, PCRE2_NEWLINE_LF);
    return made;
  }();
  return context;
}

}  // namespace

struct Regex::Program {
  pcre2_code* code = nullptr;
  bool fast = false;  // compiled to machine code
  std::string shown;
  ~Program() { pcre2_code_free(code); }
};

base::Result<Regex> Regex::build(const std::string& pattern, const std::string& shown, bool literal) {
  auto program = std::make_shared<Program>();
  program->shown = shown;
  int number = 0;
  PCRE2_SIZE place = 0;
  // In Ruby, ^ and $ match at line ends.
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_MULTILINE);
  program->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), options,
                                &number, &place, line_feeds());
  if (program->code == nullptr)
    return base::fail(Code::kInvalidArgument, "the pattern '", shown, "': ", message_of(number));
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
  if (end < begin) end = begin;  // \K can move the begin past the end
  return true;
}

bool Regex::step(std::string_view text, std::size_t& from) {
  if (from >= text.size()) return false;
  from += utf8_length(text[from]);
  return true;
}

}  // namespace sluice::text
