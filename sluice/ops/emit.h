// The view that an emit function has of one call: its arguments by their schema names, and the builder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/stablehlo/builder.h"

namespace sluice::ops {

using stablehlo::Builder;
using stablehlo::Compare;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Type;
using stablehlo::Value;
using stablehlo::Values;

// Returns a number of a dimension or element, which is never negative, as an index of a vector.
inline size_t at(int64_t number) { return static_cast<size_t>(number); }

// Returns a type in the form that LibTorch's users know: "Float[2, 3]". For messages.
std::string in_words(const Type& type);
inline std::string in_words(const Value& value) { return in_words(value.type()); }

// The category of a C++ number in type promotion (PyTorch's "wrapped numbers").
enum class Category : uint8_t { kBool, kInt, kFloat, kComplex };

// One argument of a call, without LibTorch's types.
struct Arg {
  enum class Kind : uint8_t {
    kNone,  // an absent optional, or something that does not concern the program (device, layout, generator)
    kTensor,   // value
    kTensors,  // values; an absent element of an optional list is an empty Value
    kScalar,   // a number: a constant if `constant`, else a run-time slot
    kInt,      // ints[0]
    kBool,     // ints[0]
    kInts,     // ints (bool[] too)
    kDoubles,  // doubles
    kText,     // text
    kDType,    // dtype
  };
  Kind kind = Kind::kNone;
  Value value;
  bool wrapped = false;  // kTensor: it represents a C++ number, weak in type promotion
  // kTensor: a 0-d tensor of the host of element type `dtype`. It has no value: Emit::operand and
  // Emit::tensor request a run-time scalar in the type in which the operation computes (f32 for 0.5 and a
  // tensor of f32, never f64).
  bool from_slot = false;
  Values values;                         // kTensors; ints[i] is 1 where element i is present
  Category category = Category::kFloat;  // kScalar
  bool constant = false;                 // kScalar
  double number = 0;                     // kScalar: its value if constant
  int64_t integer = 0;                   // kScalar: its value if constant and category is kBool or kInt
  double imaginary = 0;  // kScalar of category kComplex, which is always constant; the real part is `number`
  Dims ints;
  std::vector<double> doubles;
  std::string text;
  DType dtype = DType::kF32;
};

// The replicas that a program is for.
struct Replicas {
  int64_t count = 1;  // the replicas of all processes
  int64_t local = 1;  // the replicas of this process
  // Collectives are calls of the host's handlers (XLA's CPU plugin), not the compiler's own operations.
  bool by_host = false;
};

// The values that a program expects and that only the device knows: each in [low, high), or equal to
// `except`; or each other than 0. LibTorch's CPU throws for other values, and CUDA asserts.
struct Expectation {
  enum class Rule {
    kRange,    // low <= value < high, or value == except; integers
    kNonzero,  // integers
    kNoNaN,    // floats or complex numbers
  };
  std::string_view argument;  // the argument that the values belong to
  Value values;
  int64_t low = 0, high = 0;
  std::optional<int64_t> except = {};
  Rule rule = Rule::kRange;

  // Returns whether `other` holds if this holds.
  bool implies(const Expectation& other) const {
    return values == other.values && rule == other.rule && low >= other.low && high <= other.high &&
           (!except || except == other.except);
  }
};

// The source of run-time scalars and random keys: parameters while types are inferred, slots of the program's
// scalar vector while it is lowered.
class Slots {
 public:
  virtual ~Slots() = default;
  // Returns the run-time scalar of argument `index`, a 0-d value of exactly this element type.
  virtual Value scalar(size_t index, DType dtype) = 0;
  // Returns the call's key and a counter in which the global replica's number is (u64 [2]; see random.h).
  virtual Value random_state() = 0;
  virtual Replicas replicas() const = 0;
  // Returns the global number of the replica that runs the program, a 0-d s32.
  virtual Value replica_id() = 0;
  // The values that the host's handlers compare between processes: the program's hash, and the number of the
  // collective within the program (each call counts it up). `turn` is a result of the previous call, empty
  // for the first: it makes the calls run in this order, in addition to their other dependencies.
  struct Site {
    int64_t program = 0;
    int64_t number = 0;
    Value turn;
  };
  virtual Site& next_site() = 0;
  // Returns whether this call takes its statistics over all replicas (see Row::statistics).
  virtual bool over_replicas() const = 0;
  // Makes the program report the call, when it runs, if it finds other values.
  virtual void expect(const Expectation&) {}
};

class Emit {
 public:
  Emit(Builder& builder, std::string_view op, std::span<const std::string> names, std::span<const Arg> args,
       Slots& slots)
      : b(builder), op_(op), names_(names), args_(args), slots_(slots) {}

