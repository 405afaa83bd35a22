// JSON whose objects are tables: of tensors, of files, of tokens.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "sluice/base/result.h"

namespace sluice::base {

// As parse_json, but kDataLoss where an object has two entries of one name: one reader would take the first
// and another reader the last. Threads: any.
Result<nlohmann::json> parse_unique_json(std::string_view text);

}  // namespace sluice::base
