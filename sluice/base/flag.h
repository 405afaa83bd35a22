// An option of a program as one row of a table: its flag, where its value is stored, its help, the values
// that it may have, what makes it do nothing, and whether it distinguishes one run from another. The command
// line, the keys of a TOML file, docs/flags.md, checks and lists of settings are made from such rows.
//
// A row is made over the object that holds the values, so what it says holds for the values of that moment:
// make the rows again after a value has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::base {

// One of several texts.
struct ChoiceValue {
  std::vector<std::string> names;
  std::string now;                               // the value's name; "": a value without a name
  std::function<void(const std::string&)> take;  // throws sluice::Error for any other text
};
// A switch that is written out: on or off.
struct OnOffValue {
  bool* value;
};
// The same for a value that may be left open; `usual`: what it is then.
struct OpenOnOffValue {
  std::optional<bool>* value;
  bool usual;
};
// An optional text: the flag may be given without a value, which gives `unnamed()`, or "" without it.
struct OptionalText {
  std::string* value;
  std::function<std::string()> unnamed = {};  // may throw sluice::Error
};
// One more text each time the flag is given.
struct RepeatedText {
  std::vector<std::string>* values;
};
// A whole number that may be written as 2e9.
struct LargeNumber {
  std::int64_t* value;
};
// A text that is read at once. `take` throws sluice::Error (kInvalidArgument) for a wrong one.
struct ParsedText {
  std::function<void(const std::string&)> take;
  std::optional<std::string> now = {};  // a text from which `take` reads the present value, if one is known
  std::optional<std::string> unnamed = {};  // what the flag takes if it is given without a value

  ParsedText&& or_without_value(std::string text) && { return unnamed = std::move(text), std::move(*this); }
};
// All texts of a flag that may be given several times.
struct ParsedTexts {
  std::function<void(const std::vector<std::string>&)> take;
};
// Texts with commas between them; more of them each time the flag is given.
struct TextList {
  std::vector<std::string>* values;
};
// The words of an argument, from `min_words` to `max_words` of them; `max_words` 0: any number.
struct Words {
  std::vector<std::string>* values;
  int min_words = 1, max_words = 0;
};
// A whole number that is taken at once.
struct TakenNumber {
  std::function<void(std::int64_t)> take;
};
// A flag without a value that is taken at once.
struct TakenSwitch {
  std::function<void()> take;
};

// Where a flag's value is stored; the value there before is the default. A bool is a flag without a value. A
// vector of numbers is a list with commas.
using FlagValue =
    std::variant<std::string*, int*, std::int64_t*, std::uint64_t*, double*, bool*, std::optional<bool>*,
                 std::optional<int>*, std::vector<double>*, std::vector<float>*, std::vector<std::int64_t>*,
                 ChoiceValue, OnOffValue, OpenOnOffValue, OptionalText, RepeatedText, LargeNumber, ParsedText,
                 ParsedTexts, TextList, Words, TakenNumber, TakenSwitch>;

// The numbers from `low` to `high`; either end may be excluded. NaN is in no interval.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool has_low = true, has_high = true;

  bool has(double number) const {
    return (has_low ? number >= low : number > low) && (has_high ? number <= high : number < high);
  }
};
// From `low` on, without infinity.
constexpr Interval from(double low) { return {.low = low, .has_high = false}; }
constexpr Interval from_to(double low, double high) { return {.low = low, .high = high}; }
// Without `high`.
constexpr Interval from_below(double low, double high) {
  return {.low = low, .high = high, .has_high = false};
}
// Without `low`.
constexpr Interval above_to(double low, double high) { return {.low = low, .high = high, .has_low = false}; }

// A reason for which a flag has no effect.
struct Idle {
  bool holds = false;
  std::vector<std::string> causes;  // the flags that can make it hold, if they are given
  std::string why;                  // "it requires --crop"
  std::string beside = {};          // it holds if this flag is given, too; "": `holds` says it
};

// The numbers that a command line takes, as --help shows them.
enum class Sign { kAny, kZeroOrMore, kAboveZero };

struct Flag {
  const char* group;  // the heading in --help; "": the usual one
  std::string
      name;  // "--batch-size"; the key in a TOML file is batch_size, or batch-size. "NAME": an argument
  FlagValue value;
  const char* unit;  // "pixels"; "": none
  std::string help;
  std::pair<std::int64_t, std::int64_t> range = {0, 0};  // for a whole number that --help limits; {0, 0}: any

