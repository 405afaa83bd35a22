// For tests: a training step of a small decoder as it is recorded, layer after layer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/stablehlo/builder.h"

namespace sluice::patterns {

// What a decoder is made of, and what one of its layers does otherwise.
struct DecoderOptions {
  int64_t layers = 6;
  int64_t batch = 2, length = 8, heads = 2, head = 8, hidden = 48, classes = 11;
  bool bf16 = false;    // products in bf16, as under autocast
  bool dropout = true;  // keys are run-time numbers, one a call
  int64_t frozen = 0;   // the number of first layers without a gradient
  int64_t other = -1;   // this layer's activation is another one; -1: none
  int64_t width() const { return heads * head; }
  int64_t rows() const { return batch * length; }
};

// Builds the step: forward, backward and AdamW for each parameter. The parameters, their first and their
// second moments are donated.
class Decoder {
 public:
  using Builder = stablehlo::Builder;
  using Dims = stablehlo::Dims;
  using DType = stablehlo::DType;
  using Type = stablehlo::Type;
  using Value = stablehlo::Value;
  using Values = stablehlo::Values;

  Decoder(Builder& builder, const DecoderOptions& options) : b(builder), o(options) { step(); }

  Values results;
  std::vector<stablehlo::Donation> donations;
  std::vector<Type> arguments;

 private:
  static constexpr size_t kOfLayer = 12;
  struct Layer {
    Value p[kOfLayer];  // weight and bias of: norm 1, q k v, projection, norm 2, up, down
    Value grad[kOfLayer];
    Value x, norm1[2], q, k, v, chances, mask1, middle, norm2[2], up, mask2;
    Value in[4], weight[4];  // of the products, in their type
  };

  Value parameter(const Type& type) {
    arguments.push_back(type);
    donations.push_back({});
    return b.parameter(type);
  }
  Value f32(const Dims& dims) { return parameter({DType::kF32, dims}); }
  Value like(double number, Value x) { return b.splat(number, x.type()); }
  Value over_rows(Value row, const Dims& dims) {
    return b.broadcast_in_dim(row, dims, {static_cast<int64_t>(dims.size()) - 1});
  }
  Value over_columns(Value column, const Dims& dims) {
    Dims to;
    for (size_t d = 0; d + 1 < dims.size(); ++d) to.push_back(static_cast<int64_t>(d));
    return b.broadcast_in_dim(column, dims, to);
  }
  Value wide(Value x) { return b.convert(x, DType::kF32); }
  Value narrow(Value x) { return o.bf16 ? b.convert(x, DType::kBF16) : x; }
  Value mean(Value x) {
    const Value sum = b.reduce_sum(x, {x.rank() - 1});
    return b.multiply(sum, like(1.0 / static_cast<double>(x.dims().back()), sum));
  }

  Value normalize(Layer& l, Value x, Value (&kept)[2], size_t p) {
    kept[0] = mean(x);
    const Value centred = b.subtract(x, over_columns(kept[0], x.dims()));
    const Value variance = mean(b.multiply(centred, centred));
    kept[1] = b.rsqrt(b.add(variance, like(1e-5, variance)));
    const Value y = b.multiply(centred, over_columns(kept[1], x.dims()));
    return b.add(b.multiply(y, over_rows(l.p[p], x.dims())), over_rows(l.p[p + 1], x.dims()));
  }

  Value normalize_gradient(Layer& l, Value g, Value x, const Value (&kept)[2], size_t p) {
    const Value rstd = over_columns(kept[1], x.dims());
    const Value y = b.multiply(b.subtract(x, over_columns(kept[0], x.dims())), rstd);
    const Value gy = b.multiply(g, over_rows(l.p[p], x.dims()));
    l.grad[p] = b.reduce_sum(b.multiply(g, y), {0});
    l.grad[p + 1] = b.reduce_sum(g, {0});
    const Value c1 = over_columns(mean(gy), x.dims()), c2 = over_columns(mean(b.multiply(gy, y)), x.dims());
    return b.multiply(b.subtract(b.subtract(gy, c1), b.multiply(y, c2)), rstd);
  }

  // The products are numbered 0: q k v, 1: projection, 2: up, 3: down.
  static size_t weight_of(size_t product) { return product == 0 ? 2 : product == 1 ? 4 : 2 * product + 4; }

  Value linear(Layer& l, Value x, size_t product) {
    const size_t p = weight_of(product);
    l.in[product] = narrow(x);
    l.weight[product] = narrow(l.p[p]);
    const Value y = b.dot_general(l.in[product], b.transpose(l.weight[product], {1, 0}),
                                  {.lhs_contract = {1}, .rhs_contract = {0}});
    return b.add(y, over_rows(narrow(l.p[p + 1]), y.dims()));
  }

