#include "sluice/estimate/largest_buffers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/strings.h"

namespace sluice::estimate {
namespace {

constexpr std::string_view kAssignment = ".after_optimizations-buffer-assignment.txt",
                           kProgram = ".after_optimizations.txt";

// Returns the text up to `end`, and moves `rest` after it; nullopt if `end` does not come.
std::optional<std::string_view> cut_at(std::string_view& rest, std::string_view end) {
  const size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return before;
}

// Calls take(line) for each line.
template <typename Take>
void for_lines(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

struct Placed {
  LargestBuffer buffer;
  int64_t offset = 0;
};

// Reads " value: <70 all-gather{1} @0> (size=8388608,offset=12582912): bf16[1024,4096]{1,0:T(8,128)(2,1)}".
std::optional<Placed> read_value(std::string_view line) {
  if (!cut_at(line, "value: <") || !cut_at(line, " ")) return std::nullopt;
  const auto name = cut_at(line, " @"), before = cut_at(line, "(size="), size = cut_at(line, ",offset="),
             offset = cut_at(line, "): ");
  if (!name || !before || !size || !offset) return std::nullopt;
  const auto bytes = base::number_of<int64_t>(*size), place = base::number_of<int64_t>(*offset);
  if (!bytes || !place) return std::nullopt;
  return Placed{{.bytes = *bytes,
                 .type = std::string(line.substr(0, line.find('{'))),
                 .instruction = std::string(name->substr(0, name->find('{'))),
                 .operation = ""},
                *place};
}

// Returns the operation of an instruction by its name.
std::map<std::string, std::string, std::less<>> operations_of(std::string_view program) {
  std::map<std::string, std::string, std::less<>> operations;
  for_lines(program, [&](std::string_view line) {
    const auto head = cut_at(line, " = ");
    if (!head || !cut_at(line, "op_name=\"")) return;
    const auto operation = cut_at(line, "\"");
    const size_t percent = head->find('%');
    if (operation && percent != std::string_view::npos)
      operations.emplace(head->substr(percent + 1), *operation);
  });
  return operations;
}

}  // namespace

std::vector<LargestBuffer> largest_buffers(std::string_view assignment, std::string_view program,
                                           size_t count) {
  std::vector<LargestBuffer> found;
  std::set<std::pair<int64_t, int64_t>> places;  // values in one place share a buffer
  bool temporary = false;
  for_lines(assignment, [&](std::string_view line) {
    if (base::starts_with(line, "allocation "))
      temporary = line.find("preallocated-temp") != std::string_view::npos;
    auto value = temporary ? read_value(line) : std::nullopt;
    if (value && places.emplace(value->offset, value->buffer.bytes).second)
      found.push_back(std::move(value->buffer));
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (found.size() > count) found.resize(count);
  const auto operations = operations_of(program);
  for (LargestBuffer& buffer : found)
    if (const auto named = operations.find(buffer.instruction); named != operations.end())
      buffer.operation = named->second;
  return found;
}

std::vector<LargestBuffer> dumped_buffers(const std::string& folder, size_t count) {
  std::string assignment, program;
  for (const std::string& name : base::list_directory(folder).value_or(std::vector<std::string>())) {
    if (!base::ends_with(name, kAssignment)) continue;
    auto text = base::read_file(base::join_path(folder, name));
    if (!text || text->size() <= assignment.size()) continue;
    assignment = std::move(*text);
    const std::string of_program = base::str(name.substr(0, name.size() - kAssignment.size()), kProgram);
    program = base::read_file(base::join_path(folder, of_program)).value_or("");
  }
  return largest_buffers(assignment, program, count);
}

}  // namespace sluice::estimate
