// Reductions, windows and sorting.
#include <algorithm>
#include <limits>

#include "sluice/stablehlo/builder/impl.h"
#include "sluice/stablehlo/literal.h"

namespace sluice::stablehlo {
namespace {

Dims or_ones(const Dims& list, int64_t rank) {
  return list.empty() ? Dims(static_cast<size_t>(rank), 1) : list;
}

// Throws unless each operand has one scalar init of its element type, and all operands have one shape.
void check_inits(std::string_view op, std::span<const Value> operands, std::span<const Value> inits) {
  if (operands.empty() || operands.size() != inits.size()) {
    reject(op, "there must be operands and one initial value for each, found ", operands.size(), " and ",
           inits.size());
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].dims() != operands[0].dims()) {
      reject(op, "operands must have one shape, found ", operands[0].type().str(), " and ",
             operands[i].type().str());
    }
    if (inits[i].rank() != 0 || inits[i].dtype() != operands[i].dtype()) {
      reject(op, "an initial value must be a scalar of its operand's element type, found ",
             inits[i].type().str(), " for ", operands[i].type().str());
    }
  }
}

Values joined(std::span<const Value> a, std::span<const Value> b) {
  Values all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

int64_t window_places(std::string_view op, int64_t dim, int64_t extent, const WindowDim& window) {
  if (window.size < 1 || window.stride < 1 || window.base_dilation < 1 || window.window_dilation < 1) {
    reject(op, "window sizes, strides and dilations must be at least 1; in dimension ", dim, " size is ",
           window.size, ", stride ", window.stride, ", base dilation ", window.base_dilation,
           ", window dilation ", window.window_dilation);
  }
  const int64_t dilated = extent == 0 ? 0 : (extent - 1) * window.base_dilation + 1;
  const int64_t padded = window.low + dilated + window.high;
  if (padded < 0) {
    reject(op, "padding takes away more than there is; in dimension ", dim, " of extent ", dilated,
           " low is ", window.low, ", high ", window.high);
  }
  const int64_t covered = (window.size - 1) * window.window_dilation + 1;
  return padded < covered ? 0 : (padded - covered) / window.stride + 1;
}

// Returns the shape that a window leaves of `dims`; fills in the window's empty lists.
static Dims windowed(std::string_view op, const Dims& dims, Window& window) {
  const auto rank = static_cast<int64_t>(dims.size());
  window.strides = or_ones(window.strides, rank);
  window.base_dilations = or_ones(window.base_dilations, rank);
  window.window_dilations = or_ones(window.window_dilations, rank);
  if (window.padding.empty()) window.padding.resize(dims.size());
  for (size_t count : {window.sizes.size(), window.strides.size(), window.base_dilations.size(),
                       window.window_dilations.size(), window.padding.size()}) {
    if (count != dims.size()) {
      reject(op, "the window must have one entry a dimension of the operand ", list_text(dims),
             ", found sizes ", list_text(window.sizes), ", strides ", list_text(window.strides), ", padding ",
             padding_text(window.padding), ", dilations ", list_text(window.base_dilations), " and ",
             list_text(window.window_dilations));
    }
  }
  Dims places;
  for (size_t i = 0; i < dims.size(); ++i) {
    places.push_back(
        window_places(op, static_cast<int64_t>(i), dims[i],
                      {window.sizes[i], window.strides[i], window.padding[i].first, window.padding[i].second,
                       window.base_dilations[i], window.window_dilations[i]}));
  }
  return places;
}

Values Builder::reduce(std::span<const Value> operands, std::span<const Value> inits, const Dims& dims,
                       const Region& body) {
  constexpr std::string_view kOp = "stablehlo.reduce";
  impl_->use(kOp, operands);
  impl_->use(kOp, inits);
  check_inits(kOp, operands, inits);
  const Type& first = operands[0].type();
  std::vector<bool> gone(first.dims.size(), false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= first.rank() || gone[static_cast<size_t>(dim)]) {
      reject(kOp, "dimensions must be different ones of ", first.str(), ", found ", list_text(dims));
    }
    gone[static_cast<size_t>(dim)] = true;
  }
  Dims left;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) left.push_back(first.dims[i]);
  }
  std::vector<const TypeEntry*> scalars, results;
  for (size_t i = 0; i < operands.size(); ++i) {
    scalars.push_back(impl_->entry(inits[i]));
    results.push_back(impl_->intern({operands[i].dtype(), left}));
  }
  Impl::Body made = impl_->reducer(kOp, scalars, body);
  return impl_->add(kOp, joined(operands, inits), {&made, 1}, Attributes().ints("dimensions", dims), results);
}

