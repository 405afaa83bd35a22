// JSON that others wrote: configurations, indexes, state files, servers' answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice::base {

constexpr int kMaxJsonDepth = 64;                  // of nested arrays and objects
constexpr std::size_t kMaxJsonBytes = 512u << 20;  // the largest vocabularies have 40 MB

// Parses JSON. Text that is no JSON, is nested deeper than kMaxJsonDepth or is larger than kMaxJsonBytes
// gives a discarded value (is_discarded(), and neither object nor array). So code that walks the value by
// recursion, like dump(), copies and comparisons, does not exhaust the stack. Throws nothing. Threads: any.
nlohmann::json parse_json(std::string_view text);

// Returns whether arrays and objects are nested more than `depth` deep. For text that is no JSON the answer
// is arbitrary.
bool is_deeper_than(std::string_view text, int depth);

}  // namespace sluice::base
