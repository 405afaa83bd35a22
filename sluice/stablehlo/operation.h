// A program as a list of operations, before it becomes text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/stablehlo/builder.h"

namespace sluice::stablehlo {

using Padding = std::vector<std::pair<int64_t, int64_t>>;

// The attribute dictionary of an operation, as text. Its lists of numbers can also be read.
class Attributes {
 public:
  Attributes& raw(std::string_view name, std::string_view text);
  Attributes& number(std::string_view name, int64_t value);  // i64
  Attributes& flag(std::string_view name, bool value);
  Attributes& ints(std::string_view name, std::span<const int64_t> values);   // array<i64: …>
  Attributes& flags(std::string_view name, const std::vector<bool>& values);  // array<i1: …>
  // dense<[[…], …]> : tensor<NxMxi64>; rows of one length.
  Attributes& table(std::string_view name, const std::vector<std::vector<int64_t>>& rows, size_t columns);
  Attributes& pairs(std::string_view name, const Padding& pairs);
  // Notes a list that list() returns but that is not in the text.
  Attributes& note(std::string_view name, const Dims& values);
  // Returns "" or " {name = text, …}".
  std::string text() const { return text_.empty() ? text_ : " {" + text_ + "}"; }
  // Returns the list that ints() or note() got under this name; empty if they did not.
  Dims list(std::string_view name) const;
  bool operator==(const Attributes&) const = default;

 private:
  void name(std::string_view name);
  std::string text_;
  std::vector<std::pair<std::string, Dims>> lists_;
};

struct Operation;
using Operations = std::vector<std::unique_ptr<Operation>>;

// The operations of main or of a region.
struct Block {
  Values arguments;
  Operations operations;
  Values results;
  // The location of a region's return, as for an operation.
  bool named = false;
  int location = 0;
};

// An operation that Builder::composite() marked, while patterns look at a program: its only body holds the
// operations that it consists of. In the text, the body takes its place.
inline constexpr std::string_view kComposite = "composite";

struct Operation {
  std::string name;    // "stablehlo.add", or kComposite
  std::string target;  // the target of a custom call, or a composite's name
  Values operands;     // a composite's may be empty values
  Values results;
  std::vector<Block> bodies;
  Attributes attributes;
  CallAttributes call;    // the attributes of a custom call or of a composite
  bool removable = true;  // it has no effect besides its results
  bool named = true;      // its location is written
  int location = 0;       // its number in the builder

  // Returns the integer of this name among `call`'s attributes.
  int64_t number(std::string_view attribute, int64_t otherwise = 0) const;
  double real(std::string_view attribute) const;
  const Dims& ints(std::string_view attribute) const;
  bool is(std::string_view wanted) const { return name == wanted; }
  bool is_composite(std::string_view wanted) const { return name == kComposite && target == wanted; }
  bool is_call(std::string_view wanted) const;
};

// Calls visit for each operand that is not empty, including the operands of inner operations and the results
// of regions.
void for_operands(const Operation& op, const std::function<void(Value)>& visit);

}  // namespace sluice::stablehlo
