#include "sluice/data/order/filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sluice/base/text/join.h"
#include "sluice/base/text/lower_case.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/decode/nested.h"
#include "sluice/data/shards/group.h"

namespace sluice::data {
namespace {

constexpr std::string_view kKey = "__key__";

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

struct Condition {
  std::string member;
  std::vector<std::string> fields;  // of its JSON, each within the one before; empty: the member itself
  std::string comparison;           // =, <, <=, >, >= or like
  bool negated = false;
  std::vector<std::string> values;  // one of them must match
};

// Returns the text that a condition compares: the key, the member, or a value in its JSON.
std::optional<std::string> compared(const Condition& condition, const SampleView& sample) {
  if (condition.member == kKey) return std::string(sample.key());
  const auto bytes = sample.member(condition.member);
  if (!bytes) return std::nullopt;
  if (condition.fields.empty()) return std::string(base::trim(*bytes));
  if (const auto status = check_json(*bytes); !status)
    throw_error(status.error().code(), status.error().what());
  const auto document = nlohmann::json::parse(*bytes);
  const nlohmann::json* value = &document;
  for (const std::string& field : condition.fields) {
    if (!value->is_object() || !value->contains(field)) return std::nullopt;
    value = &(*value)[field];
  }
  if (value->is_null()) return std::nullopt;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

bool fits(const std::string& found, const std::string& comparison, const std::string& wanted) {
  if (comparison == "like") return ::fnmatch(wanted.c_str(), found.c_str(), 0) == 0;
  const auto left = number_of(found), right = number_of(wanted);
  if (comparison == "=") return found == wanted || (left && right && *left == *right);
  if (!left || !right) return false;
  if (comparison == "<") return *left < *right;
  if (comparison == "<=") return *left <= *right;
  return comparison == ">" ? *left > *right : *left >= *right;
}

bool holds(const Condition& condition, const SampleView& sample) {
  const auto found = compared(condition, sample);
  if (!found) return false;
  const bool any = std::any_of(condition.values.begin(), condition.values.end(),
                               [&](const auto& value) { return fits(*found, condition.comparison, value); });
  return any != condition.negated;
}

tl::unexpected<Error> no_condition(std::string_view text, const std::string& what) {
  return base::fail(
      Code::kInvalidArgument, "the condition '", text, "' ", what,
      ": expected such as 'cls in 0,3', 'json:split = train' or '__key__ like n01*', with one of "
      "= != < <= > >=, in, not in, like, not like");
}

// Takes the operator from the front of the text after the name.
bool take_operator(std::string_view& text, Condition& condition) {
  std::string_view rest = base::trim(text);
  const auto take = [&](std::string_view word) {
    const bool letters = word.back() >= 'a';
    if (!base::starts_with(rest, word) || (letters && rest.size() > word.size() && rest[word.size()] != ' '))
      return false;
    text = base::trim(rest.substr(word.size()));
    return true;
  };
  if (take("not ")) {
    condition.negated = true;
    rest = text;
    if (!base::starts_with(rest, "in ") && !base::starts_with(rest, "like ")) return false;
  }
  condition.comparison = "=";
  if (take("in") || take("==")) return true;
  if (take("!=")) return condition.negated = true;
  for (const char* comparison : {"like", "<=", ">=", "<", ">", "="}) {
    if (!take(comparison)) continue;
    condition.comparison = comparison;
    return true;
  }
  return false;
}

}  // namespace

std::string_view SampleView::key() const { return sample_.key; }
std::string_view SampleView::shard() const { return *sample_.shard; }
std::optional<std::string_view> SampleView::member(std::string_view extension) const {
  const Field* field = sample_.find(extension);
  return field == nullptr ? std::nullopt : std::optional<std::string_view>(field->bytes);
}

base::Result<Filter> parse_condition(std::string_view text) {
  Condition condition;
  std::string_view rest = base::trim(text);
  const std::string_view name = rest.substr(0, rest.find_first_of(" =!<>"));
  rest.remove_prefix(name.size());
  const std::size_t colon = std::min(name.find(':'), name.size());
  condition.member = base::lower_case(name.substr(0, colon));
  if (condition.member.empty()) return no_condition(text, "names no member");
  if (colon < name.size()) condition.fields = base::split(name.substr(colon + 1), '.');
  if (std::count(condition.fields.begin(), condition.fields.end(), "") > 0)
    return no_condition(text, "names no field of the JSON");
  const std::size_t before = rest.size();
  if (!take_operator(rest, condition) || rest.size() == before) return no_condition(text, "has no operator");
  const bool several = condition.comparison == "=" && rest.find(',') != std::string_view::npos;
  for (const std::string& value :
       several ? base::split(rest, ',') : std::vector<std::string>{std::string(rest)})
    condition.values.emplace_back(base::trim(value));
  if (std::count(condition.values.begin(), condition.values.end(), "") > 0)
    return no_condition(text, "has an empty value");
  const char first = condition.comparison.front();
  if ((first == '<' || first == '>') && !number_of(condition.values.front()))
    return no_condition(text,
                        base::str("compares with '", condition.values.front(), "', which is not a number"));
  Filter filter;
  if (condition.member != kKey) filter.members.insert(condition.member);
  filter.text = base::trim(text);
  filter.is_condition = true;
  filter.take = [condition = std::move(condition)](const SampleView& sample) {
    return holds(condition, sample);
  };
  return filter;
}

base::Result<bool> is_taken(const std::vector<Filter>& filters, const RawSample& sample) {
  for (const Filter& filter : filters) {
    try {
      if (!filter.take(SampleView(sample))) return false;
    } catch (const Error& error) {
      return base::fail(error.code(), sample.where(), ": in the filter '", filter.text, "': ", error.what());
    } catch (const std::exception& error) {
      return base::fail(Code::kInvalidArgument, sample.where(), ": in the filter '", filter.text,
                        "': ", error.what());
    }
  }
  return true;
}

}  // namespace sluice::data
