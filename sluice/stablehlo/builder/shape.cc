// Operations that move elements without looking at them.
#include <algorithm>
#include <numeric>

#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

bool is_iota(const Dims& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

void check_count(std::string_view op, std::string_view what, const Dims& list, Value x) {
  if (static_cast<int64_t>(list.size()) != x.rank()) {
    reject(op, what, " must have one entry a dimension of ", x.type().str(), ", found ", list_text(list));
  }
}

}  // namespace

Value Builder::broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions) {
  constexpr std::string_view kOp = "stablehlo.broadcast_in_dim";
  impl_->use(kOp, x);
  check_count(kOp, "broadcast_dimensions", broadcast_dimensions, x);
  const Type result{x.dtype(), dims};
  std::vector<bool> taken(dims.size(), false);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t to = broadcast_dimensions[static_cast<size_t>(i)];
    if (to < 0 || to >= result.rank() || taken[static_cast<size_t>(to)]) {
      reject(kOp, "broadcast_dimensions must be different dimensions of the result, found ",
             list_text(broadcast_dimensions), " for ", result.str());
    }
    taken[static_cast<size_t>(to)] = true;
    if (x.dim(i) != 1 && x.dim(i) != dims[static_cast<size_t>(to)]) {
      reject(kOp, "dimension ", i, " of ", x.type().str(), " does not fit dimension ", to, " of ",
             result.str(), ": it must be equal or 1");
    }
  }
  if (x.dims() == dims && is_iota(broadcast_dimensions)) return x;
  const bool constant = impl_->info(x).constant;
  const Value made = impl_->add(kOp, std::span<const Value>(&x, 1),
                                Attributes().ints("broadcast_dimensions", broadcast_dimensions),
                                impl_->intern_checked(kOp, result));
  impl_->values.back().constant = constant;
  return made;
}

Value Builder::broadcast(Value x, const Dims& dims) {
  constexpr std::string_view kOp = "stablehlo.broadcast_in_dim";
  impl_->use(kOp, x);
  if (x.dims() == dims) return x;
  const auto shift = static_cast<int64_t>(dims.size()) - x.rank();
  if (shift < 0) {
    reject(kOp, x.type().str(), " has more dimensions than the wanted ", list_text(dims));
  }
  Dims to(static_cast<size_t>(x.rank()));
  std::iota(to.begin(), to.end(), shift);
  return broadcast_in_dim(x, dims, to);
}

Value Builder::reshape(Value x, const Dims& dims) {
  constexpr std::string_view kOp = "stablehlo.reshape";
  impl_->use(kOp, x);
  if (x.dims() == dims) return x;
  const TypeEntry* result = impl_->intern_checked(kOp, {x.dtype(), dims});
  if (x.type().numel() != result->type.numel()) {
    reject(kOp, "the number of elements must stay the same, found ", x.type().str(), " (", x.type().numel(),
           ") and ", result->text, " (", result->type.numel(), ")");
  }
  return impl_->add(kOp, std::span<const Value>(&x, 1), {}, result);
}

Value Builder::transpose(Value x, const Dims& permutation) {
  constexpr std::string_view kOp = "stablehlo.transpose";
  impl_->use(kOp, x);
  Dims sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (static_cast<int64_t>(permutation.size()) != x.rank() || !is_iota(sorted)) {
    reject(kOp, list_text(permutation), " is not a permutation of the dimensions of ", x.type().str());
  }
  if (is_iota(permutation)) return x;
  Type result{x.dtype(), {}};
  for (int64_t from : permutation) result.dims.push_back(x.dim(from));
  return impl_->add(kOp, {x}, Attributes().ints("permutation", permutation), result);
}

Value Builder::slice(Value x, const Dims& start, const Dims& limit, const Dims& strides) {
  constexpr std::string_view kOp = "stablehlo.slice";
  impl_->use(kOp, x);
  const Dims steps = strides.empty() ? Dims(static_cast<size_t>(x.rank()), 1) : strides;
  check_count(kOp, "start", start, x);
  check_count(kOp, "limit", limit, x);
  check_count(kOp, "strides", steps, x);
  Type result{x.dtype(), {}};
  for (size_t i = 0; i < start.size(); ++i) {
    if (start[i] < 0 || limit[i] < start[i] || limit[i] > x.dims()[i] || steps[i] < 1) {
      reject(kOp, "0 <= start <= limit <= extent and stride >= 1 must hold; in dimension ", i, " of ",
             x.type().str(), " start is ", start[i], ", limit ", limit[i], ", stride ", steps[i]);
    }
    result.dims.push_back((limit[i] - start[i] + steps[i] - 1) / steps[i]);
  }
  if (result.dims == x.dims()) return x;
  return impl_->add(
      kOp, {x}, Attributes().ints("start_indices", start).ints("limit_indices", limit).ints("strides", steps),
      result);
}

