// What this folder knows by name.
#pragma once

#include <string>
#include <vector>

namespace sluice::models::language_detail {

const std::vector<std::string>& known_types();
const std::vector<std::string>& known_rope_types();
const std::vector<std::string>& known_activations();

}  // namespace sluice::models::language_detail