  // What follows is set by the functions below.
  std::string follows = {};  // the flag before this one in --help; "": the row before it
  std::optional<std::int64_t> least = {};
  std::optional<Interval> interval = {};
  std::string expected = {};             // "takes a share of 0 to 1", of the interval
  std::function<void()> own_check = {};  // throws sluice::Error
  std::vector<Idle> idles = {};
  bool is_setting = false;               // whether it is listed among a run's settings
  int setting_rank = 0;                  // settings of a higher rank are listed later
  std::vector<std::string> rivals = {};  // flags that say the same: if one is given, no recipe sets this one
  bool in_recipe = true;                 // whether the recipe of a task may set it
  // What only a command line needs:
  Sign sign = Sign::kAny;
  bool is_required = false, is_hidden = false;
  std::optional<std::string> shown_default = {};  // in --help, in the place of the value there before
  const char* type = "";                          // in --help: "NAME[=EXTENSION]"; "": the kind of the value
  std::vector<std::string> only = {};             // the texts that it takes; empty: any

  // Moves this row, and the rows after it in its section, to the place after another flag in --help.
  Flag&& after(std::string flag) && { return follows = std::move(flag), std::move(*this); }
  // The least whole number; the largest is 2⁵³, because the product of a larger one may overflow.
  Flag&& at_least(std::int64_t number) && { return least = number, std::move(*this); }
  // The numbers that it takes, a list's each; `said`: how the message continues after the flag, such as
  // "takes a share of 0 to 1".
  Flag&& within(const Interval& numbers, std::string said) && {
    return interval = numbers, expected = std::move(said), std::move(*this);
  }
  // A check that no interval expresses.
  Flag&& checked(std::function<void()> check) && { return own_check = std::move(check), std::move(*this); }
  // Adds a reason for which it has no effect. The first one that holds is the one that is reported.
  Flag&& idle(Idle reason) && { return idles.push_back(std::move(reason)), std::move(*this); }
  Flag&& idle(bool holds, std::vector<std::string> causes, std::string why) && {
    return std::move(*this).idle(Idle{holds, std::move(causes), std::move(why)});
  }
  // Lists it among the settings that distinguish two runs: if it is set (is_set), or if `holds`.
  Flag&& setting(int rank = 0) &&;
  Flag&& setting_if(bool holds, int rank = 0) && {
    return is_setting = holds, setting_rank = rank, std::move(*this);
  }
  Flag&& unless_given(std::vector<std::string> flags) && {
    return rivals = std::move(flags), std::move(*this);
  }
  Flag&& in_recipe_if(bool holds) && { return in_recipe = holds, std::move(*this); }
  Flag&& zero_or_more() && { return sign = Sign::kZeroOrMore, std::move(*this); }
  Flag&& above_zero() && { return sign = Sign::kAboveZero, std::move(*this); }
  Flag&& required() && { return is_required = true, std::move(*this); }
  Flag&& hidden() && { return is_hidden = true, std::move(*this); }
  // Says in --help what is used without the flag: "none", "all, merged".
  Flag&& shown(std::string usual) && { return shown_default = std::move(usual), std::move(*this); }
  Flag&& called(const char* value) && { return type = value, std::move(*this); }
  Flag&& one_of(std::vector<std::string> texts) && { return only = std::move(texts), std::move(*this); }
};

// Returns "batch_size" for "--batch-size".
std::string toml_key(const std::string& flag);

// Returns the numbers of "1,2" or "[1, 2]"; empty parts count for nothing. Throws sluice::Error
// (kInvalidArgument), which names the flag, for anything else.
template <typename Number>
std::vector<Number> parse_numbers(const std::string& flag, std::string text);

// Returns the value as the flag takes it: "0.1", "true", "adamw", "0.9,0.95"; "" for a value that is read
// from texts (ParsedTexts, RepeatedText, ParsedText without `now`) or left open.
std::string value_text(const Flag& flag);
// Whether a value is there: a number above 0, a text or list that is not empty, a switch that is on; a choice
// always has one.
bool is_set(const Flag& flag);
// Gives `to` the value of `from`, which is the same flag over another object. Values that value_text() does
// not return stay as they are; RepeatedText is copied.
void copy_value(const Flag& from, const Flag& to);

// Throws as check_value does for a number below `least` or above 2⁵³.
void check_least(const std::string& flag, std::int64_t value, std::int64_t least);
// Throws sluice::Error (kInvalidArgument) for a value that the row does not allow. The message names the
// flag, what was expected and what was found.
void check_value(const Flag& flag);

// Returns the rows in the order of --help: a row that follows another flag is moved there, with the rows
// after it up to the next such one. `sections` are in their own order.
std::vector<Flag> in_help_order(std::vector<std::vector<Flag>> sections);

// Returns one line for each flag that was given and has no effect, or "". `on_line`: the flags of the command
// line; a flag that is given elsewhere may be overruled by them without a message.
std::string flags_without_effect(const std::vector<Flag>& flags, const std::set<std::string>& given,
                                 const std::set<std::string>& on_line);

}  // namespace sluice::base
