#include "sluice/cli/flags/value_check.h"

#include <cstdint>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/command_tree.h"

namespace sluice::cli {
namespace {

using base::starts_with;

bool is_whole(const std::string& type) { return starts_with(type, "INT") || starts_with(type, "UINT"); }

bool is_number(const std::string& type) { return is_whole(type) || starts_with(type, "FLOAT"); }

// Whether the text is a number of an option's type. CLI11 checks its size in bits afterwards.
bool has_type(const std::string& text, const std::string& type) {
  std::int64_t number = 0;
  std::uint64_t count = 0;
  double real = 0;
  if (starts_with(type, "UINT")) return !starts_with(text, "-") && CLI::detail::lexical_cast(text, count);
  return is_whole(type) ? CLI::detail::lexical_cast(text, number) : CLI::detail::lexical_cast(text, real);
}

std::string found_text(const std::string& text) {
  return text.empty() ? "nothing" : base::str("'", text, "'");
}

const CLI::Option* option_of(const CLI::App& verb, const std::string& word) {
  return starts_with(word, "--") ? verb.get_option_no_throw(word.substr(0, word.find('='))) : nullptr;
}

bool may_be_empty(const CLI::Option& option) {
  return option.get_description().find("empty: ") != std::string::npos;
}

// Whether the verb's arguments are another program's command.
bool takes_command(const CLI::App& verb) {
  for (const CLI::Option* argument : positionals_of(verb))
    if (argument->get_name() == "COMMAND" || argument->get_name() == "RUN") return true;
  return false;
}

constexpr char kOnOff[] = "on|off";
constexpr char kNothing[] = ", found nothing; is a variable empty or unset?";

// Says what is wrong with `next`, the word after a flag that must have a value (null at the line's end), or
// "".
std::string missing_behind(const CLI::App& verb, const CLI::Option& option, const std::string* next) {
  const std::string expected = base::str(option.get_name(), ": expected ", expected_value(option));
  if (next == nullptr) return base::str(expected, ", found the end of the line");
  if (next->empty()) return may_be_empty(option) ? "" : expected + kNothing;
  if (*next == "--" || option_of(verb, *next) != nullptr)
    return base::str(expected, ", found ", *next, "; is a variable empty or unset?");
  return "";
}

}  // namespace

std::string expected_value(const CLI::Option& option) {
  if (std::vector<std::string> choices = choices_of(option); !choices.empty()) {
    const std::string last = choices.back();
    choices.pop_back();
    return base::str(base::join(choices, ", "), " or ", last);
  }
  const std::string type = option.get_type_name();
  if (!is_number(type)) return takes_value(option) ? "a text" : "no value, true or false";
  const std::string kind = is_whole(type) ? "a whole number" : "a number";
  if (type.find(":POSITIVE") != std::string::npos) return kind + " above 0";
  if (type.find(":NONNEGATIVE") != std::string::npos) return kind + " of 0 or more";
  const std::size_t open = type.find(" in ["), dash = type.find(" - ", open);
  if (open != std::string::npos && dash != std::string::npos)
    return base::str(kind, " from ", type.substr(open + 5, dash - open - 5), " to ",
                     type.substr(dash + 3, type.find(']', dash) - dash - 3));
  return kind;
}

void check_values(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    const std::string type = option->get_type_name();
    const bool number = is_number(type);
    if (!number && takes_value(*option) && type != kOnOff) continue;
    // transform() puts the check before the checks of the number's size.
    option->transform(CLI::Validator(
        [option, type, number](const std::string& text) {
          bool truth = false;
          if (number ? has_type(text, type) : CLI::detail::lexical_cast(text, truth)) return std::string();
          return base::str("expected ", expected_value(*option), ", found ", found_text(text));
        },
        ""));
  }
}

std::string missing_value(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* verb = &program;
  bool in_path = true;  // verbs come before flags
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (in_path) {
      const auto next = verb->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
      in_path = !next.empty();
      if (in_path) {
        verb = next.front();
        continue;
      }
    }
    if (word.empty() && !takes_command(*verb)) return "an argument is empty: is a variable empty or unset?";
    const CLI::Option* option = option_of(*verb, word);
    if (option == nullptr) continue;
    const std::string* const next = i + 1 < words.size() ? &words[i + 1] : nullptr;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      if (equals + 1 == word.size())
        return base::str(option->get_name(), ": expected ", expected_value(*option), " after =", kNothing);
    } else if (option->get_items_expected_min() > 0) {
      if (std::string missing = missing_behind(*verb, *option, next); !missing.empty()) return missing;
      ++i;
    } else if (takes_value(*option) && next != nullptr && next->empty()) {
      return base::str(option->get_name(), ": expected ", expected_value(*option), " or no word at all",
                       kNothing);
    }
  }
  return "";
}

std::string message_of(const CLI::ParseError& error) {
  const std::string text = error.what(), start = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  const std::string least = ": At least ", received = " required but received ";
  if (const std::size_t at = text.find(least), then = text.find(received);
      at != std::string::npos && then != std::string::npos && then > at)
    return base::str(text.substr(0, at), ": expected at least ",
                     text.substr(at + least.size(), then - at - least.size()), " words, found ",
                     text.substr(then + received.size()));
  // check_values() has already refused a text that is not a number, so this number is too large.
  if (!starts_with(text, start) || equals == std::string::npos) return text;
  return base::str(text.substr(start.size(), equals - start.size()),
                   ": expected a number nearer to 0, found '", text.substr(equals + 3), "'");
}

}  // namespace sluice::cli
