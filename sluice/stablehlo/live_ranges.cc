#include "sluice/stablehlo/live_ranges.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <unordered_map>

#include "sluice/base/text/strings.h"
#include "sluice/stablehlo/location.h"

namespace sluice::stablehlo {
namespace {

constexpr std::string_view kIndent = "    ";  // before main's operations; regions are indented further

// Returns the bytes of "tensor<4x5xf32>"; 0 for any other text.
int64_t bytes_of(std::string_view type) {
  if (!base::starts_with(type, "tensor<") || !base::ends_with(type, ">")) return 0;
  type = type.substr(7, type.size() - 8);
  int64_t elements = 1;
  while (!type.empty() && std::isdigit(static_cast<unsigned char>(type.front()))) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(type.data(), type.data() + type.size(), dim);
    if (error != std::errc() || *end != 'x') return 0;
    elements *= dim;
    type.remove_prefix(static_cast<size_t>(end - type.data()) + 1);
  }
  const size_t digit = type.find_first_of("0123456789");
  int bits = 0;
  if (digit != std::string_view::npos) std::from_chars(type.data() + digit, type.data() + type.size(), bits);
  const int parts = base::starts_with(type, "complex") ? 2 : 1;
  return elements * parts * ((bits + 7) / 8);
}

// Returns all types of "tensor<…>, tensor<…>", with or without parentheses.
std::vector<std::string_view> types_in(std::string_view text) {
  std::vector<std::string_view> types;
  for (size_t at = text.find("tensor<"); at != std::string_view::npos; at = text.find("tensor<", at)) {
    const size_t end = text.find('>', at);
    if (end == std::string_view::npos) break;
    types.push_back(text.substr(at, end + 1 - at));
    at = end;
  }
  return types;
}

// Calls `found` with each name of a value: "%12", "%arg3".
template <typename Found>
void each_name(std::string_view text, const Found& found) {
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at)) {
    size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    found(text.substr(at, end - at));
    at = end;
  }
}

// Returns the text in the quotes of loc("…") at the end of the line, and removes the location from the line.
std::string_view take_location(std::string_view& line) {
  constexpr std::string_view kBegin = " loc(\"";
  const size_t at = line.rfind(kBegin);
  if (at == std::string_view::npos || !base::ends_with(line, "\")")) return {};
  const std::string_view location = line.substr(at + kBegin.size(), line.size() - at - kBegin.size() - 2);
  line = line.substr(0, at);
  return location;
}

bool is_free(std::string_view operation) {
  for (const char* name : {"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota"}) {
    if (operation == name) return true;
  }
  return false;
}

