#include "sluice/base/flag.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "sluice/base/error.h"
#include "sluice/base/text/exact_integer.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::base {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw_error(Code::kInvalidArgument, message); }

std::string text_of(bool on) { return on ? "true" : "false"; }

// The value as text; it has an overload for each kind of value.
struct ValueText {
  std::string operator()(const std::string* text) const { return *text; }
  std::string operator()(const bool* on) const { return text_of(*on); }
  std::string operator()(const std::optional<bool>* on) const { return *on ? text_of(**on) : ""; }
  template <typename Number>
  std::string operator()(const std::vector<Number>* numbers) const {
    return join(*numbers, ",");
  }
  template <typename Number>
  std::string operator()(const Number* number) const {
    return str(*number);
  }
  std::string operator()(const ChoiceValue& choice) const { return choice.now; }
  std::string operator()(const OnOffValue& on) const { return *on.value ? "on" : "off"; }
  std::string operator()(const OpenOnOffValue& on) const { return (*this)(on.value); }
  std::string operator()(const OptionalText& text) const { return *text.value; }
  std::string operator()(const LargeNumber& number) const { return str(*number.value); }
  std::string operator()(const ParsedText& text) const { return text.now.value_or(""); }
  std::string operator()(const std::optional<int>* number) const { return *number ? str(**number) : ""; }
  template <typename Other>
  requires(!std::is_pointer_v<Other>) std::string operator()(const Other& /*value*/) const { return ""; }
};

struct IsSet {
  bool operator()(const std::string* text) const { return !text->empty(); }
  bool operator()(const bool* on) const { return *on; }
  bool operator()(const std::optional<bool>* on) const { return on->value_or(false); }
  template <typename Number>
  bool operator()(const std::vector<Number>* numbers) const {
    return !numbers->empty();
  }
  template <typename Number>
  bool operator()(const Number* number) const {
    return *number > 0;
  }
  bool operator()(const ChoiceValue& /*choice*/) const { return true; }
  bool operator()(const OnOffValue& on) const { return *on.value; }
  bool operator()(const OpenOnOffValue& on) const { return on.value->value_or(on.usual); }
  bool operator()(const OptionalText& text) const { return !text.value->empty(); }
  bool operator()(const RepeatedText& texts) const { return !texts.values->empty(); }
  bool operator()(const LargeNumber& number) const { return *number.value > 0; }
  bool operator()(const ParsedText& text) const { return text.now && !text.now->empty(); }
  bool operator()(const std::optional<int>* number) const { return number->has_value(); }
  bool operator()(const TextList& texts) const { return !texts.values->empty(); }
  bool operator()(const Words& words) const { return !words.values->empty(); }
  template <typename Other>
  requires(!std::is_pointer_v<Other>) bool operator()(const Other& /*value*/) const { return false; }
};

template <typename Number>
void check_interval(const Flag& flag, Number value) {
  if (!flag.interval->has(static_cast<double>(value)))
    refuse(str(flag.name, " ", flag.expected, ", not ", value));
}

// Checks the numbers of a row; values of other kinds have their own checks.
struct NumberCheck {
  const Flag& flag;

  template <typename Number>
  void check(Number number) const {
    if constexpr (std::is_integral_v<Number>)
      if (flag.least) check_least(flag.name, static_cast<std::int64_t>(number), *flag.least);
    if (flag.interval) check_interval(flag, number);
  }
  template <typename Value>
  void operator()(Value* value) const {
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) check(*value);
  }
  template <typename Number>
  void operator()(std::vector<Number>* numbers) const {
    for (const Number number : *numbers) check(number);
  }
  void operator()(const LargeNumber& number) const { check(*number.value); }
  void operator()(const ChoiceValue& choice) const {
    if (choice.now.empty()) choice.take("another value");  // which lists the values that have a name
  }
  void operator()(const ParsedText& text) const {
    if (text.now) text.take(*text.now);  // which refuses a value that no text says
  }
  template <typename Other>
  void operator()(const Other& /*value*/) const {}
};

}  // namespace

Flag&& Flag::setting(int rank) && { return std::move(*this).setting_if(is_set(*this), rank); }

