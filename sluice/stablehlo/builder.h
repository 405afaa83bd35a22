// A builder of StableHLO programs: each call adds one operation, checks its operands and infers its result
// type.
//
// Errors: a call whose operands do not fit throws sluice::Error (kInvalidArgument), which names the
// operation, the types found and the rule broken. Builders are used inside emit functions, where one place
// catches all errors.
// Threads: a builder belongs to one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {

class Builder;

// A handle of a value inside a builder; empty by default. Cheap to copy, valid as long as its builder.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return builder_ != nullptr; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int64_t rank() const { return type().rank(); }
  int64_t dim(int64_t i) const { return type().dims[static_cast<size_t>(i)]; }
  int32_t id() const { return id_; }
  bool operator==(const Value&) const = default;

 private:
  friend class Builder;
  Value(const Builder* builder, int32_t id) : builder_(builder), id_(id) {}
  const Builder* builder_ = nullptr;
  int32_t id_ = -1;
};

using Values = std::vector<Value>;
// The body of a region: receives the block's arguments, returns what the region returns.
using Region = std::function<Values(Builder&, std::span<const Value>)>;

enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe };

// The precision of f32 products on hardware that has a faster, less exact way (a TPU multiplies in bf16 by
// default); on a CPU, all are the same.
enum class Precision { kDefault, kHigh, kHighest };

// Groups of replicas that work together. Groups do not overlap; shorter groups are allowed if the operation
// does not need groups of one size.
using ReplicaGroups = std::vector<std::vector<int64_t>>;

// dot_general's dimensions (StableHLO specification, "dot_general").
struct DotDims {
  Dims lhs_batch = {}, rhs_batch = {}, lhs_contract = {}, rhs_contract = {};
};

// convolution's dimension numbers and window ("convolution" in the specification).
// Spatial vectors all have the same length; padding is (low, high) for each spatial dimension and may be
// negative.
struct ConvolutionDims {
  int64_t input_batch = 0, input_feature = 1;
  Dims input_spatial;
  int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dims kernel_spatial;
  int64_t output_batch = 0, output_feature = 1;
  Dims output_spatial;
};
struct ConvolutionWindow {
  Dims strides = {};
  std::vector<std::pair<int64_t, int64_t>> padding = {};
  Dims lhs_dilation = {}, rhs_dilation = {};
  std::vector<bool> reversal = {};  // empty: none
  int64_t feature_groups = 1, batch_groups = 1;
};

// The kinds of Fourier transform of n numbers: n complex to n complex (and back), n real to n / 2 + 1 complex
// (and back).
enum class Fft { kForward, kInverse, kRealForward, kRealInverse };

struct TriangularSystem {
  bool left = true;        // a X = b; else X a = b
  bool lower = true;       // the triangle of a that is read
  bool unit = false;       // the diagonal is 1 and not read
  bool transpose = false;  // aᵀ in place of a
};

struct GatherDims {
  Dims offset_dims = {}, collapsed_slice_dims = {}, start_index_map = {};
  int64_t index_vector_dim = 0;
  Dims slice_sizes = {};
  bool indices_are_sorted = false;
};
struct ScatterDims {
  Dims update_window_dims = {}, inserted_window_dims = {}, scatter_dims_to_operand_dims = {};
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
};
// The window of reduce_window and select_and_scatter: one entry for each dimension of the operand.
struct Window {
  Dims sizes, strides;                               // strides empty: all 1
  Dims base_dilations, window_dilations;             // empty: all 1
  std::vector<std::pair<int64_t, int64_t>> padding;  // empty: none
};

// The attributes of a custom call, which its handler gets. Names consist of letters, digits and '_', and are
// unique.
struct CallAttribute {
  std::string name;
  std::variant<int64_t, double, bool, std::string, std::vector<int64_t>> value;  // i64, f64, i1, text, i64s
};
using CallAttributes = std::vector<CallAttribute>;

struct CallOptions {
  // The number of results that take the memory of operands: the first results take the first operands'
  // memory, and so must have their types.
  size_t in_place = 0;
  bool pure = false;  // only the results matter
  // The order of each operand's and result's dimensions in memory, the fastest first; empty: in all of them
  // the last dimension is the fastest.
  std::vector<Dims> operand_layouts = {}, result_layouts = {};
};

// The donation of an argument of main, as the program declares it.
struct Donation {
  enum class Kind { kNone, kAliasOutput, kDonor };
  Kind kind = Kind::kNone;
  int32_t output = 0;  // for kAliasOutput
};

class Builder {
 public:
  Builder();
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Adds an argument of main; the arguments keep this order.
  Value parameter(const Type& type);

  // Sets the name that operations added from now on carry as their MLIR location (except in the bodies of
  // reductions); "": none. `id`: the number of the recorded operation, which pure custom calls carry as their
  // attribute "recorded" (i64); 0: none.
  void set_location(std::string_view name, int64_t id = 0);
  // Returns the name for an Operation::location; it belongs to the builder.
  std::string_view location(int number) const;
  // Sets the precision of products that are added from now on; kDefault at first.
  void set_precision(Precision precision);
  Precision precision() const;
  // Sets whether maximum, minimum, reduce_max and reduce_min are spelled out with comparisons, so that a NaN
  // wins even if the compiler drops one: XLA's CPU backend drops the second operand's NaN by default. True at
  // first. Switch it off for a platform whose own maximum keeps every NaN (as on TPUs and GPUs), if that is
  // faster.
  void set_explicit_nan(bool on);

