#include "sluice/ops/emit.h"

#include <algorithm>
#include <iterator>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice::ops {
namespace {

// The element types that the arguments of one call bring to type promotion, by priority.
struct PromotionState {
  std::optional<DType> dimensioned, zero_dim, number;
};

Category category_of(DType dtype) {
  if (stablehlo::is_complex(dtype)) return Category::kComplex;
  if (stablehlo::is_float(dtype)) return Category::kFloat;
  return dtype == DType::kPred ? Category::kBool : Category::kInt;
}

// Returns the type of a number by itself: C++'s double becomes the default float.
DType number_dtype(Category category) {
  if (category == Category::kComplex) return DType::kC64;
  if (category == Category::kFloat) return DType::kF32;
  return category == Category::kInt ? DType::kS64 : DType::kPred;
}

void merge(std::optional<DType>& into, DType dtype) { into = into ? promote_types(*into, dtype) : dtype; }

// Combines two groups: the later group counts only if its category is higher.
std::optional<DType> combine(std::optional<DType> first, std::optional<DType> later) {
  if (!first || !later) return first ? first : later;
  if (category_of(*first) >= category_of(*later)) return first;
  return promote_types(*first, *later);
}

void add_tensor(PromotionState& state, const Arg& arg) {
  if (!arg.value && !arg.from_slot) return;
  const DType dtype = arg.value ? arg.value.dtype() : arg.dtype;
  if (arg.wrapped)
    merge(state.number, number_dtype(category_of(dtype)));
  else
    merge(arg.value && arg.value.rank() > 0 ? state.dimensioned : state.zero_dim, dtype);
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (stablehlo::is_complex(a) || stablehlo::is_complex(b)) {
    const bool wide = stablehlo::real_dtype(a) == DType::kF64 || stablehlo::real_dtype(b) == DType::kF64;
    return wide ? DType::kC128 : DType::kC64;
  }
  if (stablehlo::is_float8(a) || stablehlo::is_float8(b))
    throw_error(Code::kInvalidArgument,
                base::str("float8 is not promoted; convert the operands to one type with .to(), found ",
                          stablehlo::dtype_name(a), " and ", stablehlo::dtype_name(b)));
  if (stablehlo::is_float(a) || stablehlo::is_float(b)) {
    if (!stablehlo::is_float(a)) return b;
    if (!stablehlo::is_float(b)) return a;
    if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
    return DType::kF32;  // f32 with a half, or bf16 with f16
  }
  if (a == DType::kPred) return b;
  if (b == DType::kPred) return a;
  const bool unsigned_a = stablehlo::is_unsigned(a), unsigned_b = stablehlo::is_unsigned(b);
  const size_t size_a = stablehlo::dtype_size(a), size_b = stablehlo::dtype_size(b);
  if (unsigned_a == unsigned_b) return size_a > size_b ? a : b;
  const DType signed_one = unsigned_a ? b : a;
  const size_t signed_size = unsigned_a ? size_b : size_a, unsigned_size = unsigned_a ? size_a : size_b;
  if (signed_size > unsigned_size) return signed_one;
  if (unsigned_size == 1) return DType::kS16;
  if (unsigned_size == 2) return DType::kS32;
  return DType::kS64;
}

namespace {

// Returns the place of an argument; names.size() for an unknown name.
size_t place_of(std::span<const std::string> names, std::string_view name) {
  const auto find = [&](std::string_view wanted) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), wanted) - names.begin());
  };
  const size_t place = find(name);
  // LibTorch 2.14 has renamed this argument of _cdist_backward and _pdist_backward.
  return place == names.size() && name == "grad" ? find("grad_output") : place;
}

}  // namespace

size_t Emit::index(std::string_view name) const {
  if (const size_t place = place_of(names_, name); place < names_.size()) return place;
  fail(base::str("the row reads an argument '", name, "' that the operation's schema does not have"));
}

const Arg& Emit::arg(std::string_view name) const { return args_[index(name)]; }

bool Emit::has(std::string_view name) const {
  const size_t place = place_of(names_, name);
  return place < names_.size() && args_[place].kind != Arg::Kind::kNone;
}

Value Emit::tensor(std::string_view name) const {
  Value value = tensor_or_empty(name);
  if (!value) fail(base::str("expected a tensor for '", name, "', found none"));
  return value;
}