  Value linear_gradient(Layer& l, Value g, size_t product) {
    const size_t p = weight_of(product);
    const Value x = b.dot_general(g, l.weight[product], {.lhs_contract = {1}, .rhs_contract = {0}});
    const Value w =
        b.dot_general(b.transpose(g, {1, 0}), l.in[product], {.lhs_contract = {1}, .rhs_contract = {0}});
    l.grad[p] = wide(w);
    l.grad[p + 1] = wide(b.reduce_sum(g, {0}));
    return x;
  }

  Value drop(Value x, Value& mask) {
    if (!o.dropout) return x;
    const Type word{DType::kU32, x.dims()}, one{DType::kU64, {1}};
    const Value slot = b.reshape(b.slice(keys_, {next_key_}, {next_key_ + 1}), {});
    ++next_key_;
    const Value state[] = {b.reshape(b.convert(slot, DType::kU64), {1}), b.splat(0, one)};
    const Value key = b.reshape(b.slice_dim(b.concatenate(state, 0), 0, 0, 1), {});
    Value place = b.add(b.multiply(b.iota(word, 0), b.splat(x.dim(1), word)), b.iota(word, 1));
    place = b.xor_(place, b.broadcast(b.convert(key, DType::kU32), x.dims()));
    for (const int64_t factor : {0x7feb352d, 0x046ca68b}) {
      place = b.multiply(place, b.splat(factor, word));
      place = b.xor_(place, b.shift_right_logical(place, b.splat(15, word)));
    }
    mask = b.compare(place, b.splat(int64_t{0x20000000}, word), stablehlo::Compare::kGe);
    return dropped(x, mask);
  }
  Value dropped(Value x, Value mask) {
    if (!mask) return x;
    return b.multiply(b.multiply(x, b.convert(mask, x.dtype())), like(8.0 / 7, x));
  }

  // [rows, width] from and to [batch, heads, length, head].
  Value by_heads(Value x) {
    return b.transpose(b.reshape(x, {o.batch, o.length, o.heads, o.head}), {0, 2, 1, 3});
  }
  Value by_rows(Value x) { return b.reshape(b.transpose(x, {0, 2, 1, 3}), {o.rows(), o.width()}); }
  Value product(Value a, int64_t of_a, Value c, int64_t of_c) {
    return b.dot_general(
        a, c, {.lhs_batch = {0, 1}, .rhs_batch = {0, 1}, .lhs_contract = {of_a}, .rhs_contract = {of_c}});
  }

  Value attention(Layer& l, Value qkv) {
    const int64_t e = o.width();
    l.q = by_heads(b.slice_dim(qkv, 1, 0, e));
    l.k = by_heads(b.slice_dim(qkv, 1, e, 2 * e));
    l.v = by_heads(b.slice_dim(qkv, 1, 2 * e, 3 * e));
    const Value scores = wide(product(l.q, 3, l.k, 3));
    const Value scaled = b.multiply(scores, like(0.35, scores));
    const Value largest = over_columns(b.reduce_max(scaled, {3}), scaled.dims());
    const Value powers = b.exp(b.subtract(scaled, largest));
    l.chances = narrow(b.divide(powers, over_columns(b.reduce_sum(powers, {3}), powers.dims())));
    return by_rows(product(l.chances, 3, l.v, 2));
  }

  Value attention_gradient(Layer& l, Value g) {
    const Value by_out = by_heads(g);
    const Value by_v = product(l.chances, 2, by_out, 2);
    const Value p = wide(l.chances), by_p = wide(product(by_out, 3, l.v, 3));
    const Value inner = over_columns(b.reduce_sum(b.multiply(by_p, p), {3}), p.dims());
    const Value by_s = narrow(b.multiply(b.multiply(p, b.subtract(by_p, inner)), like(0.35, p)));
    const Value parts[] = {by_rows(product(by_s, 3, l.k, 2)), by_rows(product(by_s, 2, l.q, 2)),
                           by_rows(by_v)};
    return b.concatenate(parts, 1);
  }

  Value forward(Layer& l, Value x, int64_t number) {
    l.x = x;
    Value y = linear(l, normalize(l, x, l.norm1, 0), 0);
    y = drop(wide(linear(l, attention(l, y), 1)), l.mask1);
    l.middle = b.add(x, y);
    l.up = linear(l, normalize(l, l.middle, l.norm2, 6), 2);
    const Value h = number == o.other ? b.logistic(l.up) : b.tanh(l.up);
    y = drop(wide(linear(l, h, 3)), l.mask2);
    return b.add(l.middle, y);
  }