  // Constants. A splat is converted to the element type: floats round to nearest even, an integer type drops
  // a float's fraction (and must hold the number), integers wrap around. Equal splats in one block are one
  // value. `data` is row-major host bytes of type.bytes(); predicates are bytes, non-zero is true.
  Value splat(double value, const Type& type);
  Value splat(int64_t value, const Type& type);
  Value splat(int value, const Type& type) { return splat(static_cast<int64_t>(value), type); }
  Value constant(const Type& type, const void* data);
  // Returns a value with one complex number in every place.
  Value complex_splat(double real, double imaginary, const Type& type);
  Value constant_i64(const Dims& values);  // a vector of i64
  Value iota(const Type& type, int64_t dim);
  // The extreme values of an element type, for reductions' initial values: -inf / lowest, +inf / highest.
  Value lowest(DType dtype, const Dims& dims = {});
  Value highest(DType dtype, const Dims& dims = {});

  // Element-wise, one operand. (CHLO operations that XLA expands, such as erf, erf_inv, lgamma and digamma,
  // are called by name: chlo().)
  Value abs(Value x);
  Value cbrt(Value x);
  Value ceil(Value x);
  Value cosine(Value x);
  Value exp(Value x);
  Value expm1(Value x);
  Value floor(Value x);
  Value is_finite(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value logistic(Value x);
  Value negate(Value x);
  Value not_(Value x);
  Value popcount(Value x);
  Value round_even(Value x);  // round_nearest_even
  Value round_afz(Value x);
  Value rsqrt(Value x);
  Value sign(Value x);
  Value sine(Value x);
  Value sqrt(Value x);
  Value tanh(Value x);
  // Adds "chlo.NAME", with the same result type. Names: erf, erf_inv, erfc, lgamma, digamma, acos, asin,
  // atan, acosh, asinh, atanh, cosh, sinh, tan.
  Value chlo(std::string_view name, Value x);
  // Adds "chlo.NAME" of two operands of one float type. Names: polygamma, zeta, next_after.
  Value chlo(std::string_view name, Value a, Value b);
  Value convert(Value x, DType dtype);
  // Keeps the bits. To a type of 1/k of the width, the result is [..., k]; from such a type, x is [..., k],
  // and the result is [...].
  Value bitcast_convert(Value x, DType dtype);

  // Element-wise, two operands of one type (no implicit broadcast; see broadcast below).
  Value add(Value a, Value b);
  Value subtract(Value a, Value b);
  Value multiply(Value a, Value b);
  Value divide(Value a, Value b);
  Value remainder(Value a, Value b);
  Value power(Value a, Value b);
  Value maximum(Value a, Value b);  // a NaN wins, as in PyTorch
  Value minimum(Value a, Value b);
  Value and_(Value a, Value b);
  Value or_(Value a, Value b);
  Value xor_(Value a, Value b);
  Value shift_left(Value a, Value b);
  Value shift_right_arithmetic(Value a, Value b);
  Value shift_right_logical(Value a, Value b);
  Value atan2(Value a, Value b);
  Value compare(Value a, Value b, Compare direction);
  Value select(Value predicate, Value on_true, Value on_false);  // predicate of the same dims, or a scalar
  Value clamp(Value low, Value x, Value high);                   // low and high of x's type, or scalars

  // Complex numbers. The real part of a real x is x itself, its imaginary part zeros.
  Value complex(Value real, Value imaginary);  // both f32 or both f64
  Value real(Value x);
  Value imaginary(Value x);
  Value conjugate(Value x);

  // Shapes.
  Value broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions);
  // Broadcasts by NumPy's rule: dims aligned at the right, 1s stretched. Returns x itself if it has these
  // dims already.
  Value broadcast(Value x, const Dims& dims);
  Value reshape(Value x, const Dims& dims);  // x itself when dims are the same
  Value transpose(Value x, const Dims& permutation);
  Value slice(Value x, const Dims& start, const Dims& limit, const Dims& strides = {});
  Value slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
  Value pad(Value x, Value scalar, const Dims& low, const Dims& high, const Dims& interior = {});
  Value concatenate(std::span<const Value> parts, int64_t dim);
  Value reverse(Value x, const Dims& dims);
  Value dynamic_slice(Value x, std::span<const Value> starts, const Dims& sizes);
  Value dynamic_update_slice(Value x, Value update, std::span<const Value> starts);
  Value gather(Value x, Value indices, const GatherDims& dims);
  // body(old, update) -> new, on scalars.
  Value scatter(Value x, Value indices, Value updates, const ScatterDims& dims, const Region& body);

