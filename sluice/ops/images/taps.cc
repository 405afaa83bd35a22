#include "sluice/ops/images/taps.h"

#include <algorithm>

#include "sluice/ops/indexing/indexing.h"

namespace sluice::ops {
namespace {

Value weight_table(Builder& b, const std::vector<double>& weights, const Dims& dims, DType dtype) {
  if (dtype == DType::kF64) return b.constant(Type{dtype, dims}, weights.data());
  const std::vector<float> rounded(weights.begin(), weights.end());
  return to(b, b.constant(Type{DType::kF32, dims}, rounded.data()), dtype);
}

}  // namespace

Taps transposed(const Taps& taps, int64_t inputs) {
  Taps result(static_cast<size_t>(inputs));
  for (size_t i = 0; i < taps.size(); ++i)
    for (const Tap& tap : taps[i])
      result[static_cast<size_t>(tap.position)].push_back({static_cast<int64_t>(i), tap.weight});
  return result;
}

Value apply_taps(Builder& b, Value x, int64_t dim, const Taps& taps) {
  size_t width = 0;
  bool weighted = false;
  for (const auto& row : taps) {
    width = std::max(width, row.size());
    for (const Tap& tap : row) weighted = weighted || tap.weight != 1;
  }
  Dims dims = x.dims();
  dims[static_cast<size_t>(dim)] = static_cast<int64_t>(taps.size());
  if (width == 0 || x.type().numel() == 0) return zeros(b, Type{x.dtype(), dims});

  std::vector<int32_t> where;
  std::vector<double> weights;
  std::vector<uint8_t> used;  // rows with fewer taps are padded with unused taps
  for (const auto& row : taps)
    for (size_t k = 0; k < width; ++k) {
      used.push_back(k < row.size());
      where.push_back(k < row.size() ? static_cast<int32_t>(row[k].position) : 0);
      weights.push_back(k < row.size() ? row[k].weight : 0);
    }
  const Dims table = {static_cast<int64_t>(taps.size()), static_cast<int64_t>(width)};
  Value read = take_along(b, x, dim, b.constant(Type{DType::kS32, table}, where.data()));
  if (weighted) {
    const Value weight = weight_table(b, weights, table, x.dtype());
    read = b.multiply(read, b.broadcast_in_dim(weight, read.dims(), {dim, dim + 1}));
  }
  if (std::count(used.begin(), used.end(), 0) > 0) {
    const Value mask =
        b.broadcast_in_dim(b.constant(Type{DType::kPred, table}, used.data()), read.dims(), {dim, dim + 1});
    read = b.select(mask, read, zeros(b, read.type()));
  }
  if (width == 1) return b.reshape(read, dims);
  return b.reduce_sum(read, {dim + 1});
}

Taps adaptive_windows(int64_t inputs, int64_t outputs) {
  Taps taps(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t start = i * inputs / outputs, end = ((i + 1) * inputs + outputs - 1) / outputs;
    for (int64_t j = start; j < end; ++j) taps[static_cast<size_t>(i)].push_back({j, 1});
  }
  return taps;
}

}  // namespace sluice::ops
