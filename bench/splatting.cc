// 3D Gaussian splatting in plain LibTorch, forward and backward, on the device beside LibTorch eager on the
// same cores: the whole step, and each of its parts alone.
//
//   bench_splatting [rounds [part]]
//
// Prints JSON: both medians in milliseconds of rounds in turns, and eager's divided by the device's. A step
// projects N Gaussians to an image of S x S pixels, sorts them by depth, blends tiles of pixels from front to
// back by a cumulative product, and compares the image with another one by L1 and SSIM.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/against_eager.h"
#include "sluice/device/device.h"

namespace sluice::bench {
namespace {

namespace F = torch::nn::functional;

constexpr int64_t kGaussians = 1024, kSide = 64, kWindow = 11;

// Returns the image's pixels [S * S, 2], from -1 to 1.
Tensor pixels(torch::Device device) {
  const Tensor line = torch::linspace(-1, 1, kSide);
  return torch::stack(torch::meshgrid({line, line}, "xy"), -1).reshape({-1, 2}).to(device);
}

// SSIM's window of Gaussian weights for each of three channels: [3, 1, 11, 11].
Tensor window(torch::Device device) {
  const Tensor line =
      torch::exp(-(torch::arange(kWindow) - kWindow / 2).to(torch::kFloat).pow(2) / (2 * 1.5 * 1.5));
  const Tensor weights = line / line.sum();
  return torch::outer(weights, weights).expand({3, 1, kWindow, kWindow}).contiguous().to(device);
}

// The structural similarity of two images [1, 3, S, S] (Wang and others, 2004).
Tensor ssim(const Tensor& a, const Tensor& b, const Tensor& weights) {
  const auto options = F::Conv2dFuncOptions().padding(kWindow / 2).groups(3);
  const auto mean = [&](const Tensor& x) { return F::conv2d(x, weights, options); };
  const Tensor mean_a = mean(a), mean_b = mean(b);
  const Tensor variance_a = mean(a * a) - mean_a * mean_a, variance_b = mean(b * b) - mean_b * mean_b;
  const Tensor covariance = mean(a * b) - mean_a * mean_b;
  constexpr double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
  return (((2 * mean_a * mean_b + c1) * (2 * covariance + c2)) /
          ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2)))
      .mean();
}

