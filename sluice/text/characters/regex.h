// Regular expressions of tokenizer.json, in Oniguruma's Ruby syntax, run by PCRE2.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sluice/base/result.h"
#include "sluice/text/json_object.h"

namespace sluice::text {

// Threads: any number of them may search at the same time.
class Regex {
 public:
  // Errors: kInvalidArgument, naming the place of a mistake; kUnimplemented for features that PCRE2 lacks.
  static base::Result<Regex> compile(const std::string& pattern);
  // Compiles an expression that only matches this text.
  static base::Result<Regex> literal(const std::string& text);

  // Calls found(begin, end) for each match in a text of valid UTF-8, from front to back. An empty match
  // directly after another match does not count. kResourceExhausted if a search takes too much.
  template <typename Found>
  base::Status each(std::string_view text, Found&& found) const {
    std::size_t from = 0, last = npos;
    for (;;) {
      std::size_t begin = 0, end = 0;
      SLUICE_TRY(const bool matched, search(text, from, begin, end));
      if (!matched) return {};
      if (begin == end && end == last) {
        if (!step(text, from)) return {};
        continue;
      }
      found(begin, end);
      from = last = end;
    }
  }

 private:
  struct Program;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  static base::Result<Regex> build(const std::string& pattern, const std::string& shown, bool literal);
  base::Result<bool> search(std::string_view text, std::size_t from, std::size_t& begin,
                            std::size_t& end) const;
  static bool step(std::string_view text, std::size_t& from);

  std::shared_ptr<const Program> program_;
};

// Reads the field "pattern" of a component: {"String": …} or {"Regex": …}.
base::Result<Regex> read_pattern(const JsonObject& object);

}  // namespace sluice::text
