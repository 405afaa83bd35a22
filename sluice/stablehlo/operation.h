// A program as a list of operations, before it is text.
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

// The attribute dictionary of an operation, as text. Lists of numbers can also be asked for.
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
  // A list that list() finds and the text does not have.
  Attributes& note(std::string_view name, const Dims& values);
  // "" or " {name = text, …}"
  std::string text() const { return text_.empty() ? text_ : " {" + text_ + "}"; }
  // What was given to ints() or note() by this name; empty if there is none.
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
  // Of the return of a region, as an operation's.
  bool named = false;
  int location = 0;
};

// What Builder::composite() marks, while patterns look at a program: one operation whose only body holds what
// it was made of. In the text the body stands in its place.
inline constexpr std::string_view kComposite = "composite";

struct Operation {
  std::string name;    // "stablehlo.add", or kComposite
  std::string target;  // of a custom call; a composite's name
  Values operands;     // a composite's may be empty where it has none
  Values results;
  std::vector<Block> bodies;
  Attributes attributes;
  CallAttributes call;    // what a custom call's handler is given; a composite's attributes
  bool removable = true;  // it does nothing but make its results
  bool named = true;      // its location is written
  int location = 0;       // its number in the builder

  // The whole number of this name among `call`'s attributes.
  int64_t number(std::string_view attribute, int64_t otherwise = 0) const;
  double real(std::string_view attribute) const;
  const Dims& ints(std::string_view attribute) const;
  bool is(std::string_view wanted) const { return name == wanted; }
  bool is_composite(std::string_view wanted) const { return name == kComposite && target == wanted; }
  bool is_call(std::string_view wanted) const;
};

// Calls visit for each operand that is there, also of the operations inside, and for what regions return.
void for_operands(const Operation& op, const std::function<void(Value)>& visit);

}  // namespace sluice::stablehlo