// Inverse covariances in the image [N, 2, 2], of scales and quaternions.
Tensor inverse_covariances(const Tensor& scales, const Tensor& rotations) {
  const Tensor q = F::normalize(rotations, F::NormalizeFuncOptions().dim(1));
  const Tensor w = q.select(1, 0), x = q.select(1, 1), y = q.select(1, 2), z = q.select(1, 3);
  const Tensor rows = torch::stack({1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                                    2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                                   1)
                          .view({-1, 2, 3});
  const Tensor m = rows * torch::exp(scales).unsqueeze(1);
  const Tensor c = m.matmul(m.transpose(1, 2));
  const Tensor a = c.select(1, 0).select(1, 0) + 1e-3, b = c.select(1, 0).select(1, 1),
               d = c.select(1, 1).select(1, 1) + 1e-3;
  return torch::stack({d, -b, -b, a}, 1).view({-1, 2, 2}) / (a * d - b * b).view({-1, 1, 1});
}

// What each of the Gaussians, sorted from front to back, adds to the pixels' opacity: [S * S, N].
Tensor opacities(const Tensor& at, const Tensor& means, const Tensor& inverse, const Tensor& opacity) {
  const Tensor d = at.unsqueeze(1) - means.unsqueeze(0);
  const Tensor dx = d.select(2, 0), dy = d.select(2, 1);
  const auto entry = [&](int64_t i, int64_t j) { return inverse.select(1, i).select(1, j); };
  const Tensor power = -0.5 * (entry(0, 0) * dx * dx + entry(1, 1) * dy * dy) - entry(0, 1) * dx * dy;
  return (torch::sigmoid(opacity) * torch::exp(power)).clamp_max(0.99);
}

// Front to back: the light that the Gaussians before let through, times what this one adds.
Tensor blend(const Tensor& alpha, const Tensor& colors) {
  const Tensor through = torch::cumprod(1 - alpha, 1);
  const Tensor before = torch::cat({torch::ones_like(through.slice(1, 0, 1)), through.slice(1, 0, -1)}, 1);
  return (before * alpha).matmul(colors);
}

Case whole_step(torch::Device device) {
  Case made;
  const auto parameter = [&](const Tensor& values) {
    made.parameters.push_back(values.to(device).requires_grad_());
    return made.parameters.back();
  };
  const Tensor means = parameter(torch::rand({kGaussians, 3}) * 2 - 1),
               scales = parameter(torch::full({kGaussians, 3}, -2.5)),
               rotations = parameter(torch::randn({kGaussians, 4})),
               opacity = parameter(torch::zeros({kGaussians})),
               colors = parameter(torch::rand({kGaussians, 3}));
  const Tensor at = pixels(device), weights = window(device),
               target = torch::rand({1, 3, kSide, kSide}).to(device);
  made.operation = [=] {
    const Tensor order = std::get<1>(means.detach().select(1, 2).sort());
    const auto sorted = [&](const Tensor& x) { return x.index_select(0, order); };
    const Tensor alpha = opacities(at, sorted(means).slice(1, 0, 2),
                                   sorted(inverse_covariances(scales, rotations)), sorted(opacity));
    const Tensor image = blend(alpha, torch::sigmoid(sorted(colors))).t().reshape({1, 3, kSide, kSide});
    return 0.8 * (image - target).abs().mean() + 0.2 * (1 - ssim(image, target, weights));
  };
  return made;
}

// The parts alone, each with its gradient.
Case blending(torch::Device device) {
  Case made;
  made.parameters = {(torch::rand({kSide * kSide, kGaussians}) * 0.1).to(device).requires_grad_(),
                     torch::rand({kGaussians, 3}).to(device).requires_grad_()};
  made.operation = [p = made.parameters] { return blend(p[0], p[1]); };
  return made;
}

Case cumulative_product(torch::Device device) {
  Case made;
  made.parameters = {(torch::rand({kSide * kSide, kGaussians}) * 0.1 + 0.9).to(device).requires_grad_()};
  made.operation = [p = made.parameters] { return torch::cumprod(p[0], 1); };
  return made;
}

Case evaluation(torch::Device device) {
  Case made;
  made.parameters = {torch::randn({kGaussians, 2}).to(device).requires_grad_(),
                     (torch::rand({kGaussians, 2, 2}) + 2).to(device).requires_grad_(),
                     torch::randn({kGaussians}).to(device).requires_grad_()};
  made.operation = [p = made.parameters, at = pixels(device)] { return opacities(at, p[0], p[1], p[2]); };
  return made;
}

Case sorting(torch::Device device) {
  Case made;
  made.parameters = {torch::randn({kGaussians, 14}).to(device).requires_grad_()};
  made.operation = [p = made.parameters] {
    return p[0].index_select(0, std::get<1>(p[0].detach().select(1, 2).sort()));
  };
  return made;
}

Case similarity(torch::Device device) {
  Case made;
  made.parameters = {torch::rand({1, 3, kSide, kSide}).to(device).requires_grad_()};
  made.operation = [p = made.parameters, target = torch::rand({1, 3, kSide, kSide}).to(device),
                    weights = window(device)] { return ssim(p[0], target, weights); };
  return made;
}

struct Part {
  const char* name;
  Case (*make)(torch::Device);
};
constexpr Part kParts[] = {
    {"step", whole_step},       {"blending", blending}, {"cumprod", cumulative_product},
    {"evaluation", evaluation}, {"sorting", sorting},   {"ssim", similarity}};

int run(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const std::string only = argc > 2 ? argv[2] : "";
  torch::set_num_threads(kThreads);
  init();
  nlohmann::json found;
  for (const Part& part : kParts)
    if (only.empty() || only == part.name)
      found[part.name] = compare(part.make, {.count = rounds, .together = 1, .seconds = 20});
  std::cout << found.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
