#include "case.h"

namespace sluice::stablehlo::testing {
namespace {

size_t at(std::initializer_list<int64_t> index, const Dims& dims) {
  int64_t flat = 0;
  size_t i = 0;
  for (int64_t x : index) flat = flat * dims[i++] + x;
  return static_cast<size_t>(flat);
}

// out[n, i, j] = sum over k of a[n, i, k] b[n, k, j].
std::vector<double> batched_product(const std::vector<double>& a, const std::vector<double>& b, int64_t n,
                                    int64_t m, int64_t k, int64_t p) {
  std::vector<double> out;
  for (int64_t s = 0; s < n; ++s) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < p; ++j) {
        double total = 0;
        for (int64_t l = 0; l < k; ++l) total += a[at({s, i, l}, {n, m, k})] * b[at({s, l, j}, {n, k, p})];
        out.push_back(total);
      }
    }
  }
  return out;
}

// A convolution of NCHW with OIHW by its definition: the input is spread by the left dilation and padded with
// zeros.
std::vector<double> plain_convolution(const std::vector<double>& x, const Dims& xd,
                                      const std::vector<double>& w, const Dims& wd,
                                      const ConvolutionWindow& window, Dims& out_dims) {
  const auto extent = [&](size_t i) {
    const int64_t spread =
        (xd[i + 2] - 1) * window.lhs_dilation[i] + 1 + window.padding[i].first + window.padding[i].second;
    return (spread - (wd[i + 2] - 1) * window.rhs_dilation[i] - 1) / window.strides[i] + 1;
  };
  const int64_t groups = window.feature_groups, out_channels = wd[0], out_per_group = out_channels / groups;
  out_dims = {xd[0], out_channels, extent(0), extent(1)};
  std::vector<double> out;
  const auto input = [&](int64_t n, int64_t c, int64_t y, int64_t z) {
    y -= window.padding[0].first;
    z -= window.padding[1].first;
    const int64_t dy = window.lhs_dilation[0], dz = window.lhs_dilation[1];
    if (y < 0 || z < 0 || y % dy != 0 || z % dz != 0 || y / dy >= xd[2] || z / dz >= xd[3]) return 0.0;
    return x[at({n, c, y / dy, z / dz}, xd)];
  };
  for (int64_t n = 0; n < xd[0]; ++n) {
    for (int64_t o = 0; o < out_channels; ++o) {
      for (int64_t y = 0; y < out_dims[2]; ++y) {
        for (int64_t z = 0; z < out_dims[3]; ++z) {
          double total = 0;
          for (int64_t c = 0; c < wd[1]; ++c) {
            for (int64_t i = 0; i < wd[2]; ++i) {
              for (int64_t j = 0; j < wd[3]; ++j) {
                const bool flip = !window.reversal.empty() && window.reversal[0];
                total += w[at({o, c, flip ? wd[2] - 1 - i : i, flip ? wd[3] - 1 - j : j}, wd)] *
                         input(n, o / out_per_group * wd[1] + c,
                               y * window.strides[0] + i * window.rhs_dilation[0],
                               z * window.strides[1] + j * window.rhs_dilation[1]);
              }
            }
          }
          out.push_back(total);
        }
      }
    }
  }
  return out;
}

ConvolutionDims nchw() {
  ConvolutionDims dims;
  dims.input_spatial = dims.output_spatial = dims.kernel_spatial = {2, 3};
  return dims;
}

Case dots() {
  const auto a = noise(12, 1), b = noise(24, 2), x = noise(12, 3);
  Case c{"dots", {{f32({2, 2, 3}), a}, {f32({2, 3, 4}), b}, {f32({4, 3}), x}}, {}, {}, 1e-6, 1, {}};
  c.build = [](Builder& b, const Values& p) {
    Values out = {b.dot_general(p[0], p[1], {{0}, {0}, {2}, {1}})};
    b.set_precision(Precision::kHighest);
    out.push_back(b.dot_general(p[2], p[2], {{}, {}, {1}, {1}}));
    b.set_precision(Precision::kDefault);
    out.push_back(b.dot_general(p[2], p[2], {{}, {}, {0, 1}, {0, 1}}));
    const Value low = b.convert(p[2], DType::kBF16);
    out.push_back(b.dot_general(low, low, {{}, {}, {1}, {1}}, DType::kF32));
    const Value row = b.reshape(b.slice_dim(p[2], 0, 0, 1), {3});
    out.push_back(b.dot_general(row, row, {}));
    return out;
  };
  c.expected.push_back(batched_product(a, b, 2, 2, 3, 4));
  std::vector<double> transposed(12), outer;
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 3; ++j) transposed[at({j, i}, {3, 4})] = x[at({i, j}, {4, 3})];
  }
  c.expected.push_back(batched_product(x, transposed, 1, 4, 3, 4));
  double squares = 0;
  for (double v : x) squares += v * v;
  c.expected.push_back({squares});
  c.expected.push_back(c.expected[1]);  // the numbers are multiples of 1/64 below 1: bf16 holds them
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) outer.push_back(x[static_cast<size_t>(i)] * x[static_cast<size_t>(j)]);
  }
  c.expected.push_back(outer);
  return c;
}

