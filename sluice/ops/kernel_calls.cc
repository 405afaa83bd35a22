#include "sluice/ops/kernel_calls.h"

#include <optional>
#include <utility>

#include "sluice/ops/fusions.h"
#include "sluice/ops/kernel_operands.h"

namespace sluice::ops {
namespace {

stablehlo::CallAttributes attributes_of(const stablehlo::ConvolutionCall& call) {
  return {{"kind", static_cast<int64_t>(call.kind)},
          {"stride", call.stride},
          {"padding", call.padding},
          {"dilation", call.dilation},
          {"groups", call.groups}};
}

bool takes_pooling(Emit& e, Value x, const PoolingWindows& windows) {
  const bool batched = x.rank() == static_cast<int64_t>(windows.kernel.size()) + 2;
  return e.kernels() != nullptr && batched && all_f32({x}) && !is_small(x);
}

stablehlo::CallAttributes attributes_of(const PoolingWindows& windows) {
  return {{"kernel", windows.kernel},
          {"stride", windows.stride},
          {"padding", windows.padding},
          {"dilation", windows.dilation}};
}

// A call on tensors that are row-major.
Values call_on_rows(Emit& e, std::string_view target, const Values& operands,
                    const std::vector<Type>& results, const stablehlo::CallAttributes& attributes = {}) {
  return call_in_layout(e, target, operands, results, attributes, rows_layout);
}

// A call of one result on tensors that are row-major.
Value call_on_rows(Emit& e, std::string_view target, const Values& operands, const Type& result,
                   const stablehlo::CallAttributes& attributes = {}, bool in_place = false) {
  return call_in_layout(e, target, operands, {result}, attributes, rows_layout, {.in_place = in_place})[0];
}

bool takes_attention(Emit& e, const AttentionOperands& in) {
  return e.kernels() != nullptr && all_f32({in.q, in.k, in.v}) && !is_small(in.q) &&
         e.kernels()->has({.batch = in.q.dim(0),
                           .heads = in.q.dim(1),
                           .queries = in.q.dim(2),
                           .keys = in.k.dim(2),
                           .size = in.q.dim(3)});
}

// Attention's calls take tensors with positions before heads, as models make them from [batch, positions,
// heads size], so that XLA drops both transposes: theirs and this one. (A layout that says the same leaves
// copies behind.) Also the way back.
const Dims kPositionsFirst = {0, 2, 1, 3};
Dims positions_first(const Dims& dims) {
  return dims.size() == 4 ? Dims{dims[0], dims[2], dims[1], dims[3]} : dims;
}
Value positions_first(Builder& b, Value x) { return x.rank() == 4 ? b.transpose(x, kPositionsFirst) : x; }

// The tensor [batch, positions, 3 heads size] whose parts q, k and v are, as one linear layer makes them.
// Else empty.
Value together(Builder& b, const AttentionOperands& in) {
  const int64_t heads = in.q.dim(1), positions = in.q.dim(2), size = in.q.dim(3);
  const Dims all = {in.q.dim(0), positions, 3 * heads, size};
  Value whole;
  int64_t first = 0;
  for (const Value part : {in.q, in.k, in.v}) {
    const Value rows = b.transposed_from(part, kPositionsFirst);
    Value from = rows ? b.sliced_from(rows, {0, 0, first, 0}) : Value();
    if (!from || from.dims() != all || rows.dim(2) != heads) return {};
    for (Value before = from; before; before = b.reshaped_from(from)) from = before;
    if (whole && from != whole) return {};
    whole = from;
    first += heads;
  }
  return b.reshape(whole, {all[0], positions, 3 * heads * size});
}

Values call_attention(Emit& e, std::string_view target, Values operands, const AttentionOperands& in,
                      std::vector<Type> results) {
  for (Value& operand : operands) operand = positions_first(e.b, operand);
  for (Type& result : results) result.dims = positions_first(result.dims);
  Values made =
      call_on_rows(e, target, operands, results, {{"causal", int64_t{in.causal}}, {"scale", in.scale}});
  for (Value& value : made) value = positions_first(e.b, value);
  return made;
}

// `matrix`: empty, or like the result. `flag`: an attribute that is 1, if there is one.
Value call_product(Emit& e, const Product& product, const Type& result, Value matrix = {},
                   const char* flag = nullptr) {
  Values operands = {product.a, product.b};
  stablehlo::CallAttributes attributes = {{"transposed_a", int64_t{product.transposed_a}},
                                          {"transposed_b", int64_t{product.transposed_b}}};
  if (product.bias) operands.push_back(product.bias);
  if (matrix) operands.push_back(matrix);
  if (flag != nullptr) attributes.push_back({flag, int64_t{1}});
  return call_on_rows(e, stablehlo::ProductCall::kTarget, operands, result, attributes);
}

// The matrix that x is, or that it was in other dims, where it is noted as a product and read only here: what
// takes its place multiplies once more.
std::optional<std::pair<Value, Product>> product_alone(Emit& e, Value x) {
  if (e.fusions() == nullptr) return {};
  const Fusions& notes = *e.fusions();
  for (; x; x = e.b.reshaped_from(x)) {
    if (const auto readers = notes.readers.find(x.id());
        readers != notes.readers.end() && readers->second > 1)
      return {};
    if (const auto found = notes.products.find(x.id()); found != notes.products.end())
      return std::pair(x, found->second);
  }
  return {};
}

// Whether there is none, or one of f32 with these dims.
bool fits(Value parameter, const Dims& dims) {
  return !parameter || parameter.type() == Type{DType::kF32, dims};
}

// Of what layer normalization keeps: one number for each row of x.
Type type_of_rows(Value x, const Dims& columns) {
  Dims dims = x.dims();
  std::fill(dims.end() - static_cast<int64_t>(columns.size()), dims.end(), 1);
  return {DType::kF32, dims};
}

}  // namespace

Value kernel_convolution(Emit& e, const stablehlo::ConvolutionCall& call, Value first, Value second) {
  using Kind = stablehlo::ConvolutionCall::Kind;
  if (e.kernels() == nullptr || !all_f32({first, second}) || !e.kernels()->has(call)) return {};
  const Dims activation = channels_last_layout(first.rank()), weight = rows_layout(first.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, call.kind == Kind::kWeights ? activation : weight};
  options.result_layouts = {call.kind == Kind::kWeights ? weight : activation};
  const Dims& result = call.kind == Kind::kForward ? call.y : (call.kind == Kind::kData ? call.x : call.w);
  const Value operands[] = {first, second};
  return e.b.custom_call(stablehlo::ConvolutionCall::kTarget, operands, {{DType::kF32, result}},
                         attributes_of(call), options)[0];
}

Values kernel_convolution_backward(Emit& e, stablehlo::ConvolutionCall call, Value x, Value w, Value grad) {
  call.kind = stablehlo::ConvolutionCall::Kind::kBackward;
  if (e.kernels() == nullptr || !all_f32({x, w, grad}) || !e.kernels()->has(call)) return {};
  const Dims activation = channels_last_layout(x.rank()), weight = rows_layout(x.rank());
  stablehlo::CallOptions options{.pure = true};
  options.operand_layouts = {activation, weight, activation};
  options.result_layouts = {activation, weight};
  const Value operands[] = {x, w, grad};
  return e.b.custom_call(stablehlo::ConvolutionCall::kTarget, operands, {x.type(), w.type()},
                         attributes_of(call), options);
}

Value kernel_product(Emit& e, Value a, Value b) {
  const int64_t rank = a.rank();
  const bool fit = a.dim(rank - 1) == b.dim(rank - 2) && (rank == 2 || a.dim(0) == b.dim(0));
  if (e.kernels() == nullptr || !all_f32({a, b}) || !fit) return {};
  stablehlo::ProductCall call{.m = a.dim(rank - 2), .k = a.dim(rank - 1), .n = b.dim(rank - 1)};
  Dims result = {call.m, call.n};
  if (rank == 3) result.insert(result.begin(), call.batch = a.dim(0));
  Value operands[] = {a, b};
  if (const Value swapped = e.b.with_rows_together(a)) operands[0] = swapped, call.transposed_a = true;
  if (const Value swapped = e.b.with_rows_together(b)) operands[1] = swapped, call.transposed_b = true;
  if (!e.kernels()->has(call)) return {};
  const Product product{operands[0], operands[1], call.transposed_a, call.transposed_b, {}};
  const Value made = call_product(e, product, {DType::kF32, result});
  if (e.fusions() != nullptr) e.fusions()->products.emplace(made.id(), product);
  return made;
}

Value kernel_added(Emit& e, Value x, Value other) {
  auto found = product_alone(e, x);
  if (!found) return {};
  auto& [matrix, product] = *found;
  if (matrix.rank() != 2 || other.dtype() != DType::kF32) return {};
  const int64_t columns = matrix.dim(1);
  if (other.dims() == Dims{columns} && x.dims().back() == columns && !product.bias) {
    product.bias = other;
    const Value made = call_product(e, product, matrix.type());
    e.fusions()->products.emplace(made.id(), product);
    return e.b.reshape(made, x.dims());
  }
  if (other.dims() != x.dims()) return {};
  return e.b.reshape(call_product(e, product, matrix.type(), e.b.reshape(other, matrix.dims())), x.dims());
}

Value kernel_rectified_product(Emit& e, Value x) {
  const auto found = product_alone(e, x);
  if (!found || !found->second.bias) return {};
  return e.b.reshape(call_product(e, found->second, found->first.type(), {}, "rectified"), x.dims());
}

Value kernel_gated_product(Emit& e, Value x, Value gate) {
  const auto found = product_alone(e, x);
  if (!found || found->second.bias || found->first.rank() != 2 || gate.type() != x.type()) return {};
  const auto& [matrix, product] = *found;
  return e.b.reshape(call_product(e, product, matrix.type(), e.b.reshape(gate, matrix.dims()), "gated"),
                     x.dims());
}

Value sum_over_dims(Emit& e, Value x, const Dims& dims) {
  // What the compiler makes of such a sum goes down one column after the other. With few rows that is as
  // good.
  constexpr int64_t kFewestRows = 16;
  const auto leading = static_cast<int64_t>(dims.size());
  int64_t rows = 1;
  bool first_ones = leading < x.rank();
  for (int64_t d = 0; d < leading; ++d) {
    first_ones &= std::find(dims.begin(), dims.end(), d) != dims.end();
    rows *= first_ones ? x.dim(d) : 1;
  }
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x) || !first_ones || rows < kFewestRows)
    return e.b.reduce_sum(x, dims);
  const Dims kept(x.dims().begin() + leading, x.dims().end());
  return call_on_rows(e, stablehlo::kSumOfRowsTarget, {x}, {DType::kF32, kept});
}

