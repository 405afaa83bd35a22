// Which rule applies to which name of a parameter. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/mesh/rules.h"

namespace sluice {

// Returns the name without prefixes that a wrapper or a head adds: "model.", "module.", "roberta.",
// "transformer.".
std::string_view without_prefixes(std::string_view name);

// Returns the caller's rule of each name; null: none. Throws kInvalidArgument for an unknown axis, for a rule
// that matches no name, and for a name that two rules match.
std::vector<const ShardRule*> rules_by_name(const std::vector<std::string>& names,
                                            const std::vector<ShardRule>& rules);
// Returns the first of the model's rules that matches each name; null: none. Throws for an unknown axis.
std::vector<const ShardRule*> model_rules_by_name(const std::vector<std::string>& names,
                                                  const std::vector<ShardRule>& rules);

}  // namespace sluice
