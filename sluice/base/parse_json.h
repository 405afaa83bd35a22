// JSON that others wrote: configurations, indexes, state files, servers' answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice::base {

constexpr int kMaxJsonDepth = 64;                  // of arrays and objects in each other
constexpr std::size_t kMaxJsonBytes = 512u << 20;  // the largest vocabularies have 40 MB

// The value; a discarded one (is_discarded(), and neither object nor array) for what is no JSON, is deeper
// than kMaxJsonDepth or larger than kMaxJsonBytes. Whatever walks the value by recursion, as dump(), copies
// and comparisons do, so ends within a stack. Nothing is thrown. Threads: any.
nlohmann::json parse_json(std::string_view text);

// Whether arrays and objects lie in each other more than `depth` times. Of what is no JSON, any answer.
bool is_deeper_than(std::string_view text, int depth);

}  // namespace sluice::base