Value kernel_softmax(Emit& e, Value x, int64_t dim, bool logarithm) {
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x) || dim != x.rank() - 1) return {};
  return call_on_rows(e, stablehlo::kSoftmaxTarget, {x}, x.type(), {{"logarithm", int64_t{logarithm}}},
                      /*in_place=*/true);
}

Value kernel_softmax_gradient(Emit& e, Value grad, Value output, int64_t dim, bool logarithm) {
  if (e.kernels() == nullptr || !all_f32({grad, output}) || is_small(grad) || dim != grad.rank() - 1)
    return {};
  return call_on_rows(e, stablehlo::kSoftmaxGradientTarget, {grad, output}, grad.type(),
                      {{"logarithm", int64_t{logarithm}}}, /*in_place=*/true);
}

Value kernel_gelu(Emit& e, Value x) {
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x)) return {};
  return call_on_rows(e, stablehlo::kGeluTarget, {x}, x.type());
}

Value kernel_gelu_gradient(Emit& e, Value grad, Value x) {
  if (e.kernels() == nullptr || !all_f32({grad, x}) || is_small(x) || grad.type() != x.type()) return {};
  return call_on_rows(e, stablehlo::kGeluGradientTarget, {grad, x}, x.type());
}

Values kernel_layer_norm(Emit& e, Value x, const Dims& columns, Value weight, Value bias) {
  if (e.kernels() == nullptr || !all_f32({x}) || is_small(x)) return {};
  if (!fits(weight, columns) || !fits(bias, columns)) return {};
  const Type parameters{DType::kF32, columns}, of_rows = type_of_rows(x, columns);
  Values operands = {x, e.scalar("eps", DType::kF32)};
  if (weight || bias) operands.push_back(weight ? weight : e.b.splat(1, parameters));
  if (bias) operands.push_back(bias);
  return call_on_rows(e, stablehlo::kLayerNormTarget, operands,
                      std::vector<Type>{x.type(), of_rows, of_rows});
}