  Value backward(Layer& l, Value g, int64_t number) {
    Value by_h = linear_gradient(l, narrow(dropped(g, l.mask2)), 3);
    const Value h = number == o.other ? b.logistic(l.up) : b.tanh(l.up), one = like(1, h);
    const Value slope =
        number == o.other ? b.multiply(h, b.subtract(one, h)) : b.subtract(one, b.multiply(h, h));
    by_h = linear_gradient(l, b.multiply(by_h, slope), 2);
    g = b.add(g, normalize_gradient(l, wide(by_h), l.middle, l.norm2, 6));
    Value by_y = linear_gradient(l, narrow(dropped(g, l.mask1)), 1);
    by_y = linear_gradient(l, attention_gradient(l, by_y), 0);
    return b.add(g, normalize_gradient(l, wide(by_y), l.x, l.norm1, 0));
  }

  void update(Value p, Value g) {
    const Value m = f32(p.dims()), v = f32(p.dims());
    const auto mix = [&](Value old, Value fresh, double rate) {
      return b.add(b.multiply(old, like(rate, old)), b.multiply(fresh, like(1 - rate, fresh)));
    };
    const Value m1 = mix(m, g, 0.9), v1 = mix(v, b.multiply(g, g), 0.99);
    const Value root = b.add(b.sqrt(v1), like(1e-4, v1));
    const Value kept = b.multiply(p, like(0.999, p));
    const Value made[] = {b.subtract(kept, b.multiply(b.divide(m1, root), like(0.01, m1))), m1, v1};
    for (size_t i = 0; i < 3; ++i) {
      const auto number = static_cast<size_t>(i == 0 ? place_of(p) : donations.size() - 3 + i);
      donations[number] = {stablehlo::Donation::Kind::kAliasOutput, static_cast<int32_t>(results.size())};
      results.push_back(made[i]);
    }
  }
  size_t place_of(Value p) const {
    for (size_t i = 0; i < trained_.size(); ++i)
      if (trained_[i].first == p) return trained_[i].second;
    return 0;
  }
  Value trained(const Dims& dims) {
    const Value p = f32(dims);
    trained_.emplace_back(p, donations.size() - 1);
    return p;
  }

  void step() {
    const int64_t e = o.width(), n = o.rows();
    const Value words = parameter({DType::kS32, {n}}), target = f32({n, o.classes});
    keys_ = parameter({DType::kS64, {2 * o.layers + 1}});
    const Value table = trained({o.classes, e}), head = trained({o.classes, e});
    const Dims dims[kOfLayer] = {{e}, {e}, {3 * e, e},    {3 * e},    {e, e},        {e},
                                 {e}, {e}, {o.hidden, e}, {o.hidden}, {e, o.hidden}, {e}};
    std::vector<Layer> layers(static_cast<size_t>(o.layers));
    for (Layer& l : layers)
      for (size_t i = 0; i < kOfLayer; ++i) l.p[i] = trained(dims[i]);

    const Value places = b.broadcast_in_dim(words, {n, o.classes}, {0});
    const Value chosen =
        b.convert(b.compare(places, b.iota(places.type(), 1), stablehlo::Compare::kEq), DType::kF32);
    const stablehlo::DotDims rows_of{.lhs_contract = {1}, .rhs_contract = {0}};
    Value mask;
    Value x = drop(b.dot_general(chosen, table, rows_of), mask);
    for (size_t i = 0; i < layers.size(); ++i) x = forward(layers[i], x, static_cast<int64_t>(i));
    const Value logits = b.dot_general(x, head, {.lhs_contract = {1}, .rhs_contract = {1}});
    const Value error = b.subtract(logits, target);
    const Value loss = b.reduce_sum(b.multiply(error, error), {0, 1});
    const Value by_head = b.dot_general(error, x, {.lhs_contract = {0}, .rhs_contract = {0}});
    Value g = b.dot_general(error, head, rows_of);
    for (size_t i = layers.size(); i-- > static_cast<size_t>(o.frozen);)
      g = backward(layers[i], g, static_cast<int64_t>(i));
    if (o.frozen == 0) {
      const Value by_table = dropped(g, mask);
      update(table, b.dot_general(chosen, by_table, {.lhs_contract = {0}, .rhs_contract = {0}}));
    }
    update(head, by_head);
    for (size_t i = static_cast<size_t>(o.frozen); i < layers.size(); ++i)
      for (size_t p = 0; p < kOfLayer; ++p) update(layers[i].p[p], layers[i].grad[p]);
    results.push_back(loss);
  }

  Builder& b;
  DecoderOptions o;
  Value keys_;
  int64_t next_key_ = 0;
  std::vector<std::pair<Value, size_t>> trained_;  // parameters and their places among the arguments
};

}  // namespace sluice::patterns