class Reader {
 public:
  base::Result<MemoryEstimate> read(std::string_view text, size_t count) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    if (!returned_) {
      return base::fail(Code::kInvalidArgument,
                        "expected the StableHLO text of a module with a function @main that returns, as "
                        "Sluice writes it, found something else");
    }
    return result(count);
  }

 private:
  struct Tracked {
    LiveValue value;
    size_t first = 0, last = 0;  // numbers of operations
    int alias = -1;              // an argument: the result that takes its memory
  };

  void line(std::string_view text) {
    if (const size_t main = text.find("@main("); main != std::string_view::npos)
      return signature(text.substr(main));
    if (!base::starts_with(text, kIndent) || text.size() == kIndent.size()) return;
    const char first = text[kIndent.size()];
    if (first == ' ' || first == '^') {  // inside a region: it may use values of main
      each_name(text, [&](std::string_view name) { used_inside_.push_back(name); });
    } else if (first == '%') {
      begin_operation(text.substr(kIndent.size()));
    } else if (first == '}') {
      if (!base::ends_with(text, "({")) end_operation(text);
    } else if (text.find("\"func.return\"(") != std::string_view::npos) {
      finish(text);
    }
  }

  // Reads "@main(%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32}, …) -> (…) {".
  void signature(std::string_view text) {
    text = text.substr(0, text.find(") -> "));
    size_t at = text.find('%');
    while (at != std::string_view::npos) {
      const size_t next = text.find('%', at + 1);
      const std::string_view one = text.substr(at, next == std::string_view::npos ? next : next - at);
      const auto types = types_in(one);
      constexpr std::string_view kAlias = "tf.aliasing_output = ";
      int alias = -1;
      if (const size_t found = one.find(kAlias); found != std::string_view::npos)
        std::from_chars(one.data() + found + kAlias.size(), one.data() + one.size(), alias);
      if (!types.empty()) {
        add(one.substr(0, one.find(':')), "argument", {}, types[0], false);
        values_.back().alias = alias;
      }
      at = next;
    }
    arguments_ = values_.size();
  }

  // Reads "%3, %4 = "stablehlo.sort"(%1, %2) ({", or a whole operation.
  void begin_operation(std::string_view text) {
    ++operations_;
    const size_t equals = text.find(" = \"");
    const size_t quote = text.find("\"(", equals + 4);
    if (equals == std::string_view::npos || quote == std::string_view::npos) return;
    results_.clear();
    used_inside_.clear();
    each_name(text.substr(0, equals), [&](std::string_view name) { results_.push_back(name); });
    operation_ = text.substr(equals + 4, quote - equals - 4);
    operands_ = text.substr(quote + 1, text.find(')', quote) - quote);
    if (!base::ends_with(text, "({")) end_operation(text);
  }

  void end_operation(std::string_view text) {
    const std::string_view location = take_location(text);
    locations_.resize(operations_ + 1);
    locations_[operations_] = location;
    each_name(operands_, [&](std::string_view name) { use(name, location); });
    for (std::string_view name : used_inside_) use(name, location);
    const size_t arrow = text.rfind(" -> ");
    if (arrow == std::string_view::npos) return;
    const auto types = types_in(text.substr(arrow));
    std::vector<std::string_view> same;  // the same memory under another name
    if (operation_ == "stablehlo.reshape" || operation_ == "stablehlo.optimization_barrier")
      each_name(operands_, [&](std::string_view name) { same.push_back(name); });
    for (size_t i = 0; i < results_.size() && i < types.size(); ++i) {
      if (const auto found = i < same.size() ? numbers_.find(same[i]) : numbers_.end();
          found != numbers_.end()) {
        numbers_[results_[i]] = found->second;
        continue;
      }
      add(results_[i], operation_, location, types[i], is_free(operation_));
    }
  }

  void add(std::string_view name, std::string_view operation, std::string_view location,
           std::string_view type, bool free) {
    numbers_[name] = values_.size();
    values_.push_back(
        {{std::string(operation), std::string(location), std::string(type), free ? 0 : bytes_of(type)},
         operations_,
         operations_,
         -1});
  }

  void use(std::string_view name, std::string_view location) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return;
    Tracked& tracked = values_[found->second];
    tracked.last = operations_;
    if (found->second < arguments_ && tracked.value.location.empty()) tracked.value.location = location;
  }

  // Reads main's results, which live to the end; a result that takes an argument's memory has no memory of
  // its own.
  void finish(std::string_view text) {
    returned_ = true;
    ++operations_;
    std::vector<size_t> returned;
    each_name(text.substr(0, text.find(')')), [&](std::string_view name) {
      if (const auto found = numbers_.find(name); found != numbers_.end()) {
        values_[found->second].last = operations_;
        returned.push_back(found->second);
      }
    });
    for (size_t i = 0; i < arguments_; ++i) {
      values_[i].last = operations_;
      const int alias = values_[i].alias;
      if (alias >= 0 && static_cast<size_t>(alias) < returned.size() &&
          returned[static_cast<size_t>(alias)] >= arguments_)
        values_[returned[static_cast<size_t>(alias)]].value.bytes = 0;
    }
  }

  MemoryEstimate result(size_t count) const {
    std::vector<int64_t> change(operations_ + 2, 0);
    for (const Tracked& tracked : values_) {
      change[tracked.first] += tracked.value.bytes;
      change[tracked.last + 1] -= tracked.value.bytes;
    }
    MemoryEstimate estimate;
    int64_t now = 0;
    size_t peak = 0;
    for (size_t i = 0; i <= operations_; ++i) {
      now += change[i];
      if (now > estimate.peak_bytes) {
        estimate.peak_bytes = now;
        peak = i;
      }
    }
    if (peak < locations_.size()) estimate.peak_location = locations_[peak];
    for (size_t i = 0; i < values_.size(); ++i) {
      const Tracked& tracked = values_[i];
      if (tracked.first > peak || peak > tracked.last || tracked.value.bytes == 0) continue;
      estimate.largest.push_back(tracked.value);
      int64_t& sum = i < arguments_ ? estimate.argument_bytes
                                    : estimate.by_layer[parse_location(tracked.value.location).layer];
      sum += tracked.value.bytes;
    }
    std::stable_sort(estimate.largest.begin(), estimate.largest.end(),
                     [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
    if (estimate.largest.size() > count) estimate.largest.resize(count);
    return estimate;
  }

  std::vector<Tracked> values_;
  std::unordered_map<std::string_view, size_t> numbers_;
  std::vector<std::string_view> locations_;  // [operation]
  size_t operations_ = 0, arguments_ = 0;
  bool returned_ = false;
  // The operation that is being read.
  std::vector<std::string_view> results_, used_inside_;
  std::string_view operation_, operands_;
};

}  // namespace

base::Result<MemoryEstimate> estimate_memory(std::string_view text, size_t count) {
  return Reader().read(text, count);
}

}  // namespace sluice::stablehlo
