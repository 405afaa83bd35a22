// The names of model types, rope types and activations that this folder knows.
#pragma once

#include <string>
#include <vector>

namespace sluice::models::language_detail {

const std::vector<std::string>& known_types();
const std::vector<std::string>& known_rope_types();
const std::vector<std::string>& known_activations();

}  // namespace sluice::models::language_detail