Case convolutions() {
  const Dims xd = {2, 4, 5, 6}, wd = {6, 4, 3, 2}, grouped = {8, 2, 2, 2};
  const auto x = noise(2 * 4 * 5 * 6, 4), w = noise(6 * 4 * 3 * 2, 5), g = noise(8 * 2 * 2 * 2, 6);
  ConvolutionWindow plain;
  plain.strides = plain.lhs_dilation = plain.rhs_dilation = {1, 1};
  plain.padding = {{0, 0}, {0, 0}};
  ConvolutionWindow odd = plain;
  odd.strides = {2, 1};
  odd.padding = {{1, 2}, {0, 3}};
  odd.rhs_dilation = {1, 2};
  ConvolutionWindow transposed = plain;
  transposed.lhs_dilation = {2, 3};
  transposed.padding = {{1, 1}, {-1, 2}};
  transposed.reversal = {true, true};
  ConvolutionWindow groups = plain;
  groups.feature_groups = 2;
  Case c{"convolutions", {{f32(xd), x}, {f32(wd), w}, {f32(grouped), g}}, {}, {}, 1e-6, 1, {}};
  c.build = [=](Builder& b, const Values& p) {
    Values out = {b.convolution(p[0], p[1], nchw(), plain), b.convolution(p[0], p[1], nchw(), odd),
                  b.convolution(p[0], p[1], nchw(), transposed), b.convolution(p[0], p[2], nchw(), groups)};
    // The same as the first with the channels last and the kernel as HWIO.
    ConvolutionDims nhwc;
    nhwc.input_feature = nhwc.output_feature = 3;
    nhwc.input_spatial = nhwc.output_spatial = {1, 2};
    nhwc.kernel_spatial = {0, 1};
    nhwc.kernel_input_feature = 2;
    nhwc.kernel_output_feature = 3;
    const Value last =
        b.convolution(b.transpose(p[0], {0, 2, 3, 1}), b.transpose(p[1], {2, 3, 1, 0}), nhwc, plain);
    out.push_back(b.transpose(last, {0, 3, 1, 2}));
    // The gradient of a grouped kernel is a convolution with groups of the batch.
    ConvolutionDims swapped = nchw();
    swapped.input_batch = swapped.output_batch = 1;
    swapped.input_feature = swapped.output_feature = 0;
    swapped.kernel_output_feature = 1;
    swapped.kernel_input_feature = 0;
    ConvolutionWindow batch = plain;
    batch.batch_groups = 2;
    out.push_back(b.convolution(p[0], b.slice_dim(out[3], 2, 0, 2), swapped, batch));
    return out;
  };
  Dims dims;
  c.expected.push_back(plain_convolution(x, xd, w, wd, plain, dims));
  c.expected.push_back(plain_convolution(x, xd, w, wd, odd, dims));
  c.expected.push_back(plain_convolution(x, xd, w, wd, transposed, dims));
  const auto y = plain_convolution(x, xd, g, grouped, groups, dims);
  c.expected.push_back(y);
  c.expected.push_back(c.expected[0]);
  // out[o, i, a, b] = sum over n, y, z of x[n, group of o + i, y + a, z + b] dy[n, o, y, z], dy the first two
  // rows of y.
  std::vector<double> gradient(static_cast<size_t>(8 * 2 * 4 * 2));
  for (int64_t o = 0; o < 8; ++o) {
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t a = 0; a < 4; ++a) {
        for (int64_t b = 0; b < 2; ++b) {
          double total = 0;
          for (int64_t n = 0; n < 2; ++n) {
            for (int64_t r = 0; r < 2; ++r) {
              for (int64_t s = 0; s < 5; ++s) {
                total += x[at({n, o / 4 * 2 + i, r + a, s + b}, xd)] * y[at({n, o, r, s}, dims)];
              }
            }
          }
          gradient[at({o, i, a, b}, {8, 2, 4, 2})] = total;
        }
      }
    }
  }
  c.expected.push_back(gradient);
  return c;
}

Case convolution_1d() {
  Case c{"convolution_1d",
         {{f32({1, 1, 4}), {1, 2, 3, 4}},
          {f32({1, 1, 2}), {10, 1}},
          {f32({2, 3}), ramp(6)},
          {f32({2, 3}), {1, 0, 1, 0, 1, 0}}},
         {},
         {{12, 23, 34}, {2, 1, 8, 4}},
         0,
         1,
         {}};
  c.build = [](Builder& b, const Values& p) {
    ConvolutionDims dims;
    dims.input_spatial = dims.kernel_spatial = dims.output_spatial = {2};
    ConvolutionWindow window;
    window.strides = window.lhs_dilation = window.rhs_dilation = {1};
    window.padding = {{0, 0}};
    // Without spatial dimensions a convolution is x w^T.
    return Values{b.convolution(p[0], p[1], dims, window), b.convolution(p[2], p[3], {}, {})};
  };
  return c;
}

}  // namespace

std::vector<Case> product_cases() { return {dots(), convolutions(), convolution_1d()}; }

}  // namespace sluice::stablehlo::testing
