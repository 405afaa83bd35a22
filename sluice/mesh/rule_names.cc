#include "sluice/mesh/rule_names.h"

#include <algorithm>
#include <array>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"

namespace sluice {
namespace {

// Returns whether the name matches the pattern. The latest '*' takes one more character at each mismatch, so
// the time is at most the product of the lengths.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Returns the numbers of the names that match: as they are, else without their prefixes.
std::vector<size_t> matching(std::string_view pattern, const std::vector<std::string>& names) {
  std::vector<size_t> found;
  const auto look = [&](std::string_view wanted, bool shorter) {
    for (size_t i = 0; i < names.size(); ++i)
      if (matches(wanted, shorter ? without_prefixes(names[i]) : std::string_view(names[i])))
        found.push_back(i);
  };
  look(pattern, /*shorter=*/false);
  if (found.empty()) look(pattern, /*shorter=*/true);
  // What is left of "model.*" would match everything.
  const std::string_view rest = without_prefixes(pattern);
  if (found.empty() && !rest.empty() && rest.front() != '*') look(rest, /*shorter=*/true);
  return found;
}

// Returns the name nearest to a pattern, compared without prefixes; "" if none is near.
std::string nearest_name(std::string_view pattern, const std::vector<std::string>& names) {
  std::vector<std::string> shorter;
  shorter.reserve(names.size());
  for (const std::string& name : names) shorter.emplace_back(without_prefixes(name));
  const std::string near = base::nearest(without_prefixes(pattern), shorter);
  const auto place = std::find(shorter.begin(), shorter.end(), near);
  return near.empty() ? "" : names[static_cast<size_t>(place - shorter.begin())];
}

}  // namespace

std::string_view without_prefixes(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"model.", "module.", "roberta.", "transformer."};
  const auto has = [&](std::string_view prefix) { return base::starts_with(name, prefix); };
  for (auto found = kPrefixes.begin(); found != kPrefixes.end();) {
    found = std::find_if(kPrefixes.begin(), kPrefixes.end(), has);
    if (found != kPrefixes.end()) name.remove_prefix(found->size());
  }
  return name;
}

std::vector<const ShardRule*> rules_by_name(const std::vector<std::string>& names,
                                            const std::vector<ShardRule>& rules) {
  std::vector<const ShardRule*> result(names.size(), nullptr);
  for (const ShardRule& rule : rules) {
    if (!rule.axis.empty()) check_mesh_axis(rule.axis);
    const std::vector<size_t> found = matching(rule.pattern, names);
    if (found.empty()) {
      const std::string near = nearest_name(rule.pattern, names);
      throw_error(
          Code::kInvalidArgument,
          base::str("the rule \"", rule.pattern, "\" matches none of the ", names.size(), " parameters",
                    near.empty() ? std::string(": use '*' for parts of a name, as in *.q_proj.weight")
                                 : base::str(": the nearest name is ", near)));
    }
    for (const size_t i : found) {
      if (result[i] != nullptr)
        throw_error(Code::kInvalidArgument,
                    base::str("the rules \"", result[i]->pattern, "\" and \"", rule.pattern, "\" both match ",
                              names[i], ": change one so that it does not"));
      result[i] = &rule;
    }
  }
  return result;
}

std::vector<const ShardRule*> model_rules_by_name(const std::vector<std::string>& names,
                                                  const std::vector<ShardRule>& rules) {
  std::vector<const ShardRule*> result(names.size(), nullptr);
  for (const ShardRule& rule : rules) {
    if (!rule.axis.empty()) check_mesh_axis(rule.axis);
    for (const size_t i : matching(rule.pattern, names))
      if (result[i] == nullptr) result[i] = &rule;
  }
  return result;
}

}  // namespace sluice