Value Builder::Impl::reduce_with(Value x, const Dims& dims, Value init,
                                 Value (Builder::*combine)(Value, Value)) {
  return owner
      ->reduce(
          {&x, 1}, {&init, 1}, dims,
          [combine](Builder& b, std::span<const Value> in) { return Values{(b.*combine)(in[0], in[1])}; })
      .front();
}

Value Builder::reduce_sum(Value x, const Dims& dims) {
  impl_->use("stablehlo.reduce", x);
  impl_->check_dtype("stablehlo.reduce", x, kNumbers);
  return dims.empty() ? x : impl_->reduce_with(x, dims, splat(0, {x.dtype(), {}}), &Builder::add);
}

Value Builder::reduce_product(Value x, const Dims& dims) {
  impl_->use("stablehlo.reduce", x);
  impl_->check_dtype("stablehlo.reduce", x, kNumbers);
  return dims.empty() ? x : impl_->reduce_with(x, dims, splat(1, {x.dtype(), {}}), &Builder::multiply);
}

// Computes the compiler's own maximum over all elements, which may drop a NaN, and separately whether there
// is a NaN. On a CPU this is far faster than a body that compares, because the compiler knows the bodies
// "maximum" and "or".
Value Builder::Impl::reduce_extreme(Value x, const Dims& dims, Value init, bool nan_wins,
                                    std::string_view op) {
  const bool spell_out = nan_wins && spell_out_nan(x);
  const Value extreme = owner
                            ->reduce({&x, 1}, {&init, 1}, dims,
                                     [this, op](Builder&, std::span<const Value> in) {
                                       return Values{binary(op, in[0], in[1], kAnything)};
                                     })
                            .front();
  if (!spell_out) return extreme;
  const Value any = owner->reduce_or(owner->compare(x, x, Compare::kNe), dims);
  return owner->select(any, owner->splat(std::numeric_limits<double>::quiet_NaN(), extreme.type()), extreme);
}

Value Builder::reduce_max(Value x, const Dims& dims, bool nan_wins) {
  impl_->use("stablehlo.reduce", x);
  if (dims.empty()) return x;
  return impl_->reduce_extreme(x, dims, lowest(x.dtype()), nan_wins, "stablehlo.maximum");
}

Value Builder::reduce_min(Value x, const Dims& dims, bool nan_wins) {
  impl_->use("stablehlo.reduce", x);
  if (dims.empty()) return x;
  return impl_->reduce_extreme(x, dims, highest(x.dtype()), nan_wins, "stablehlo.minimum");
}

Value Builder::reduce_and(Value x, const Dims& dims) {
  impl_->use("stablehlo.reduce", x);
  impl_->check_dtype("stablehlo.reduce", x, kPredicates | kIntegers);
  return dims.empty() ? x : impl_->reduce_with(x, dims, splat(-1, {x.dtype(), {}}), &Builder::and_);
}

Value Builder::reduce_or(Value x, const Dims& dims) {
  impl_->use("stablehlo.reduce", x);
  impl_->check_dtype("stablehlo.reduce", x, kPredicates | kIntegers);
  return dims.empty() ? x : impl_->reduce_with(x, dims, splat(0, {x.dtype(), {}}), &Builder::or_);
}

Values Builder::reduce_window(std::span<const Value> operands, std::span<const Value> inits,
                              const Window& window, const Region& body) {
  constexpr std::string_view kOp = "stablehlo.reduce_window";
  impl_->use(kOp, operands);
  impl_->use(kOp, inits);
  check_inits(kOp, operands, inits);
  Window full = window;
  const Dims places = windowed(kOp, operands[0].dims(), full);
  std::vector<const TypeEntry*> scalars, results;
  for (size_t i = 0; i < operands.size(); ++i) {
    scalars.push_back(impl_->entry(inits[i]));
    results.push_back(impl_->intern({operands[i].dtype(), places}));
  }
  Impl::Body made = impl_->reducer(kOp, scalars, body);
  return impl_->add(kOp, joined(operands, inits), {&made, 1},
                    Attributes()
                        .ints("window_dimensions", full.sizes)
                        .ints("window_strides", full.strides)
                        .ints("base_dilations", full.base_dilations)
                        .ints("window_dilations", full.window_dilations)
                        .pairs("padding", full.padding),
                    results);
}

