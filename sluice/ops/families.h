// The families of rows, one file each. Only what joins or lists them includes this: a new family changes
// nothing for the others, which see rows in row.h.
#pragma once

#include <span>

#include "sluice/ops/row.h"

namespace sluice::ops {

std::span<const Row> pointwise_rows();
std::span<const Row> polynomial_rows();
std::span<const Row> activation_rows();
std::span<const Row> compare_rows();
std::span<const Row> reduce_rows();
std::span<const Row> matmul_rows();
std::span<const Row> float8_rows();
std::span<const Row> linear_algebra_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pooling_rows();
std::span<const Row> normalization_rows();
std::span<const Row> softmax_rows();
std::span<const Row> attention_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> lbfgs_rows();
std::span<const Row> loss_rows();
std::span<const Row> index_rows();
std::span<const Row> shape_rows();
std::span<const Row> view_rows();
std::span<const Row> create_rows();
std::span<const Row> random_rows();
std::span<const Row> distance_rows();
std::span<const Row> quantize_rows();
std::span<const Row> resample_rows();
std::span<const Row> patches_rows();
std::span<const Row> complex_rows();
std::span<const Row> fft_rows();
std::span<const Row> collective_rows();

}  // namespace sluice::ops
