// Constants.
#include "sluice/stablehlo/builder/impl.h"
#include "sluice/stablehlo/literal.h"

namespace sluice::stablehlo {
namespace {
constexpr std::string_view kConstant = "stablehlo.constant";
}  // namespace

Value Builder::Impl::splat_bits(const Type& wanted, uint64_t bits) {
  if (is_complex(wanted.dtype))
    reject(kConstant, "complex numbers are made of two constants, found ", wanted.str());
  const TypeEntry* result = intern_checked(kConstant, wanted);
  Value& shared = scopes.back().splats[{result, bits}];
  if (shared) return shared;
  std::string dense = "dense<";
  if (wanted.numel() > 0) literal::append(dense, wanted.dtype, bits);
  dense += "> : ";
  dense += result->text;
  shared = add(kConstant, {}, Attributes().raw("value", dense), result);
  values[static_cast<size_t>(shared.id_)].constant = !literal::is_nan(wanted.dtype, bits);
  return shared;
}

Value Builder::splat(double value, const Type& type) {
  if (is_complex(type.dtype)) return complex_splat(value, 0, type);
  return impl_->splat_bits(type, literal::encode(value, type.dtype));
}

Value Builder::splat(int64_t value, const Type& type) {
  if (is_complex(type.dtype)) return complex_splat(static_cast<double>(value), 0, type);
  return impl_->splat_bits(type, literal::encode(value, type.dtype));
}

Value Builder::complex_splat(double real, double imaginary, const Type& type) {
  const Type part{real_dtype(type.dtype), type.dims};
  return complex(splat(real, part), splat(imaginary, part));
}

Value Builder::lowest(DType dtype, const Dims& dims) {
  return impl_->splat_bits({dtype, dims}, literal::lowest(dtype));
}

Value Builder::highest(DType dtype, const Dims& dims) {
  return impl_->splat_bits({dtype, dims}, literal::highest(dtype));
}

Value Builder::constant(const Type& type, const void* data) {
  const TypeEntry* result = impl_->intern_checked(kConstant, type);
  if (is_complex(type.dtype))
    reject(kConstant, "complex numbers are made of two constants, found ", result->text);
  if (data == nullptr && type.numel() > 0)
    reject(kConstant, "the data of ", result->text, " is a null pointer");
  std::string dense;
  literal::append_dense(dense, type, data);
  dense += " : ";
  dense += result->text;
  return impl_->add(kConstant, {}, Attributes().raw("value", dense), result);
}

Value Builder::constant_i64(const Dims& values) {
  return constant({DType::kS64, {static_cast<int64_t>(values.size())}}, values.data());
}

Value Builder::iota(const Type& type, int64_t dim) {
  constexpr std::string_view kOp = "stablehlo.iota";
  const TypeEntry* result = impl_->intern_checked(kOp, type);
  if (dim < 0 || dim >= type.rank()) {
    reject(kOp, "there is no dimension ", dim, " in ", result->text);
  }
  if (type.dtype == DType::kPred) reject(kOp, "the element type must be an integer or a float, found i1");
  return impl_->add(kOp, {}, Attributes().number("iota_dimension", dim).note("iota_dimension", {dim}),
                    result);
}

}  // namespace sluice::stablehlo