Value Emit::tensor_or_empty(std::string_view name) const {
  if (!has(name)) return {};
  const Arg& a = arg(name);
  if (a.kind == Arg::Kind::kScalar) return scalar(name, number_dtype(a.category));
  if (a.kind != Arg::Kind::kTensor)
    fail(base::str("expected a tensor for '", name, "', found something else"));
  if (!a.value && a.from_slot) return slot(index(name), a.dtype);
  return a.value;
}

const Values& Emit::tensors(std::string_view name) const {
  const Arg& a = arg(name);
  if (a.kind != Arg::Kind::kTensors) fail(base::str("expected a list of tensors for '", name, "'"));
  return a.values;
}

int64_t Emit::integer(std::string_view name) const {
  const Arg& a = arg(name);
  if (a.kind == Arg::Kind::kScalar && a.constant && a.category < Category::kFloat) return a.integer;
  if ((a.kind != Arg::Kind::kInt && a.kind != Arg::Kind::kBool && a.kind != Arg::Kind::kInts) ||
      a.ints.size() != 1)
    fail(base::str("expected an integer for '", name, "'"));
  return a.ints[0];
}

int64_t Emit::integer_or(std::string_view name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

bool Emit::boolean(std::string_view name) const { return integer(name) != 0; }

const Dims& Emit::ints(std::string_view name) const {
  const Arg& a = arg(name);
  static const Dims none;
  if (a.kind == Arg::Kind::kNone) return none;
  if (a.kind != Arg::Kind::kInts && a.kind != Arg::Kind::kInt)
    fail(base::str("expected a list of integers for '", name, "'"));
  return a.ints;
}

const std::vector<double>& Emit::doubles(std::string_view name) const {
  const Arg& a = arg(name);
  static const std::vector<double> none;
  if (a.kind == Arg::Kind::kNone) return none;
  if (a.kind != Arg::Kind::kDoubles) fail(base::str("expected a list of numbers for '", name, "'"));
  return a.doubles;
}

std::string_view Emit::text(std::string_view name) const {
  if (!has(name)) return "";
  const Arg& a = arg(name);
  if (a.kind != Arg::Kind::kText) fail(base::str("expected a text for '", name, "'"));
  return a.text;
}

std::optional<DType> Emit::dtype(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const Arg& a = arg(name);
  if (a.kind != Arg::Kind::kDType) fail(base::str("expected an element type for '", name, "'"));
  return a.dtype;
}

Value Emit::scalar(std::string_view name, DType dtype) const {
  const size_t i = index(name);
  const Arg& a = args_[i];
  switch (a.kind) {
    case Arg::Kind::kScalar:
      if (!a.constant) return slot(i, dtype);
      if (a.category == Category::kComplex) {
        if (!stablehlo::is_complex(dtype))
          fail(base::str("the complex number of '", name, "' does not fit elements of ",
                         stablehlo::dtype_name(dtype)));
        return b.complex_splat(a.number, a.imaginary, Type{dtype, {}});
      }
      if (a.category == Category::kFloat) return b.splat(a.number, Type{dtype, {}});
      return b.splat(a.integer, Type{dtype, {}});
    case Arg::Kind::kInt:
    case Arg::Kind::kBool:
      return b.splat(a.ints.at(0), Type{dtype, {}});
    case Arg::Kind::kTensor:
      if (a.from_slot) return slot(i, dtype);
      if (a.value && a.value.rank() == 0)
        return a.value.dtype() == dtype ? a.value : b.convert(a.value, dtype);
      [[fallthrough]];
    default:
      fail(base::str("expected a number for '", name, "'"));
  }
}

// Run-time scalars are real.
Value Emit::slot(size_t index, DType dtype) const {
  Value number = slots_.scalar(index, stablehlo::real_dtype(dtype));
  return stablehlo::is_complex(dtype) ? b.convert(number, dtype) : number;
}

Value Emit::scalar(std::string_view name, DType dtype, const Dims& dims) const {
  return b.broadcast(scalar(name, dtype), dims);
}

Value Emit::operand(std::string_view name, DType dtype) const {
  const Arg& a = arg(name);
  if (a.kind != Arg::Kind::kTensor || a.from_slot) return scalar(name, dtype);
  Value value = tensor(name);
  if (stablehlo::is_complex(value.dtype()) && !stablehlo::is_complex(dtype))
    fail(base::str("the complex numbers of '", name, "' do not fit elements of ",
                   stablehlo::dtype_name(dtype)));
  // Converts via an integer: XLA turns x times a converted predicate into a choice between x and 0, but a NaN
  // or an infinity times 0 is NaN.
  if (value.dtype() == DType::kPred && (stablehlo::is_float(dtype) || stablehlo::is_complex(dtype)))
    value = b.convert(value, DType::kS32);
  return value.dtype() == dtype ? value : b.convert(value, dtype);
}

double Emit::number(std::string_view name) const {
  const Arg& a = arg(name);
  if (a.kind == Arg::Kind::kInt || a.kind == Arg::Kind::kBool) return static_cast<double>(a.ints.at(0));
  if (a.kind != Arg::Kind::kScalar || !a.constant)
    fail(
        base::str("expected a constant number for '", name, "': the row has to list it among its constants"));
  if (a.category == Category::kComplex)
    fail(base::str("expected a real number for '", name, "', found a complex one"));
  return a.category == Category::kFloat ? a.number : static_cast<double>(a.integer);
}

bool Emit::is_constant(std::string_view name, double value) const {
  if (!has(name)) return false;
  const Arg& a = arg(name);
  return a.kind == Arg::Kind::kScalar && a.constant && a.category != Category::kComplex &&
         number(name) == value;
}

Category Emit::category(std::string_view name) const {
  const Arg& a = arg(name);
  if (a.kind == Arg::Kind::kScalar) return a.category;
  if (a.kind == Arg::Kind::kTensor && a.value) return category_of(a.value.dtype());
  if (a.kind == Arg::Kind::kTensor && a.from_slot) return category_of(a.dtype);
  if (a.kind == Arg::Kind::kBool) return Category::kBool;
  if (a.kind == Arg::Kind::kInt) return Category::kInt;
  fail(base::str("expected a number for '", name, "'"));
}

DType Emit::promote(std::initializer_list<std::string_view> names) const {
  PromotionState state;
  for (std::string_view name : names) {
    if (!has(name)) continue;
    const Arg& a = arg(name);
    if (a.kind == Arg::Kind::kTensor) {
      add_tensor(state, a);
    } else if (a.kind == Arg::Kind::kTensors) {
      for (Value value : a.values)
        if (value) merge(value.rank() > 0 ? state.dimensioned : state.zero_dim, value.dtype());
    } else {
      merge(state.number, number_dtype(category(name)));
    }
  }
  const std::optional<DType> dtype = combine(combine(state.dimensioned, state.zero_dim), state.number);
  if (!dtype) fail("no argument that the element type of the result could follow from");
  return *dtype;
}

DType Emit::promote_float(std::initializer_list<std::string_view> names) const {
  const DType dtype = promote(names);
  return stablehlo::is_float(dtype) || stablehlo::is_complex(dtype) ? dtype : DType::kF32;
}

std::string in_words(const Type& type) {
  // The names in the order of DType.
  constexpr const char* kNames[] = {"Bool",     "Char",   "Short",  "Int",           "Long",         "Byte",
                                    "UInt16",   "UInt32", "UInt64", "Float8_e4m3fn", "Float8_e5m2",  "Half",
                                    "BFloat16", "Float",  "Double", "ComplexFloat",  "ComplexDouble"};
  static_assert(std::size(kNames) == stablehlo::kDTypeCount);
  return base::str(kNames[static_cast<size_t>(type.dtype)], "[", base::join(type.dims, ", "), "]");
}

void Emit::fail(const std::string& message) const {
  throw_error(Code::kInvalidArgument, base::str(op_, ": ", message));
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);
  if (dim < -range || dim >= range)
    throw_error(Code::kInvalidArgument,
                base::str("expected a dimension from ", -range, " to ", range - 1, ", found ", dim));
  return dim < 0 ? dim + range : dim;
}

Dims wrap_dims(const Dims& dims, int64_t rank, bool empty_is_all) {
  Dims wrapped;
  if (dims.empty() && empty_is_all) {
    for (int64_t i = 0; i < rank; ++i) wrapped.push_back(i);
    return wrapped;
  }
  for (int64_t dim : dims) wrapped.push_back(wrap_dim(dim, rank));
  std::sort(wrapped.begin(), wrapped.end());
  if (std::adjacent_find(wrapped.begin(), wrapped.end()) != wrapped.end())
    throw_error(Code::kInvalidArgument, "expected different dimensions, found one of them twice");
  if (rank == 0) wrapped.clear();
  return wrapped;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = result[offset + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1)
      throw_error(Code::kInvalidArgument,
                  base::str("shapes [", base::join(a, ", "), "] and [", base::join(b, ", "),
                            "] do not broadcast: sizes differ and neither is 1"));
    size = shorter[i];
  }
  return result;
}

}  // namespace sluice::ops