  // Reductions. inits are scalars; body(acc…, element…) -> acc….
  Values reduce(std::span<const Value> operands, std::span<const Value> inits, const Dims& dims,
                const Region& body);
  Value reduce_sum(Value x, const Dims& dims);
  // nan_wins: pass false if the result is right in any case, as for the shift of a softmax; may be faster.
  Value reduce_max(Value x, const Dims& dims, bool nan_wins = true);
  Value reduce_min(Value x, const Dims& dims, bool nan_wins = true);
  Value reduce_product(Value x, const Dims& dims);
  Value reduce_and(Value x, const Dims& dims);  // predicates
  Value reduce_or(Value x, const Dims& dims);
  Values reduce_window(std::span<const Value> operands, std::span<const Value> inits, const Window& window,
                       const Region& body);
  Value select_and_scatter(Value operand, Value source, Value init, const Window& window,
                           const Region& select, const Region& scatter);
  // comparator(a0, b0, a1, b1, …) -> predicate.
  Values sort(std::span<const Value> operands, int64_t dim, bool stable, const Region& comparator);
  // Adds "chlo.top_k" of f32: the k largest along the last dimension, the largest first, and their positions
  // (s32). The order is total: -NaN < -infinity < -0 < 0 < infinity < NaN; among equal elements, the first in
  // x comes first.
  Values top_k(Value x, int64_t k);

  // Products. `result` is the element type to accumulate in and return; the default is the operands' type.
  Value dot_general(Value a, Value b, const DotDims& dims, std::optional<DType> result = std::nullopt);
  Value convolution(Value input, Value kernel, const ConvolutionDims& dims, const ConvolutionWindow& window,
                    std::optional<DType> result = std::nullopt);

  // Linear algebra, on matrices in the last two dimensions.
  // Returns L with L Lᵀ = x (or U with Uᵀ U = x); only one triangle of x is read. The other triangle of the
  // result is undefined. A matrix that is not positive definite gives NaNs.
  Value cholesky(Value x, bool lower);
  // Solves a X = b (or X a = b) for a triangular a. a and b have the same batch dimensions.
  Value triangular_solve(Value a, Value b, const TriangularSystem& system);

  // Returns the discrete Fourier transform along the last dimension; inverse transforms are divided by its
  // length.
  Value fft(Value x, Fft kind, int64_t length);

  // Control flow. Bodies may use values from outside.
  Values while_(std::span<const Value> init, const Region& condition, const Region& body);
  Values if_(Value predicate, const Region& on_true, const Region& on_false);
  // Runs the branch with this number (tensor<i32>); the last branch if the number is out of range.
  Values case_(Value index, std::span<const Region> branches);

  // Across replicas. groups empty: all replicas in one group. body(a, b) -> combined, on scalars.
  Value replica_id();  // tensor<ui32>
  Value all_reduce(Value x, const ReplicaGroups& groups, const Region& body);
  Value all_reduce_sum(Value x, const ReplicaGroups& groups = {});
  // Concatenates the parts of a group's replicas along dim, in the group's order.
  Value all_gather(Value x, int64_t dim, const ReplicaGroups& groups);
  // Splits the combined value along dim; each replica of a group gets its part.
  Value reduce_scatter(Value x, int64_t dim, const ReplicaGroups& groups, const Region& body);
  // Splits x along split_dim into one part for each replica of a group. Part i goes to the group's replica i,
  // which concatenates the parts that it receives along concat_dim.
  Value all_to_all(Value x, int64_t split_dim, int64_t concat_dim, const ReplicaGroups& groups);
  // Sends x from each pair's first replica to its second; a replica that receives nothing gets zeros.
  Value collective_permute(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs);

  // Calls a function that the program's host registered with the plugin as `target`. A call that is not pure
  // is kept even if its results are unused, is never merged with an equal one, and runs in the order written.
  Values custom_call(std::string_view target, std::span<const Value> operands,
                     const std::vector<Type>& results, const CallAttributes& attributes,
                     const CallOptions& options = {});

  // Runs `body`, returns its results, and marks the operations that it adds as one operation of a higher
  // level, for patterns that know a better way to compute it ("composite" in the specification; the text has
  // only the body). Nothing else may use values from the body except its results and constants. `operands`:
  // the values that the result follows from; an empty value for a missing one. In a region's body nothing is
  // marked.
  Values composite(std::string_view name, const Values& operands, const CallAttributes& attributes,
                   const std::function<Values()>& body);

  // The rest.
  std::pair<Value, Value> rng_bits(Value state,
                                   const Type& type);  // (new state, bits); THREE_FRY, state tensor<2xui64>
  Value optimization_barrier(Value x);
  // Makes all of these values available before any result is. At least one value.
  Values optimization_barrier(std::span<const Value> values);

  // Ends the program: main returns these results (possibly none). donations: one entry for each parameter, or
  // empty. Returns the module's text in the quoted generic form of version 1.0.
  std::string finish(std::span<const Value> results, std::span<const Donation> donations,
                     int num_replicas = 1, std::string_view module_name = "sluice");

  const Type& type_of(int32_t id) const;
  size_t operations() const;  // the number of operations so far

 private:
  friend class Rewriter;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline const Type& Value::type() const { return builder_->type_of(id_); }

}  // namespace sluice::stablehlo