Value Builder::select_and_scatter(Value operand, Value source, Value init, const Window& window,
                                  const Region& select, const Region& scatter) {
  constexpr std::string_view kOp = "stablehlo.select_and_scatter";
  impl_->use(kOp, {operand, source, init});
  check_inits(kOp, {&operand, 1}, {&init, 1});
  Window full = window;
  const Type expected{operand.dtype(), windowed(kOp, operand.dims(), full)};
  const auto is_one = [](int64_t dilation) { return dilation == 1; };
  if (!std::all_of(full.base_dilations.begin(), full.base_dilations.end(), is_one) ||
      !std::all_of(full.window_dilations.begin(), full.window_dilations.end(), is_one)) {
    reject(kOp, "dilations must be 1, found ", list_text(full.base_dilations), " and ",
           list_text(full.window_dilations));
  }
  if (source.type() != expected) {
    reject(kOp, "the source must have the type of the windowed operand, ", expected.str(), ", found ",
           source.type().str());
  }
  const TypeEntry* scalar = impl_->entry(init);
  const TypeEntry* predicate = impl_->intern({DType::kPred, {}});
  const std::vector<const TypeEntry*> pair = {scalar, scalar};
  std::vector<Impl::Body> bodies;
  bodies.push_back(impl_->region(kOp, true, pair, select));
  impl_->check_results(kOp, "its select", bodies[0], {&predicate, 1});
  bodies.push_back(impl_->reducer(kOp, {&scalar, 1}, scatter));
  const Values operands = {operand, source, init};
  const TypeEntry* result = impl_->entry(operand);
  return impl_
      ->add(kOp, operands, bodies,
            Attributes()
                .ints("window_dimensions", full.sizes)
                .ints("window_strides", full.strides)
                .pairs("padding", full.padding),
            {&result, 1})
      .front();
}

Values Builder::sort(std::span<const Value> operands, int64_t dim, bool stable, const Region& comparator) {
  constexpr std::string_view kOp = "stablehlo.sort";
  if (operands.empty()) reject(kOp, "there must be at least one operand");
  impl_->use(kOp, operands);
  const Type& first = operands[0].type();
  if (dim < 0 || dim >= first.rank()) reject(kOp, "there is no dimension ", dim, " in ", first.str());
  std::vector<const TypeEntry*> arguments, results;
  for (Value v : operands) {
    if (v.dims() != first.dims) {
      reject(kOp, "operands must have one shape, found ", first.str(), " and ", v.type().str());
    }
    const TypeEntry* scalar = impl_->intern({v.dtype(), {}});
    arguments.insert(arguments.end(), {scalar, scalar});
    results.push_back(impl_->entry(v));
  }
  const TypeEntry* predicate = impl_->intern({DType::kPred, {}});
  Impl::Body made = impl_->region(kOp, true, arguments, comparator);
  impl_->check_results(kOp, "its comparator", made, {&predicate, 1});
  return impl_->add(kOp, operands, {&made, 1},
                    Attributes().number("dimension", dim).flag("is_stable", stable), results);
}

Values Builder::top_k(Value x, int64_t k) {
  constexpr std::string_view kOp = "chlo.top_k";
  impl_->use(kOp, x);
  if (x.dtype() != DType::kF32) reject(kOp, "the operand must be f32, found ", x.type().str());
  if (x.rank() == 0) reject(kOp, "there is no dimension in ", x.type().str());
  if (k < 1 || k > x.dim(x.rank() - 1))
    reject(kOp, "expected k in the last dimension of ", x.type().str(), ", found ", k);
  Dims dims = x.dims();
  dims.back() = k;
  const TypeEntry* const results[] = {impl_->intern({DType::kF32, dims}), impl_->intern({DType::kS32, dims})};
  const Value operands[] = {x};
  return impl_->add(kOp, operands, {}, Attributes().number("k", k), results);
}

}  // namespace sluice::stablehlo