std::string toml_key(const std::string& flag) {
  std::string key = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

template <typename Number>
std::vector<Number> parse_numbers(const std::string& flag, std::string text) {
  std::vector<Number> numbers;
  if (starts_with(text, "[") && ends_with(text, "]")) text = text.substr(1, text.size() - 2);
  for (const std::string& part : split(text, ',')) {
    const std::string_view digits = trim(part);
    if (digits.empty()) continue;
    const auto number = number_of<Number>(digits);
    if (!number) refuse(str(flag, " takes numbers separated by commas, not \"", text, "\""));
    numbers.push_back(*number);
  }
  return numbers;
}
template std::vector<double> parse_numbers(const std::string&, std::string);
template std::vector<float> parse_numbers(const std::string&, std::string);
template std::vector<std::int64_t> parse_numbers(const std::string&, std::string);

std::string value_text(const Flag& flag) { return std::visit(ValueText{}, flag.value); }

bool is_set(const Flag& flag) { return std::visit(IsSet{}, flag.value); }

void copy_value(const Flag& from, const Flag& to) {
  std::visit(
      [&](const auto& source) {
        using Value = std::decay_t<decltype(source)>;
        const Value& target = std::get<Value>(to.value);
        if constexpr (std::is_pointer_v<Value>)
          *target = *source;
        else if constexpr (std::is_same_v<Value, ChoiceValue>)
          target.take(source.now);
        else if constexpr (requires { source.values; })
          *target.values = *source.values;
        else if constexpr (requires { source.value; })
          *target.value = *source.value;
        else if constexpr (std::is_same_v<Value, ParsedText>)
          if (source.now) target.take(*source.now);
      },
      from.value);
}

void check_least(const std::string& flag, std::int64_t value, std::int64_t least) {
  if (value < least) refuse(str(flag, " must be at least ", least, ", not ", value));
  // A number that is too large for the type was read as the type's largest value.
  const char* const more = value == std::numeric_limits<std::int64_t>::max() ? " or more" : "";
  if (value > kMaxExactInteger)
    refuse(str(flag, " must be at most ", kMaxExactInteger, ", not ", value, more));
}

void check_value(const Flag& flag) {
  std::visit(NumberCheck{flag}, flag.value);
  if (flag.own_check) flag.own_check();
}

std::vector<Flag> in_help_order(std::vector<std::vector<Flag>> sections) {
  std::vector<Flag> ordered;
  std::vector<std::vector<Flag>> blocks;  // each follows a flag of another one
  for (std::vector<Flag>& section : sections) {
    std::vector<Flag>* block = &ordered;
    for (Flag& flag : section) {
      if (!flag.follows.empty()) block = &blocks.emplace_back();
      block->push_back(std::move(flag));
    }
  }
  for (std::vector<Flag>& block : blocks) {
    const auto before = std::find_if(ordered.begin(), ordered.end(),
                                     [&](const Flag& flag) { return flag.name == block.front().follows; });
    if (before == ordered.end())
      throw_error(Code::kInternal, str(block.front().name, " follows ", block.front().follows,
                                       ", which no row before it has"));
    ordered.insert(before + 1, std::move_iterator(block.begin()), std::move_iterator(block.end()));
  }
  return ordered;
}

std::string flags_without_effect(const std::vector<Flag>& flags, const std::set<std::string>& given,
                                 const std::set<std::string>& on_line) {
  std::vector<std::string> lines;
  for (const Flag& flag : flags) {
    if (given.count(flag.name) == 0) continue;
    const bool of_line = on_line.count(flag.name) > 0;
    const auto counts = [&](const Idle& reason) {
      const bool overruled = std::any_of(reason.causes.begin(), reason.causes.end(),
                                         [&](const std::string& cause) { return on_line.count(cause) > 0; });
      const bool holds = reason.beside.empty() ? reason.holds : given.count(reason.beside) > 0;
      return holds && (of_line || !overruled);
    };
    const auto reason = std::find_if(flag.idles.begin(), flag.idles.end(), counts);
    if (reason != flag.idles.end()) lines.push_back(str(flag.name, " has no effect: ", reason->why));
  }
  return join(lines, "\n");
}

}  // namespace sluice::base
