// The implementation of a builder: types, values, scopes and the list of operations. Internal to this room.
//
// Every check comes before an operation is added, so a call that throws leaves the program as it was.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/stablehlo/builder.h"
#include "sluice/stablehlo/operation.h"

namespace sluice::stablehlo {

// A type that occurs in the program, stored once with its text; its address is its identity.
struct TypeEntry {
  Type type;
  std::string text;
};

struct TypeHash {
  size_t operator()(const Type& type) const noexcept;
};

// Throws the error of an operation whose operands do not fit: "stablehlo.add: message".
template <typename... Pieces>
[[noreturn]] void reject(std::string_view op, const Pieces&... pieces) {
  throw_error(Code::kInvalidArgument, base::str(op, ": ", pieces...));
}

// Appends the number's digits.
void append_number(std::string& text, int64_t value);
// Returns "[1, 2, 3]".
std::string list_text(std::span<const int64_t> values);
std::string padding_text(const Padding& padding);
// Returns the string as MLIR quotes it, with its quotation marks.
std::string quoted(std::string_view text);

// Returns whether the operations in the blocks do nothing but make their results.
bool all_removable(const std::vector<Block>& bodies);

// The operations whose bodies must consist of one operation that plugins recognise.
constexpr std::string_view kAllReduce = "stablehlo.all_reduce";
constexpr std::string_view kReduceScatter = "stablehlo.reduce_scatter";
// The operation of Rewriter::manual().
constexpr std::string_view kManual = "sdy.manual_computation";

// A mask of the element types that an operation takes.
enum DTypes : unsigned { kPredicates = 1, kSigned = 2, kUnsigned = 4, kFloats = 8, kComplex = 16 };
constexpr unsigned kIntegers = kSigned | kUnsigned;
constexpr unsigned kNumbers = kIntegers | kFloats | kComplex;
constexpr unsigned kFractions = kFloats | kComplex;
constexpr unsigned kAnything = kNumbers | kPredicates;

// The window of reduce_window, select_and_scatter or convolution along one dimension. window_places() returns
// the number of places that it takes.
struct WindowDim {
  int64_t size = 1, stride = 1, low = 0, high = 0, base_dilation = 1, window_dilation = 1;
};
int64_t window_places(std::string_view op, int64_t dim, int64_t extent, const WindowDim& window);

struct Builder::Impl {
  explicit Impl(Builder* builder);

  struct ValueInfo {
    const TypeEntry* type;
    int32_t scope;
    int32_t number;
    char kind;              // 'p' a parameter, 'b' a block's argument, 'v' an operation's result
    bool constant = false;  // known to hold one number everywhere, and not a NaN
    bool bounded = false;   // the compiler's own maximum or minimum of a value and a constant
  };
  struct SplatKey {
    const TypeEntry* type;
    uint64_t bits;
    bool operator==(const SplatKey&) const = default;
  };
  struct SplatHash {
    size_t operator()(const SplatKey& key) const noexcept {
      return std::hash<const void*>()(key.type) ^ (key.bits * 0x9E3779B97F4A7C15u);
    }
  };
  // A block that is being built: main's, or a region's. An isolated block sees no values from outside.
  struct Scope {
    int32_t id;
    bool isolated;
    std::string_view op;  // the region's operation; the text lives as long as the scope
    Block block;
    std::unordered_map<SplatKey, Value, SplatHash> splats;
  };
  // A finished region.
  struct Body {
    Block block;
    std::vector<const TypeEntry*> results;
  };
  // An operation that composite() marked: operations [begin, end) of main.
  struct Composite {
    std::string name;
    Values operands, results;
    CallAttributes attributes;
    size_t begin, end;
    int location;
  };

  const TypeEntry* intern(const Type& type);
  // Calls intern after checking that no dimension is negative.
  const TypeEntry* intern_checked(std::string_view op, const Type& type);

  const ValueInfo& info(Value v) const { return values[static_cast<size_t>(v.id_)]; }
  const TypeEntry* entry(Value v) const { return info(v).type; }
  const Type& type(Value v) const { return info(v).type->type; }

  // Throws unless the value exists, belongs to this builder and is visible in the current block.
  void use(std::string_view op, Value v) const;
  void use(std::string_view op, std::span<const Value> operands) const {
    for (Value v : operands) use(op, v);
  }
  void use(std::string_view op, std::initializer_list<Value> operands) const {
    for (Value v : operands) use(op, v);
  }
  // Throws unless the mask contains the element type.
  void check_dtype(std::string_view op, Value v, unsigned allowed) const;
  void check_same(std::string_view op, Value a, Value b) const;

  // Adds an operation; its operands must have been checked with use().
  Value add(std::string_view op, std::span<const Value> operands, const Attributes& attributes,
            const TypeEntry* result);
  Value add(std::string_view op, std::initializer_list<Value> operands, const Attributes& attributes,
            const Type& result) {
    return add(op, std::span<const Value>(operands.begin(), operands.size()), attributes, intern(result));
  }
  Values add(std::string_view op, std::span<const Value> operands, std::span<Body> bodies,
             const Attributes& attributes, std::span<const TypeEntry* const> results);
  // Returns the operation that was added last.
  Operation& last() { return *scopes.back().block.operations.back(); }

  // Runs a region's body, with arguments of these types, in its own block.
  Body region(std::string_view op, bool isolated, std::span<const TypeEntry* const> arguments,
              const stablehlo::Region& body);
  // Runs the body of a reduction, and checks it: two scalars of each type in, one of each out.
  Body reducer(std::string_view op, std::span<const TypeEntry* const> scalars, const stablehlo::Region& body);
  void check_results(std::string_view op, std::string_view what, const Body& body,
                     std::span<const TypeEntry* const> expected) const;

  Value unary(std::string_view op, Value x, unsigned allowed);
  Value binary(std::string_view op, Value a, Value b, unsigned allowed);
  Value splat_bits(const Type& type, uint64_t bits);
  Value extreme(std::string_view op, Value a, Value b, Compare wins);
  Value reduce_extreme(Value x, const Dims& dims, Value init, bool nan_wins, std::string_view op);
  bool spell_out_nan(Value v) const;
  Value reduce_with(Value x, const Dims& dims, Value init, Value (Builder::*combine)(Value, Value));
  std::string precision_text() const;

  // Text.
  void append_block(std::string& text, const Block& block, size_t depth, std::string_view ending) const;
  void append_operation(std::string& text, const Operation& op, size_t depth) const;
  void append_name(std::string& text, Value v) const;
  void append_names(std::string& text, std::span<const Value> list) const;
  void append_types(std::string& text, std::span<const TypeEntry* const> types) const;
  void append_location(std::string& text, int number) const;
  void append_signature(std::string& text, std::span<const Value> operands,
                        std::span<const Value> results) const;
  Value new_value(const TypeEntry* type, char kind, int32_t number);

  Builder* owner;
  std::unordered_map<Type, TypeEntry, TypeHash> types;
  std::vector<ValueInfo> values;
  std::vector<Value> parameters;
  std::deque<Scope> scopes;  // the last one is being built
  std::vector<Composite> composites;
  int32_t next_scope = 0, next_result = 0, next_argument = 0;
  size_t operations = 0;
  struct Location {
    std::string name;  // "": none
    int64_t id = 0;
    bool operator==(const Location&) const = default;
  };
  std::vector<Location> locations = std::vector<Location>(1);  // the last one is for new operations
  Precision precision = Precision::kDefault;
  bool explicit_nan = true;
  bool finished = false;
};

}  // namespace sluice::stablehlo
