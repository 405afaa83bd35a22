#include "sluice/cli/flags/flag.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "sluice/base/error.h"
#include "sluice/base/text/exact_integer.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

// Calls a function that reads a text; CLI11 expects an error of its own from it.
template <typename Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw CLI::ParseError(error.what(), CLI::ExitCodes::ValidationError);
  }
}

// Returns the value of a flag that also takes 2e9.
std::int64_t whole_number(const std::string& flag, double number) {
  if (!(number >= 0 && number <= static_cast<double>(base::kMaxExactInteger)) || number != std::floor(number))
    throw CLI::ParseError(base::str(flag, " takes a whole number, such as 2e9, not ", number),
                          CLI::ExitCodes::ValidationError);
  return static_cast<std::int64_t>(number);
}

// Adds one flag; it has an overload for each kind of value.
struct Adder {
  CLI::App& verb;
  const Flag& flag;
  const std::string& text;  // the help, with the unit

  // Adds a flag whose texts `take` reads; it throws sluice::Error.
  template <typename Text>
  CLI::Option* add_read(std::function<void(const Text&)> take) const {
    const auto read = [take = std::move(take)](const Text& given) { read_or_refuse([&] { take(given); }); };
    // As options with a variable are; then config_to_str() writes an empty default, too.
    return verb.add_option_function<Text>(flag.name, read, text)->run_callback_for_default();
  }
  template <typename Value>
  CLI::Option* operator()(Value* value) const {
    return verb.add_option(flag.name, *value, text)->capture_default_str();
  }
  CLI::Option* operator()(bool* value) const { return verb.add_flag(flag.name, *value, text); }
  CLI::Option* operator()(std::optional<bool>* value) const {
    return verb.add_flag_function(
        flag.name, [value](std::int64_t count) { *value = count > 0; }, text);
  }
  template <typename Number>
  CLI::Option* operator()(std::vector<Number>* numbers) const {
    return add_read<std::string>([name = flag.name, numbers](const std::string& given) {
             *numbers = base::parse_numbers<Number>(name, given);
           })
        ->default_str(base::join(*numbers, ","));
  }
  CLI::Option* operator()(const ChoiceValue& choice) const {
    return add_read<std::string>(choice.take)
        ->type_name(base::join(choice.names, "|"))
        ->default_str(choice.now);
  }
  CLI::Option* operator()(const OnOffValue& on) const {
    return verb.add_option(flag.name, *on.value, text)
        ->type_name("on|off")
        ->default_str(*on.value ? "on" : "off");
  }
  CLI::Option* operator()(const base::OpenOnOffValue& on) const {
    return verb
        .add_option_function<bool>(
            flag.name, [value = on.value](const bool& given) { *value = given; }, text)
        ->type_name("on|off")
        ->default_str(on.value->value_or(on.usual) ? "on" : "off");
  }
  CLI::Option* operator()(const OptionalText& optional) const {
    // A TOML file says `true` for a flag without a value.
    return add_read<std::string>([optional](const std::string& given) {
             const bool unnamed = optional.unnamed && (given.empty() || given == "true");
             *optional.value = unnamed ? optional.unnamed() : given;
           })
        ->expected(0, 1)
        ->default_str("");
  }
  // One text each time: a second one might be the -- before a command.
  CLI::Option* operator()(const RepeatedText& repeated) const {
    return verb.add_option(flag.name, *repeated.values, text)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->default_str(base::join(*repeated.values, ","));  // CLI11's own text depends on LibTorch's operators
  }
  CLI::Option* operator()(const TextList& list) const {
    return (*this)(RepeatedText{list.values})->delimiter(',');
  }
  CLI::Option* operator()(const Words& words) const {
    CLI::Option* option = verb.add_option(flag.name, *words.values, text)->default_str("");
    // A negative number of words stands for more than that many.
    if (words.min_words != 1 || words.max_words != 0)
      option->expected(words.min_words, words.max_words == 0 ? -1 : words.max_words);
    return option;
  }
  CLI::Option* operator()(const base::LargeNumber& number) const {
    const auto take = [name = flag.name, value = number.value](const double& given) {
      *value = whole_number(name, given);
    };
    return verb.add_option_function<double>(flag.name, take, text)->default_str(base::str(*number.value));
  }
  CLI::Option* operator()(const base::ParsedText& parsed) const {
    // A TOML file says `true` for a flag without a value.
    CLI::Option* option = add_read<std::string>([parsed](const std::string& given) {
      const bool unnamed = parsed.unnamed && (given.empty() || given == "true");
      parsed.take(unnamed ? *parsed.unnamed : given);
    });
    // CLI11 would take a default for the value that is left out.
    if (parsed.unnamed) return option->expected(0, 1)->default_str("");
    return parsed.now ? option->default_str(*parsed.now) : option;
  }
  CLI::Option* operator()(const base::ParsedTexts& parsed) const {
    return add_read<std::vector<std::string>>(parsed.take)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  CLI::Option* operator()(const base::TakenNumber& taken) const {
    return verb.add_option_function<std::int64_t>(flag.name, taken.take, text);
  }
  CLI::Option* operator()(const base::TakenSwitch& taken) const {
    return verb.add_flag_callback(flag.name, taken.take, text);
  }
};

// Adds what the row says besides the value.
void complete(CLI::Option& option, const Flag& flag) {
  if (*flag.group != '\0') option.group(flag.group);
  if (flag.is_hidden) option.group("");
  if (flag.range.first != flag.range.second) option.check(between(flag.range.first, flag.range.second));
  if (flag.sign == base::Sign::kZeroOrMore) option.check(kZeroOrMore);
  if (flag.sign == base::Sign::kAboveZero) option.check(kAboveZero);
  if (!flag.only.empty()) option.check(one_of(flag.only))->type_name(base::join(flag.only, "|"));
  if (flag.is_required) option.required();
  if (flag.shown_default) option.default_str(*flag.shown_default);
  if (*flag.type != '\0') option.type_name(flag.type);
}

}  // namespace

void add_flags(CLI::App& verb, const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    const std::string text = *flag.unit == '\0' ? flag.help : base::str(flag.help, " [", flag.unit, "]");
    complete(*std::visit(Adder{verb, flag, text}, flag.value), flag);
  }
}

std::set<std::string> given_flags(const CLI::App& verb) {
  std::set<std::string> given;
  for (const CLI::Option* option : verb.get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      given.insert("--" + option->get_lnames().front());
  return given;
}

}  // namespace sluice::cli