  Builder& b;

  std::string_view op() const { return op_; }
  bool has(std::string_view name) const;  // present and not None

  Value tensor(std::string_view name) const;
  Value tensor_or_empty(std::string_view name) const;
  const Values& tensors(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t otherwise) const;
  bool boolean(std::string_view name) const;
  const Dims& ints(std::string_view name) const;
  const std::vector<double>& doubles(std::string_view name) const;
  std::string_view text(std::string_view name) const;  // "" when None
  std::optional<DType> dtype(std::string_view name) const;

  // Returns a number argument as a 0-d value of this element type: a constant or a run-time slot, as the row
  // says.
  Value scalar(std::string_view name, DType dtype) const;
  // Returns a number argument broadcast to these dims.
  Value scalar(std::string_view name, DType dtype, const Dims& dims) const;
  // Returns a tensor or number argument with this element type: a number is 0-d, a tensor keeps its dims.
  Value operand(std::string_view name, DType dtype) const;
  // Returns the value of a number argument that the row lists in `constants`.
  double number(std::string_view name) const;
  // Returns whether the argument is a constant of this value (see Row::constant_if_one).
  bool is_constant(std::string_view name, double value) const;
  Category category(std::string_view name) const;

  // Returns the state for a Source (random.h) of this call; only for rows with `random`.
  Value random_state() const { return slots_.random_state(); }

  // For collectives; see Slots.
  Replicas replicas() const { return slots_.replicas(); }
  Value replica_id() const { return slots_.replica_id(); }
  Slots::Site& next_site() const { return slots_.next_site(); }
  bool over_replicas() const { return slots_.over_replicas(); }
  void expect(const Expectation& expectation) const { slots_.expect(expectation); }

  // Promotes types as PyTorch does, over the named arguments (tensors, tensor lists and numbers; absent ones
  // are skipped): tensors with dimensions before 0-d tensors before numbers, and a later group counts only if
  // its category (bool < integer < float < complex) is higher.
  DType promote(std::initializer_list<std::string_view> names) const;
  // Does `promote`, with integers and bool made the default float: for division, sqrt, sin and similar
  // functions. Complex numbers stay complex.
  DType promote_float(std::initializer_list<std::string_view> names) const;

  // Throws sluice::Error(kInvalidArgument): "aten::mm: message".
  [[noreturn]] void fail(const std::string& message) const;
  void check(bool condition, const std::string& message) const {
    if (!condition) fail(message);
  }

 private:
  const Arg& arg(std::string_view name) const;
  size_t index(std::string_view name) const;
  Value slot(size_t index, DType dtype) const;
  std::string_view op_;
  std::span<const std::string> names_;
  std::span<const Arg> args_;
  Slots& slots_;
};

// Returns the common type of two tensors' element types: u8 with s8 is s16, bf16 with f16 is f32, an integer
// with a float is that float.
DType promote_types(DType a, DType b);
// Returns a dimension, where a negative one counts from the end; throws if it is out of range.
int64_t wrap_dim(int64_t dim, int64_t rank);
// Returns the dims sorted and non-negative; an empty list means all dims if `empty_is_all`.
Dims wrap_dims(const Dims& dims, int64_t rank, bool empty_is_all);
// Returns the shape that NumPy's broadcast rule gives two shapes; throws if they do not broadcast.
Dims broadcast_dims(const Dims& a, const Dims& b);

}  // namespace sluice::ops
