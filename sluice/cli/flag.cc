#include "sluice/cli/flag.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/cli/verb.h"

namespace sluice::cli {
namespace {

// Adds one flag; it has an overload for each kind of value.
struct Adder {
  CLI::App& verb;
  const Flag& flag;
  const std::string& text;  // the help, with the unit

  template <typename Value>
  CLI::Option* operator()(Value* value) const {
    return verb.add_option(flag.name, *value, text)->capture_default_str();
  }
  CLI::Option* operator()(bool* value) const { return verb.add_flag(flag.name, *value, text); }
  CLI::Option* operator()(const ChoiceValue& choice) const {
    const auto take = [take = choice.take](const std::string& given) {
      try {
        take(given);
      } catch (const Error& error) {
        throw CLI::ParseError(error.what(), CLI::ExitCodes::ValidationError);
      }
    };
    return verb.add_option_function<std::string>(flag.name, take, text)
        ->type_name(base::join(choice.names, "|"))
        ->default_str(choice.now);
  }
  CLI::Option* operator()(const OnOffValue& on) const {
    return verb.add_option(flag.name, *on.value, text)
        ->type_name("on|off")
        ->default_str(*on.value ? "on" : "off");
  }
  CLI::Option* operator()(const OptionalText& optional) const {
    return verb.add_option(flag.name, *optional.value, text)->expected(0, 1)->default_str("");
  }
  CLI::Option* operator()(const RepeatedText& repeated) const {
    return verb.add_option(flag.name, *repeated.values, text)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
};

}  // namespace

std::string toml_key(const std::string& flag) {
  std::string key = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

void add_flags(CLI::App& verb, const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    const std::string text = *flag.unit == '\0' ? flag.help : base::str(flag.help, " [", flag.unit, "]");
    CLI::Option* option = std::visit(Adder{verb, flag, text}, flag.value);
    option->group(flag.group);
    if (flag.range.first != flag.range.second) option->check(between(flag.range.first, flag.range.second));
  }
}

}  // namespace sluice::cli