Value Builder::slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  constexpr std::string_view kOp = "stablehlo.slice";
  impl_->use(kOp, x);
  if (dim < 0 || dim >= x.rank()) reject(kOp, "there is no dimension ", dim, " in ", x.type().str());
  Dims starts(static_cast<size_t>(x.rank()), 0), limits = x.dims(), strides(static_cast<size_t>(x.rank()), 1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  strides[static_cast<size_t>(dim)] = stride;
  return slice(x, starts, limits, strides);
}

Value Builder::pad(Value x, Value scalar, const Dims& low, const Dims& high, const Dims& interior) {
  constexpr std::string_view kOp = "stablehlo.pad";
  impl_->use(kOp, {x, scalar});
  if (scalar.rank() != 0 || scalar.dtype() != x.dtype()) {
    reject(kOp, "the padding must be a scalar of the operand's element type, found ", scalar.type().str(),
           " for ", x.type().str());
  }
  const Dims between = interior.empty() ? Dims(static_cast<size_t>(x.rank()), 0) : interior;
  check_count(kOp, "low", low, x);
  check_count(kOp, "high", high, x);
  check_count(kOp, "interior", between, x);
  Type result{x.dtype(), {}};
  bool nothing = true;
  for (size_t i = 0; i < low.size(); ++i) {
    const int64_t extent = x.dims()[i];
    const int64_t padded = low[i] + extent + std::max<int64_t>(extent - 1, 0) * between[i] + high[i];
    if (between[i] < 0 || padded < 0) {
      reject(kOp, "interior padding and the result's extent must not be negative; in dimension ", i, " of ",
             x.type().str(), " low is ", low[i], ", high ", high[i], ", interior ", between[i]);
    }
    nothing = nothing && low[i] == 0 && high[i] == 0 && padded == extent;
    result.dims.push_back(padded);
  }
  if (nothing) return x;
  return impl_->add(kOp, {x, scalar},
                    Attributes()
                        .ints("edge_padding_low", low)
                        .ints("edge_padding_high", high)
                        .ints("interior_padding", between),
                    result);
}

Value Builder::concatenate(std::span<const Value> parts, int64_t dim) {
  constexpr std::string_view kOp = "stablehlo.concatenate";
  if (parts.empty()) reject(kOp, "there must be at least one operand");
  impl_->use(kOp, parts);
  Type result = parts[0].type();
  if (dim < 0 || dim >= result.rank()) reject(kOp, "there is no dimension ", dim, " in ", result.str());
  const auto axis = static_cast<size_t>(dim);
  for (size_t i = 1; i < parts.size(); ++i) {
    Type aligned = parts[i].type();
    if (aligned.rank() == result.rank()) aligned.dims[axis] = result.dims[axis];
    if (aligned != result) {
      reject(kOp, "operands must agree in all but dimension ", dim, ", found ", parts[0].type().str(),
             " and ", parts[i].type().str());
    }
    result.dims[axis] += parts[i].dim(dim);
  }
  if (parts.size() == 1) return parts[0];
  return impl_->add(kOp, parts, Attributes().number("dimension", dim).note("dimension", {dim}),
                    impl_->intern(result));
}

Value Builder::reverse(Value x, const Dims& dims) {
  constexpr std::string_view kOp = "stablehlo.reverse";
  impl_->use(kOp, x);
  std::vector<bool> taken(static_cast<size_t>(x.rank()), false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= x.rank() || taken[static_cast<size_t>(dim)]) {
      reject(kOp, "dimensions must be different ones of ", x.type().str(), ", found ", list_text(dims));
    }
    taken[static_cast<size_t>(dim)] = true;
  }
  if (dims.empty()) return x;
  return impl_->add(kOp, {x}, Attributes().ints("dimensions", dims), x.type());
}

}  // namespace sluice::stablehlo
