// The view that patterns have of a built program, and their changes to it before it becomes text.
//
// A pass visits main's operations in order. The values that a pattern returns replace the operation's results
// in all later operations; operations that nothing reads any more are dropped after the pass. A composite
// (Builder::composite) is one operation until it is opened, or until the end.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/mesh/layout.h"
#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

class Rewriter {
 public:
  // Takes main's operations out of the builder, which must outlive this object. `results`: the values that
  // main will return. donations: one entry for each parameter, or empty.
  Rewriter(Builder& b, Values results, std::vector<Donation> donations);

  // Adds operations in front of the one that a pattern looks at; outside a pass, at the end.
  Builder& b;

  // Returns the values that replace op's results, one for each; empty: op stays.
  using Pattern = std::function<Values(const Operation& op)>;
  void each(const Pattern& pattern);
  // Does so for the operations in the bodies of main's loops (stablehlo.while). maker() does not know
  // operations that are made there, as it does not know the rest of a body.
  void each_in_loops(const Pattern& pattern);
  // Replaces the composites of this name by their bodies.
  void open(std::string_view composite);
  // Replaces all composites by their bodies, and moves main's constants to the front.
  void flatten();

  // Adds a copy of the operation, also inside a region's body: with these operands, and with other values (by
  // id) for some of the values that its own bodies see. types: of the results, if they differ; the caller
  // knows that the operation has such results (for a constant: it holds one number).
  Values copy(const Operation& op, const Values& operands,
              const std::unordered_map<int32_t, Value>& seen = {}, const std::vector<Type>& types = {});
  // Runs `body` on each device of the mesh over which the program will lie (partitions.h), with the blocks of
  // the operands that these layouts give it: `in` and `out` have one entry for each operand and result. The
  // body's results are blocks; the results are whole values. The body sees only its arguments.
  Values manual(const Mesh& mesh, const Values& operands, const std::vector<Layout>& in,
                const std::vector<Layout>& out, const Region& body);
  // These two work in the body of manual(): they name the mesh's devices. The first one sends x from each
  // pair's first device to its second. The other one adds up x over the devices of a group and splits the sum
  // along dim; each device of the group gets its part.
  Value permute_blocks(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs);
  Value add_and_split_blocks(Value x, int64_t dim, const std::vector<std::vector<int64_t>>& groups);
  // Returns the value that replaces v after the operation that the pass has reached.
  Value now(Value v) const { return mapped(v); }
  // Replaces v by a value of its type in the operations that the pass has not reached yet, and among main's
  // results.
  void replace_from_here(Value v, Value by);

  // Returns main's operations, including operations that a pass has added, or that were added after the last
  // pass. During a pass, an operation keeps its place.
  const Operations& operations() const;
  // Returns the operation that made a value; null for a parameter.
  const Operation* maker(Value v) const;
  // Returns maker(v) if it is of this kind, else null.
  const Operation* made_by(Value v, std::string_view name) const;
  const Operation* composite(Value v, std::string_view name) const;
  const Operation* call(Value v, std::string_view target) const;
  // Returns v's source before all its reshapes.
  Value before_reshapes(Value v) const;
  // Returns how many times v is an operand of an operation or a result of main.
  int readers(Value v) const;
  const Values& results() const { return results_; }
  // [parameter]: the result that takes its memory, or -1.
  const std::vector<int32_t>& aliases() const { return aliases_; }
  // Returns the parameter's number; -1 if v is not a parameter.
  int32_t parameter(Value v) const;
  Value parameter_value(size_t number) const;

  // For operations that were added after all others: replaces the given results of main by these values.
  void replace_results(const std::unordered_map<int32_t, Value>& by_id);
  // Gives operations that are added outside a pass the name of this operation.
  void name_as(const Operation& op);

  // Gives the operations back to the builder. Returns main's results, for Builder::finish().
  Values finish();

 private:
  struct Nest;
  Operations& list() const;
  void rewrite_body(Block& body, const Pattern& pattern);
  // Copies a block. `values` maps the ids of values that the copy sees to other values, and gets the copy's
  // own.
  Block copy_block(const Block& block, std::unordered_map<int32_t, Value>& values);
  std::unique_ptr<Operation> copy_alone(const Operation& op, std::unordered_map<int32_t, Value>& values,
                                        const std::vector<Type>& types = {});
  // Replaces op's results by the values that a pattern made.
  void replace(const Operation& op, const Values& made);
  void remap(Operation& op) const;
  Value mapped(Value v) const;
  // Drops operations that nothing reads, and finds the maker of each value and its number of readers.
  void settle();

  Values results_;
  std::vector<int32_t> aliases_;
  std::unordered_map<int32_t, Value> replaced_;  // the replacements of the current pass
  std::vector<const Operation*> makers_;         // [value's id]
  std::vector<int> readers_;                     // [value's id]
};

}  // namespace sluice::stablehlo
