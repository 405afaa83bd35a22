// The random numbers of the device: they are those of the hash in sluice/ops/random.h (whose test has the
// statistics), and the same wherever the program is cut, in loops and in every mode.
#include <ATen/CPUGeneratorImpl.h>

#include "sluice/device/recompute.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/random_words.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using Draw = std::function<torch::Tensor(torch::Device)>;

// What the device draws after this seed, on the host.
torch::Tensor drawn(const Draw& draw, uint64_t seed = 5) {
  torch::manual_seed(seed);
  return draw(test_device()).cpu();
}

const std::vector<std::vector<int64_t>>& shapes() {
  static const auto& all = *new std::vector<std::vector<int64_t>>{
      {}, {1}, {7}, {0, 3}, {64, 96}, {5, 1, 3}, {1, 1, 33}, {2, 3, 4, 5}, {3, 1000, 70}};
  return all;
}

TEST(RandomNumbers, AreThoseOfTheHash) {
  if (on_cpu()) GTEST_SKIP();
  for (const auto& sizes : shapes()) {
    const std::string shape = c10::str(c10::IntArrayRef(sizes));
    const torch::Tensor uniform = uniform_of(first_key(5), sizes);
    expect_same(drawn([&](torch::Device d) { return torch::rand(sizes, d); }), uniform.to(torch::kFloat), 0,
                shape);
    for (const double p : {0.1, 0.5, 0.8}) {
      // Numbers of the call are f32, as the device has them.
      const torch::Tensor ones = uniform.lt(static_cast<double>(static_cast<float>(p)));
      for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kInt, torch::kBool}) {
        const auto draw = [&](torch::Device d) {
          return torch::empty(sizes, torch::TensorOptions(d).dtype(type)).bernoulli_(p);
        };
        expect_same(drawn(draw), ones.to(type), 0, c10::str(shape, ", p ", p, ", ", type));
      }
      const torch::Tensor keeps =
          uniform.lt(static_cast<double>(1 - static_cast<float>(p))).to(torch::kFloat);
      const auto drop = [&](torch::Device d) { return torch::dropout(torch::ones(sizes, d), p, true).ne(0); };
      expect_same(drawn(drop), keeps.to(torch::kBool), 0, c10::str("dropout of ", shape, ", p ", p));
    }
  }
}

// f64 takes two words for each number, the second ones from the next draw.
TEST(RandomNumbers, OfF64HaveAllTheirBits) {
  if (on_cpu()) GTEST_SKIP();
  for (const auto& sizes : shapes())
    expect_same(drawn([&](torch::Device d) {
                  return torch::rand(sizes, torch::TensorOptions(d).dtype(torch::kDouble));
                }),
                uniform_of(first_key(5), sizes, /*wide=*/true), 0);
}

// Layers with dropout of all kinds, one after another; the results and the gradient.
std::vector<torch::Tensor> layers_with_dropout(const torch::Tensor& input, int layers, bool cuts,
                                               bool recomputed = false) {
  torch::manual_seed(23);
  torch::Tensor x = input.detach().requires_grad_(), y = x;
  const auto layer = [](const torch::Tensor& in) {
    torch::Tensor out = torch::dropout(in, 0.2, true);
    out = torch::feature_dropout(out, 0.1, true) + torch::alpha_dropout(in, 0.3, true);
    // Stochastic depth, and a mask of the user's own.
    const auto options = in.detach().options();
    out = in + out * torch::empty({in.size(0), 1, 1}, options).bernoulli_(0.8);
    return torch::rrelu(out * torch::rand(in.sizes(), options).lt(0.9), 0.1, 0.3, true);
  };
  for (int i = 0; i < layers; ++i) {
    y = recomputed ? checkpoint(layer, y) : layer(y);
    if (cuts) cut();
  }
  y.square().sum().backward();
  return {y.detach().cpu(), x.grad().cpu()};
}

TEST(RandomNumbers, AreTheSameWhereverTheProgramIsCut) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Tensor host = ramp({4, 6, 5});
  restart();
  const auto once = layers_with_dropout(host.to(test_device()), 3, false);
  EXPECT_EQ(differs(layers_with_dropout(host.to(test_device()), 3, false)[0], once[0], 0), "");
  expect_same(layers_with_dropout(host.to(test_device()), 3, true), once, 1e-5, "cuts");
  expect_same(layers_with_dropout(host.to(test_device()), 3, false, true), once, 1e-5, "recomputed");
  DeviceOptions eager;
  eager.eager = true;
  restart(eager);
  expect_same(layers_with_dropout(host.to(test_device()), 3, false), once, 1e-5, "eager");
  restart();
}

// A user's loop with dropout, with and without a loop in the program.
TEST(RandomNumbers, AreTheSameInALoop) {
  if (on_cpu()) GTEST_SKIP();
  std::vector<torch::Tensor> found;
  for (const bool loops : {true, false}) {
    DeviceOptions options;
    options.loops = loops;
    const DumpedPrograms programs(options);
    torch::manual_seed(29);
    torch::Tensor x = ramp({8, 16}).to(test_device());
    for (int i = 0; i < 40; ++i) x = x + torch::dropout(x, 0.5, true) * 0.1;
    found.push_back(x.cpu());
    EXPECT_EQ(programs.calls("\"stablehlo.while\""), loops ? 1 : 0);
  }
  restart();
  expect_same(found[0], found[1], 1e-5);
}

// A generator of the caller's gives its own numbers, and leaves the default one alone.
TEST(RandomNumbers, ComeFromTheCallersGenerator) {
  if (on_cpu()) GTEST_SKIP();
  const std::vector<int64_t> sizes = {40, 50};
  at::Generator own = at::detail::createCPUGenerator(77);
  torch::manual_seed(5);
  const torch::Tensor of_own = torch::empty(sizes, test_device()).bernoulli_(0.5, own).cpu();
  const torch::Tensor of_default = torch::empty(sizes, test_device()).bernoulli_(0.5).cpu();
  expect_same(of_own, uniform_of(first_key(77), sizes).lt(0.5).to(torch::kFloat), 0);
  expect_same(of_default, uniform_of(first_key(5), sizes).lt(0.5).to(torch::kFloat), 0);
}

}  // namespace
}  // namespace sluice::tests
