// Cutting a trace of very many operations into several programs.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::device {

// The number of operations that one program of a forced cut has at most: the time to compile larger programs
// grows faster than their size.
constexpr size_t kMaxOperationsOfAPart = 10'000;

// Does what cut() does, by programs of at most `max_operations` operations each, which are launched one after
// the other. An operation that nothing needs counts for nothing. Each program ends where few of its values
// are needed later; these are the next program's inputs, and each is freed after the last program that reads
// it. A captured function and a device that is only compiled for get one program. The caller holds the lock.
void cut_in_parts(std::string_view what, size_t max_operations = kMaxOperationsOfAPart);

}  // namespace sluice::device
