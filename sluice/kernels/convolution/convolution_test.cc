#include "sluice/kernels/convolution/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sluice/kernels/test_threads.h"

namespace sluice::kernels {
namespace {

using stablehlo::ConvolutionCall;
using stablehlo::Dims;
using Kind = ConvolutionCall::Kind;

size_t elements(const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

std::vector<float> noise(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// Activations of these dims, with the channels first, and a bias that is added to them.
std::vector<double> with_bias(std::vector<double> planes, const Dims& dims, const std::vector<float>& bias) {
  const size_t pixels = planes.size() / static_cast<size_t>(dims[0] * dims[1]);
  for (size_t i = 0; i < planes.size(); ++i) planes[i] += double{bias[i / pixels % bias.size()]};
  return planes;
}

// The channels of activations that lie last to where their dims say.
template <typename T>
std::vector<T> planes_of(const std::vector<T>& last, const Dims& dims) {
  const size_t channels = static_cast<size_t>(dims[1]),
               pixels = elements(dims) / channels / static_cast<size_t>(dims[0]);
  std::vector<T> made(last.size());
  for (size_t i = 0; i < last.size(); ++i)
    made[(i / channels / pixels * channels + i % channels) * pixels + i / channels % pixels] = last[i];
  return made;
}

// A plain convolution of two spatial dimensions from its definition: visit(x's index, w's, y's) for every
// product that is part of it.
template <typename Visit>
void each_product(const ConvolutionCall& c, const Visit& visit) {
  const int64_t in = c.w[1], out = c.w[0] / c.groups;
  for (int64_t n = 0; n < c.y[0]; ++n)
    for (int64_t o = 0; o < c.y[1]; ++o)
      for (int64_t h = 0; h < c.y[2]; ++h)
        for (int64_t w = 0; w < c.y[3]; ++w)
          for (int64_t i = 0; i < in; ++i)
            for (int64_t kh = 0; kh < c.w[2]; ++kh)
              for (int64_t kw = 0; kw < c.w[3]; ++kw) {
                const int64_t ih = h * c.stride[0] + kh * c.dilation[0] - c.padding[0];
                const int64_t iw = w * c.stride[1] + kw * c.dilation[1] - c.padding[1];
                if (ih < 0 || iw < 0 || ih >= c.x[2] || iw >= c.x[3]) continue;
                const int64_t channel = o / out * in + i;
                visit(static_cast<size_t>(((n * c.x[2] + ih) * c.x[3] + iw) * c.x[1] + channel),
                      static_cast<size_t>(((o * in + i) * c.w[2] + kh) * c.w[3] + kw),
                      static_cast<size_t>(((n * c.y[2] + h) * c.y[3] + w) * c.y[1] + o));
              }
}

ConvolutionCall call_of(Dims x, Dims w, Dims stride, Dims padding, Dims dilation, int64_t groups = 1) {
  ConvolutionCall c{.x = x,
                    .w = w,
                    .y = {x[0], w[0]},
                    .stride = stride,
                    .padding = padding,
                    .dilation = dilation,
                    .groups = groups};
  for (size_t d = 0; d < stride.size(); ++d)
    c.y.push_back((x[d + 2] + 2 * padding[d] - dilation[d] * (w[d + 2] - 1) - 1) / stride[d] + 1);
  return c;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected, const char* what) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5 * largest) << what << " at " << i;
}

class EveryConvolution : public ::testing::TestWithParam<ConvolutionCall> {};

TEST_P(EveryConvolution, IsItsDefinition) {
  ConvolutionCall c = GetParam();
  c.kind = Kind::kBackward;
  if (!has_convolution(c)) GTEST_SKIP() << "no library, or none of its kernels is for this CPU";
  std::vector<float> x = noise(elements(c.x), 1), w = noise(elements(c.w), 2), y = noise(elements(c.y), 3);
  std::vector<double> y_made(y.size()), grad_x(x.size()), grad_w(w.size());
  each_product(c, [&](size_t i, size_t k, size_t o) {
    y_made[o] += double{x[i]} * w[k];
    grad_x[i] += double{y[o]} * w[k];
    grad_w[k] += double{y[o]} * x[i];
  });
  const TestThreads threads;
  for (c.channels_first = false;; c.channels_first = true) {
    SCOPED_TRACE(c.channels_first ? "channels first" : "channels last");
    std::vector<float> made_x(x.size(), NAN), made_w(w.size(), NAN), made_y(y.size(), NAN);
    c.kind = Kind::kBackward;
    ASSERT_TRUE(has_convolution(c));
    ASSERT_TRUE(run_convolution(c, {x.data(), w.data(), y.data(), made_x.data(), made_w.data()}));
    expect_near(made_x, grad_x, "x's gradient");
    expect_near(made_w, grad_w, "w's gradient");
    c.kind = Kind::kForward;
    ASSERT_TRUE(run_convolution(c, {x.data(), w.data(), made_y.data(), nullptr, nullptr}));
    expect_near(made_y, y_made, "y");
    if (c.channels_first) {
      const std::vector<float> of_y = noise(static_cast<size_t>(c.y[1]), 4),
                               of_x = noise(static_cast<size_t>(c.x[1]), 5);
      ASSERT_TRUE(run_convolution(c, {x.data(), w.data(), made_y.data(), nullptr, nullptr, of_y.data()}));
      expect_near(made_y, with_bias(y_made, c.y, of_y), "y with a bias");
      c.kind = Kind::kData;
      ASSERT_TRUE(run_convolution(c, {nullptr, w.data(), y.data(), made_x.data(), nullptr, of_x.data()}));
      expect_near(made_x, with_bias(grad_x, c.x, of_x), "x's gradient with a bias");
      break;
    }
    x = planes_of(x, c.x);
    y = planes_of(y, c.y);
    grad_x = planes_of(grad_x, c.x);
    y_made = planes_of(y_made, c.y);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryConvolution,
                         ::testing::Values(call_of({2, 16, 8, 8}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({5, 16, 9, 7}, {16, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({7, 16, 13, 8}, {32, 16, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({7, 32, 13, 8}, {16, 32, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({3, 32, 9, 7}, {32, 32, 3, 3}, {1, 1}, {0, 2}, {1, 1}),
                                           call_of({3, 48, 10, 6}, {32, 48, 3, 3}, {1, 1}, {1, 0}, {1, 1}),
                                           call_of({9, 32, 9, 13}, {64, 32, 3, 3}, {1, 1}, {2, 1}, {1, 1}),
                                           call_of({3, 40, 8, 8}, {72, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({2, 32, 16, 16}, {48, 32, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({3, 40, 17, 10}, {32, 40, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({3, 80, 10, 15}, {72, 80, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({2, 3, 9, 7}, {16, 3, 3, 5}, {2, 1}, {1, 2}, {1, 1}),
                                           call_of({2, 16, 9, 9}, {16, 16, 3, 3}, {1, 1}, {2, 2}, {2, 2}),
                                           call_of({2, 32, 6, 6}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2),
                                           call_of({3, 24, 1, 1}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({33, 32, 2, 2}, {48, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({33, 32, 2, 2}, {48, 32, 3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                           call_of({5, 24, 1, 2}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({5, 24, 1, 3}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({4, 24, 2, 1}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                           call_of({4, 24, 3, 2}, {40, 24, 3, 2}, {1, 1}, {0, 0}, {1, 1}),
                                           call_of({4, 24, 1, 2}, {40, 24, 3, 5}, {1, 1}, {2, 2}, {2, 1}),
                                           call_of({2, 48, 5, 7}, {80, 48, 1, 1}, {1, 1}, {0, 0}, {1, 1}),
                                           call_of({2, 48, 5, 8}, {80, 48, 1, 1}, {2, 3}, {0, 0}, {1, 1}),
                                           call_of({2, 16, 4, 4}, {16, 16, 1, 1}, {1, 1}, {1, 1}, {1, 1}),
                                           // No algorithm's but that of columns.
                                           call_of({2, 3, 19, 23}, {9, 3, 5, 4}, {3, 2}, {1, 3}, {1, 1}),
                                           call_of({1, 5, 40, 9}, {7, 5, 8, 3}, {4, 1}, {0, 2}, {1, 3}),
                                           call_of({3, 6, 21, 11}, {9, 2, 3, 5}, {2, 5}, {3, 0}, {2, 1}, 3),
                                           call_of({1, 1, 70, 67}, {3, 1, 32, 31}, {16, 17}, {8, 9}, {1, 1}),
                                           call_of({3, 7, 12, 9}, {7, 1, 3, 4}, {2, 1}, {1, 2}, {1, 2}, 7),
                                           call_of({5, 2, 7, 5}, {3, 2, 6, 5}, {2, 1}, {0, 0}, {1, 1}),
                                           call_of({1, 5, 90, 100}, {6, 5, 5, 5}, {1, 1}, {2, 2}, {1, 1}),
                                           // A window for each channel, with lines for a register.
                                           call_of({2, 5, 12, 19}, {5, 1, 3, 4}, {2, 1}, {1, 2}, {1, 2}, 5),
                                           call_of({3, 6, 9, 35}, {6, 1, 5, 3}, {3, 2}, {0, 2}, {2, 1}, 6),
                                           call_of({1, 3, 20, 40}, {3, 1, 2, 7}, {3, 2}, {1, 5}, {1, 3}, 3),
                                           call_of({2, 4, 11, 70}, {4, 1, 2, 1}, {3, 2}, {0, 0}, {1, 1}, 4),
                                           call_of({5, 6, 21, 37}, {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 6),
                                           call_of({3, 4, 13, 33}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 4),
                                           call_of({23, 5, 11, 10}, {5, 1, 2, 3}, {1, 1}, {1, 1}, {1, 1}, 5),
                                           // One image for two threads.
                                           call_of({1, 32, 40, 30}, {48, 32, 5, 5}, {1, 1}, {2, 2}, {1, 1}),
                                           call_of({1, 32, 60, 50}, {48, 32, 5, 5}, {2, 2}, {1, 2}, {1, 1}),
                                           call_of({1, 16, 40, 40}, {16, 16, 3, 3}, {1, 1}, {3, 3}, {3, 3}),
                                           call_of({1, 32, 62, 62}, {32, 32, 2, 2}, {3, 3}, {0, 0}, {1, 1})));

TEST(Convolution, WhatHasNoKernelIsRefused) {
  ConvolutionCall c = call_of({2, 16, 8, 8}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1});
  c.x[0] = c.y[0] = 0;
  EXPECT_FALSE(has_convolution(c));
  c = call_of({1, 1}, {1, 1}, {}, {}, {});
  EXPECT_FALSE(has_convolution(c));
}

}  // namespace
}  // namespace sluice::kernels
