// The curves of a log folder as TensorBoard's reader shows them (event_accumulator.py of TensorBoard 2.20
// with purge_orphaned_data): files in the order of their names; SessionLog START drops what has its step or a
// later one, but for the first START of all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::train::test {

using Points = std::vector<std::pair<std::int64_t, float>>;  // of step and value
std::map<std::string, Points> curves_in(const std::string& folder);

}  // namespace sluice::train::test