Values kernel_layer_norm_gradient(Emit& e, Value grad, Value x, Value mean, Value inverse,
                                  const Dims& columns, Value weight, bool of_parameters) {
  if (e.kernels() == nullptr || !all_f32({grad, x}) || is_small(x)) return {};
  const Type of_rows = type_of_rows(x, columns);
  if (mean.type() != of_rows || inverse.type() != of_rows || !fits(weight, columns)) return {};
  Values operands = {grad, x, mean, inverse};
  if (weight) operands.push_back(weight);
  std::vector<Type> results = {x.type()};
  if (of_parameters) results.insert(results.end(), 2, {DType::kF32, columns});
  // Not in place: XLA would copy the gradient before the call.
  return call_on_rows(e, stablehlo::kLayerNormGradientTarget, operands, results);
}

Values kernel_attention(Emit& e, const AttentionOperands& in) {
  if (!takes_attention(e, in)) return {};
  const Value whole = together(e.b, in);
  const Dims rows(in.q.dims().begin(), in.q.dims().begin() + 3);
  return call_attention(e, stablehlo::AttentionCall::kTarget,
                        whole ? Values{whole} : Values{in.q, in.k, in.v}, in,
                        {in.q.type(), {DType::kF32, rows}});
}

Values kernel_attention_gradient(Emit& e, const AttentionOperands& in, Value grad, Value output,
                                 Value logsumexp) {
  if (!takes_attention(e, in) || !all_f32({grad, output, logsumexp})) return {};
  constexpr std::string_view kTarget = stablehlo::AttentionCall::kGradientTarget;
  const Value whole = together(e.b, in);
  if (!whole)
    return call_attention(e, kTarget, {grad, in.q, in.k, in.v, output, logsumexp}, in,
                          {in.q.type(), in.k.type(), in.v.type()});
  const Value gradient = call_attention(e, kTarget, {grad, whole, output, logsumexp}, in, {whole.type()})[0];
  const int64_t columns = whole.dim(2) / 3;
  Values parts;
  for (int64_t first = 0; first < whole.dim(2); first += columns) {
    const Value part = e.b.slice_dim(gradient, 2, first, first + columns);
    parts.push_back(positions_first(e.b, e.b.reshape(part, positions_first(in.q.dims()))));
  }
  return parts;
}

Value kernel_max_pooling(Emit& e, Value x, const Dims& out, const PoolingWindows& windows) {
  if (!takes_pooling(e, x, windows)) return {};
  Dims result(x.dims().begin(), x.dims().begin() + 2);
  result.insert(result.end(), out.begin(), out.end());
  return call_on_activations(e, stablehlo::kMaxPoolingTarget, {x}, {{DType::kF32, result}},
                             attributes_of(windows))[0];
}

Value kernel_max_pooling_gradient(Emit& e, Value x, Value grad, const PoolingWindows& windows) {
  if (!takes_pooling(e, x, windows) || !all_f32({grad})) return {};
  return call_on_activations(e, stablehlo::kMaxPoolingGradientTarget, {x, grad}, {x.type()},
                             attributes_of(windows))[0];
}

}  // namespace sluice::ops
