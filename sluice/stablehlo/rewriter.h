// How patterns see a program that is built, and change it before it is text.
//
// A pass goes through main's operations in order. The values that a pattern returns take the place of the
// operation's results in all that follows; what is then read by nobody is dropped after the pass. A composite
// (Builder::composite) is one operation until it is opened, or else until the end.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

class Rewriter {
 public:
  // Takes main's operations out of the builder, which must outlive this. `results`: what main will return.
  // donations: one entry a parameter, or empty.
  Rewriter(Builder& b, Values results, std::vector<Donation> donations);

  // Adds operations in front of the one that a pattern is asked about; outside of a pass, at the end.
  Builder& b;

  // The values that take the place of op's results, as many; empty: it stays.
  using Pattern = std::function<Values(const Operation& op)>;
  void each(const Pattern& pattern);
  // The same for the operations in the bodies of main's loops (stablehlo.while). What is made there is known
  // to maker() no more than the rest of a body.
  void each_in_loops(const Pattern& pattern);
  // Puts the bodies of the composites of this name in their place.
  void open(std::string_view composite);
  // Does so with all composites, and puts main's constants in front of all else.
  void flatten();

  // Adds a copy of the operation, in a region's body too: with these operands, and with other values for some
  // of those that its own bodies see (by their ids).
  Values copy(const Operation& op, const Values& operands,
              const std::unordered_map<int32_t, Value>& seen = {});
  // What takes the value's place behind the operation that a pass has come to.
  Value now(Value v) const { return mapped(v); }

  // What has been added behind the last pass, or by one, is there; an operation stays where it is until its
  // pass has ended.
  const Operations& operations() const;
  // The operation that made a value; null for a parameter.
  const Operation* maker(Value v) const;
  // maker(v) if it is of this kind, else null.
  const Operation* made_by(Value v, std::string_view name) const;
  const Operation* composite(Value v, std::string_view name) const;
  const Operation* call(Value v, std::string_view target) const;
  // v's source in other dims: what it was before all its reshapes.
  Value before_reshapes(Value v) const;
  // How many operands of operations and results of main v is.
  int readers(Value v) const;
  const Values& results() const { return results_; }
  // [parameter]: the result that takes its memory, or -1.
  const std::vector<int32_t>& aliases() const { return aliases_; }
  // The parameter's number; -1 where v is none.
  int32_t parameter(Value v) const;
  Value parameter_value(size_t number) const;

  // For what is added behind all operations: the given results of main are these values from now on.
  void replace_results(const std::unordered_map<int32_t, Value>& by_id);
  // What is added outside of a pass is named as this operation is.
  void name_as(const Operation& op);

  // Gives the operations back to the builder. Returns main's results: for Builder::finish().
  Values finish();

 private:
  struct Nest;
  Operations& list() const;
  void rewrite_body(Block& body, const Pattern& pattern);
  // Copies a block; values gets what the copy makes, and has what is seen instead of other values.
  Block copy_block(const Block& block, std::unordered_map<int32_t, Value>& values);
  std::unique_ptr<Operation> copy_alone(const Operation& op, std::unordered_map<int32_t, Value>& values);
  // Takes what a pattern made in the place of op's results.
  void replace(const Operation& op, const Values& made);
  void remap(Operation& op) const;
  Value mapped(Value v) const;
  // Drops what nobody reads, and finds out who made what and how often it is read.
  void settle();

  Values results_;
  std::vector<int32_t> aliases_;
  std::unordered_map<int32_t, Value> replaced_;  // in the pass that runs
  std::vector<const Operation*> makers_;         // [value's id]
  std::vector<int> readers_;                     // [value's id]
};

}  // namespace sluice::stablehlo
