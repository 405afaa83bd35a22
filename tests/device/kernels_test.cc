// The CPU's kernels inside a program, against LibTorch's CPU: one network that calls each of them.
#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using Parameters = std::vector<torch::Tensor>;

// relu(normalized + what was skipped), which is normalized too or is the input.
struct ResidualImpl : torch::nn::Module {
  explicit ResidualImpl(bool projected) {
    namespace nn = torch::nn;
    convolution = register_module("convolution", nn::Conv2d(nn::Conv2dOptions(64, 64, 3).padding(1)));
    normalization = register_module("normalization", nn::BatchNorm2d(64));
    if (!projected) return;
    projection = register_module("projection", nn::Conv2d(nn::Conv2dOptions(64, 64, 1)));
    normalized_projection =
        register_module("normalized_projection", nn::BatchNorm2d(nn::BatchNormOptions(64).affine(false)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = normalization(convolution(x));
    y += projection.is_empty() ? x : normalized_projection(projection(x));
    return torch::relu_(y);
  }
  torch::nn::Conv2d convolution{nullptr}, projection{nullptr};
  torch::nn::BatchNorm2d normalization{nullptr}, normalized_projection{nullptr};
};
TORCH_MODULE(Residual);

struct Network {
  explicit Network(torch::Device device) {
    namespace nn = torch::nn;
    torch::manual_seed(3);
    layers = nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 32, 3).padding(1)), nn::BatchNorm2d(32),
                            nn::ReLU(), nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)),
                            nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1).bias(false)),
                            nn::BatchNorm2d(64), nn::ReLU(), Residual(true), Residual(false),
                            nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 32, 3).padding(1)), nn::ReLU(),
                            nn::Conv2d(nn::Conv2dOptions(32, 32, 3).groups(2).padding(1)),
                            nn::Conv2d(nn::Conv2dOptions(32, 48, 1).stride(2)), nn::Flatten(),
                            nn::Linear(48 * 5 * 5, 96), nn::ReLU(), nn::Linear(96, 10));
    input = torch::randn({8, 3, 20, 18}).to(device);
    target = torch::randint(0, 10, {8}).to(device);
    layers->to(device);
  }

  // The loss and all gradients.
  std::vector<torch::Tensor> gradients() {
    torch::Tensor loss = torch::nn::functional::cross_entropy(layers->forward(input), target);
    loss.backward();
    std::vector<torch::Tensor> all = {loss.detach()};
    for (const torch::Tensor& parameter : layers->parameters()) all.push_back(parameter.grad());
    return all;
  }

  torch::nn::Sequential layers;
  torch::Tensor input, target;
};

// Products of a batch, whose results softmax and its gradient are given in other dims.
TEST(CpuKernels, AttentionByHandIsLibTorchs) {
  const torch::Device device = test_device();
  torch::manual_seed(5);
  torch::Tensor q = torch::randn({2, 4, 64, 32}), k = torch::randn({2, 4, 64, 32});
  torch::Tensor v = torch::randn({2, 4, 64, 32}), g = torch::randn({2, 4, 64, 32});
  const auto gradients = [&](torch::Device on) {
    std::vector<torch::Tensor> inputs;
    for (const torch::Tensor& x : {q, k, v}) inputs.push_back(x.to(on).requires_grad_());
    const torch::Tensor scores = torch::matmul(inputs[0], inputs[1].transpose(2, 3)) / std::sqrt(32.0);
    const torch::Tensor y = torch::matmul(torch::softmax(scores, -1), inputs[2]);
    std::vector<torch::Tensor> made = torch::autograd::grad({y}, inputs, {g.to(on)});
    made.push_back(y.detach());
    return made;
  };
  const std::vector<torch::Tensor> wanted = gradients(torch::kCPU), made = gradients(device);
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_same(made[i].cpu(), wanted[i], 1e-4, c10::str("tensor ", i));
}

TEST(CpuKernels, ANetworkOfThemIsLibTorchs) {
  Network expected(torch::kCPU);
  const std::vector<torch::Tensor> wanted = expected.gradients();
  for (const bool kernels : {true, false}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    restart(options);
    Network found(test_device());
    const std::vector<torch::Tensor> made = found.gradients();
    cut();
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const double scale = std::max(1e-3, wanted[i].abs().max().item<double>());
      expect_same(made[i].cpu() / scale, wanted[i] / scale, 1e-4,
                  c10::str("kernels ", kernels, ", tensor ", i));
    }
    expect_same(found.layers->buffers(), expected.layers->buffers(), 1e-4, "running statistics");
  }
  restart();
}

TEST(CpuKernels, NormalizationsAreCallsTogetherWithTheirRelus) {
  if (on_cpu()) GTEST_SKIP();
  const DumpedPrograms programs;
  Network network(test_device());
  (void)network.gradients();
  cut();
  const int64_t forward = programs.calls("\"sluice_normalize\"");
  const int64_t backward = programs.calls("\"sluice_normalization_gradient\"");
  restart();
  EXPECT_EQ(forward, 4);
  EXPECT_EQ(backward, 5);
}

// A linear layer's bias and ReLU are part of its product's call, unless something else reads what the layer
// makes: then it is multiplied once for both.
TEST(CpuKernels, AReluIsPartOfItsLinearLayer) {
  torch::manual_seed(6);
  const torch::Tensor input = torch::randn({4, 30, 64}), weight = torch::randn({96, 64}),
                      bias = torch::randn({96});
  for (const bool read_twice : {false, true}) {
    const DumpedPrograms programs;
    const auto compute = [&](torch::Device device) {
      const torch::Tensor x =
          torch::nn::functional::linear(input.to(device), weight.to(device), bias.to(device));
      return read_twice ? torch::relu(x) + x : torch::relu(x);
    };
    const torch::Tensor made = compute(test_device()).cpu();
    const int64_t rectified = programs.calls("rectified = 1");
    restart();
    expect_same(made, compute(torch::kCPU), 1e-4, c10::str("read twice: ", read_twice));
    if (on_cpu()) continue;
    EXPECT_EQ(rectified, read_twice ? 0 : 1);
  }
}

// The gradient of a ReLU is part of the product that makes the gradient of the linear layer behind it.
TEST(CpuKernels, TheGradientOfAReluIsPartOfAProduct) {
  torch::manual_seed(7);
  const torch::Tensor input = torch::randn({4, 30, 64}), first = torch::randn({96, 64}) / 8,
                      second = torch::randn({48, 96}) / 100;
  const auto gradients = [&](torch::Device device) {
    namespace functional = torch::nn::functional;
    const torch::Tensor w = first.detach().to(device).requires_grad_(),
                        v = second.detach().to(device).requires_grad_();
    functional::linear(torch::relu(functional::linear(input.to(device), w)), v).pow(2).sum().backward();
    return Parameters{w.grad().cpu(), v.grad().cpu()};
  };
  const DumpedPrograms programs;
  expect_same(gradients(test_device()), gradients(torch::kCPU), 1e-4);
  if (!on_cpu()) {
    EXPECT_EQ(programs.calls("gated = 1"), 1);
  }
  restart();
}

// A sum with what a linear layer makes is part of its product's call, on either side and with its bias.
TEST(CpuKernels, AResidualSumIsPartOfItsLinearLayer) {
  torch::manual_seed(8);
  const torch::Tensor input = torch::randn({4, 30, 64}), weight = torch::randn({64, 64}),
                      bias = torch::randn({64});
  for (const bool biased : {false, true}) {
    const DumpedPrograms programs;
    const auto compute = [&](torch::Device device) {
      const torch::Tensor x = input.to(device);
      const torch::Tensor of_bias = biased ? bias.to(device) : torch::Tensor();
      const torch::Tensor once = x + torch::nn::functional::linear(x, weight.to(device), of_bias);
      return torch::nn::functional::linear(once, weight.to(device), of_bias) + once;
    };
    const torch::Tensor made = compute(test_device()).cpu();
    const int64_t sums = programs.calls("tensor<120x64xf32>) -> tensor<120x64xf32>");
    restart();
    expect_same(made, compute(torch::kCPU), 1e-3, c10::str("biased: ", biased));
    if (on_cpu()) continue;
    EXPECT_EQ(sums, 2);
  }
}

// The loss of normalized words and all gradients.
std::vector<torch::Tensor> gradients_of_words(torch::Device device) {
  namespace nn = torch::nn;
  torch::manual_seed(7);
  nn::Sequential layers(nn::Embedding(nn::EmbeddingOptions(500, 96).padding_idx(3)),
                        nn::LayerNorm(nn::LayerNormOptions({96})), nn::Linear(96, 72), nn::GELU(),
                        nn::LayerNorm(nn::LayerNormOptions({40, 72}).elementwise_affine(false)));
  const torch::Tensor words = torch::randint(0, 500, {16, 40}).to(device);
  const torch::Tensor target = torch::randn({16, 40, 72}).to(device);
  layers->to(device);
  torch::Tensor loss = (layers->forward(words) - target).pow(2).mean();
  loss.backward();
  std::vector<torch::Tensor> all = {loss.detach()};
  for (const torch::Tensor& parameter : layers->parameters()) all.push_back(parameter.grad());
  return all;
}

TEST(CpuKernels, EmbeddedAndNormalizedWordsAreLibTorchs) {
  const std::vector<torch::Tensor> wanted = gradients_of_words(torch::kCPU);
  for (const bool kernels : {true, false}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    restart(options);
    const std::vector<torch::Tensor> made = gradients_of_words(test_device());
    cut();
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const double scale = std::max(1e-6, wanted[i].abs().max().item<double>());
      expect_same(made[i].cpu() / scale, wanted[i] / scale, 1e-4,
                  c10::str("kernels ", kernels, ", tensor ", i));
    }
  }
  restart();
}

// Attention's output and the gradients of queries, keys and values, which are made as models make them: by
// one layer (packed QKV) or three.
std::vector<torch::Tensor> attention(torch::Device device, bool causal, bool packed) {
  torch::manual_seed(4);
  std::vector<torch::Tensor> leaves, parts, heads, all;
  for (int i = 0; i < (packed ? 1 : 3); ++i)
    leaves.push_back(torch::randn({4, 100, (packed ? 3 : 1) * 4 * 32}).to(device).requires_grad_());
  parts = packed ? leaves[0].chunk(3, -1) : leaves;
  for (const torch::Tensor& part : parts) heads.push_back(part.view({4, 100, 4, 32}).transpose(1, 2));
  const torch::Tensor weights = torch::randn({4, 100, 4 * 32}).to(device);
  const torch::Tensor output =
      at::scaled_dot_product_attention(heads[0], heads[1], heads[2], /*attn_mask=*/{}, 0, causal);
  all.push_back(output.transpose(1, 2).reshape({4, 100, 4 * 32}));
  (all[0] * weights).sum().backward();
  for (const torch::Tensor& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

TEST(CpuKernels, AttentionIsOneCallAndItsGradientAnother) {
  for (const auto& [causal, packed] :
       std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}, {true, true}}) {
    const std::vector<torch::Tensor> wanted = attention(torch::kCPU, causal, packed);
    for (const bool kernels : {true, false}) {
      DeviceOptions options;
      options.cpu_kernels = kernels;
      const DumpedPrograms programs(options);
      const std::vector<torch::Tensor> made = attention(test_device(), causal, packed);
      cut();
      for (size_t i = 0; i < made.size(); ++i)
        expect_same(made[i].cpu(), wanted[i], 1e-5,
                    c10::str("causal ", causal, ", packed ", packed, ", kernels ", kernels, ", tensor ", i));
      if (on_cpu()) continue;
      EXPECT_EQ(programs.calls("\"sluice_attention\""), kernels ? 1 : 0);
      EXPECT_EQ(programs.calls("\"sluice_attention_gradient\""), kernels ? 1 : 0);
    }
  }
  restart();
}

// The same with a mask and two heads of queries for each head of keys.
std::vector<torch::Tensor> masked_attention(torch::Device device, const torch::Tensor& mask) {
  torch::manual_seed(4);
  std::vector<torch::Tensor> leaves;
  for (const int64_t heads : {4, 2, 2})
    leaves.push_back(torch::randn({4, heads, 100, 32}).to(device).requires_grad_());
  const torch::Tensor weights = torch::randn({4, 4, 100, 32}).to(device);
  const torch::Tensor output = at::scaled_dot_product_attention(
      leaves[0], leaves[1], leaves[2], mask.to(device), 0, false, {}, /*enable_gqa=*/true);
  (output * weights).sum().backward();
  return {output, leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(CpuKernels, AttentionWithAMaskAndSharedKeysIsOneCallToo) {
  const torch::Tensor filled_up = (torch::arange(100) < 60).view({1, 1, 1, 100});
  const torch::Tensor document = torch::arange(100) / 30;
  const torch::Tensor documents = document.view({100, 1}).eq(document.view({1, 100}));
  const torch::Tensor numbers = torch::randn({4, 1, 100, 100});
  for (const torch::Tensor& mask : {filled_up, documents, numbers}) {
    const std::vector<torch::Tensor> wanted = masked_attention(torch::kCPU, mask);
    for (const bool kernels : {true, false}) {
      DeviceOptions options;
      options.cpu_kernels = kernels;
      const DumpedPrograms programs(options);
      const std::vector<torch::Tensor> made = masked_attention(test_device(), mask);
      cut();
      for (size_t i = 0; i < made.size(); ++i)
        expect_same(made[i].cpu(), wanted[i], 1e-5,
                    c10::str("mask ", mask.sizes(), ", kernels ", kernels, ", tensor ", i));
      if (on_cpu()) continue;
      EXPECT_EQ(programs.calls("\"sluice_attention\""), kernels ? 1 : 0);
      EXPECT_EQ(programs.calls("\"sluice_attention_gradient\""), kernels ? 1 : 0);
    }
  }
}

using torch::optim::Optimizer;

struct OptimizerCase {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(const Parameters&)> make;
  bool clip = false, averaged = false;
};

// With an epsilon that is not much smaller than gradients are: what is divided by less is rounding.
std::vector<OptimizerCase> optimizer_cases() {
  using namespace torch::optim;
  auto sgd = [](const Parameters& p) {
    return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
  };
  return {
      {"sgd", [](const Parameters& p) { return std::make_unique<SGD>(p, SGDOptions(0.1)); }},
      {"nesterov", sgd},
      {"clipped", sgd, /*clip=*/true},
      {"averaged", sgd, false, /*averaged=*/true},
      {"dampened",
       [](const Parameters& p) {
         return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).dampening(0.5));
       }},
      {"adam",
       [](const Parameters& p) {
         return std::make_unique<Adam>(p, AdamOptions(0.01).amsgrad(true).eps(0.01));
       }},
      {"adamw", [](const Parameters& p) { return std::make_unique<AdamW>(p, AdamWOptions(0.01).eps(0.01)); }},
      {"rmsprop",
       [](const Parameters& p) {
         return std::make_unique<RMSprop>(p, RMSpropOptions(0.01).centered(true).momentum(0.9).eps(0.01));
       }},
      {"adagrad",
       [](const Parameters& p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.01).eps(0.01)); }},
  };
}

// The parameters of a net of linear layers with these features, and their averages where the case has them,
// after five steps.
Parameters train(const OptimizerCase& one, const std::vector<int64_t>& features, torch::Device device) {
  namespace nn = torch::nn;
  torch::manual_seed(5);
  nn::Sequential net;
  for (size_t i = 1; i < features.size(); ++i) {
    if (i > 1) net->push_back(nn::Tanh());
    net->push_back(nn::Linear(features[i - 1], features[i]));
  }
  const torch::Tensor input = torch::randn({16, features[0]}).to(device);
  net->to(device);
  const Parameters parameters = net->parameters();
  Parameters averages;
  for (const auto& p : parameters) averages.push_back(torch::zeros(p.sizes()).to(device));
  const auto optimizer = one.make(parameters);
  for (int step = 0; step < 5; ++step) {
    optimizer->zero_grad();
    (net->forward(input) - 0.5).pow(2).mean().backward();
    torch::NoGradGuard no_grad;
    if (one.clip) {
      torch::Tensor squares = torch::zeros({}).to(device);
      for (const auto& p : parameters) squares += p.grad().pow(2).sum();
      for (const auto& p : parameters) p.mutable_grad().mul_(0.05 / (squares.sqrt() + 1e-6));
    }
    optimizer->step();
    if (one.averaged)
      for (size_t i = 0; i < averages.size(); ++i) averages[i].mul_(0.9).add_(parameters[i], 0.1);
    optimizer->zero_grad();
    cut();
  }
  Parameters all = parameters;
  if (one.averaged) all.insert(all.end(), averages.begin(), averages.end());
  return all;
}

// Trains on both devices, and gives the program of the last step to `look`.
void expect_same_training(const OptimizerCase& one, const std::vector<int64_t>& features,
                          const std::function<void(const std::filesystem::path&)>& look) {
  const DumpedPrograms programs;
  expect_same(train(one, features, test_device()), train(one, features, torch::kCPU), 2e-5, one.name);
  const auto all = programs.all();
  // The first program begins with a state that is not there yet; the second is the one of all other steps.
  ASSERT_LE(all.size(), 2u) << one.name;
  look(all.back());
}

TEST(CpuKernels, AnOptimizersUpdatesAreOneCall) {
  if (on_cpu()) GTEST_SKIP();
  for (const OptimizerCase& one : optimizer_cases())
    expect_same_training(one, {7, 1100, 5, 6, 3, 4, 1}, [&](const std::filesystem::path& program) {
      EXPECT_EQ(calls_of("\"sluice_update\"", program), 1) << one.name;
    });
  restart();
}

TEST(CpuKernels, ALargeWeightsGradientAndUpdateAreOneCall) {
  if (on_cpu()) GTEST_SKIP();
  for (const OptimizerCase& one : optimizer_cases())
    expect_same_training(one, {256, 300, 256}, [&](const std::filesystem::path& program) {
      const int64_t in_products = calls_of("\"sluice_product_update\"", program);
      EXPECT_EQ(in_products, one.clip ? 0 : 2) << one.name;  // all gradients are read before they are clipped
      EXPECT_EQ(calls_of("\"sluice_update\"", program), 1) << one.name;
    });
  restart();
}

// What reads a weight of a step reads it before its update, wherever it was recorded.
TEST(CpuKernels, AWeightIsReadBeforeItsUpdateOverwritesIt) {
  enum Reader { kNone, kFirst, kLast, kAfterTheGradient };
  auto run = [](torch::Device device, Reader reader) {
    torch::manual_seed(8);
    torch::nn::Linear layer(256, 300);
    const torch::Tensor input = torch::randn({16, 256}).to(device);
    layer->to(device);
    torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    Parameters all = {layer->weight, layer->bias};
    for (int step = 0; step < 3; ++step) {
      torch::Tensor read;
      const auto read_if = [&](Reader now) {
        if (reader == now) read = (layer->weight.detach() * layer->weight.detach()).sum();
      };
      read_if(kFirst);
      layer->forward(input).pow(2).mean().backward();
      read_if(kAfterTheGradient);
      optimizer.step();
      read_if(kLast);
      optimizer.zero_grad();
      cut();
      if (read.defined()) all.push_back(read);
    }
    return all;
  };
  for (const Reader reader : {kNone, kFirst, kLast, kAfterTheGradient}) {
    const DumpedPrograms programs;
    expect_same(run(test_device(), reader), run(torch::kCPU, reader), 1e-5, c10::str("reader ", reader));
    if (on_cpu()) continue;
    const int64_t calls = programs.calls("\"sluice_product_update\"");
    EXPECT_EQ(calls > 0, reader != kLast) << reader;  // what else reads is no longer an update
  }
  restart();
}

// All that an update reads is there before it is done with one of them.
TEST(CpuKernels, AnUpdateByTwoProductsAndANumberThatComesLater) {
  auto run = [](torch::Device device) {
    torch::manual_seed(9);
    Parameters x;
    for (int64_t columns : {300, 256, 300, 256}) x.push_back((torch::randn({32, columns}) * 0.1).to(device));
    torch::Tensor w = torch::randn({300, 256}).to(device);
    for (int step = 0; step < 3; ++step) {
      torch::Tensor first = x[0].t().mm(x[1]), scale = x[3].abs().mean(), second = x[2].t().mm(x[3]);
      w.add_(first * scale, -0.1).add_(second, 0.2);
      first = second = torch::Tensor();  // nothing else reads them
      cut();
    }
    return Parameters{w};
  };
  const DumpedPrograms programs;
  expect_same(run(test_device()), run(torch::kCPU), 1e-5);
  if (!on_cpu()) {
    EXPECT_EQ(programs.calls("\"sluice_product_update\""), 1);
  }
  restart();
}

// What one update overwrites another reads, in both orders: they are not one call, and nothing is lost.
TEST(CpuKernels, UpdatesThatReadOneAnother) {
  auto run = [](torch::Device device) {
    torch::manual_seed(6);
    Parameters a, b;
    for (int i = 0; i < 10; ++i) {
      a.push_back(torch::randn({70, 100}).to(device));
      b.push_back(torch::randn({70, 100}).to(device));
    }
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < a.size(); ++i) {
        const torch::Tensor before = a[i] * 1.0;
        a[i].mul_(0.5).add_(b[i], 0.25);   // reads b before its update
        b[i].mul_(0.75).add_(before, -2);  // reads a from before
        if (i % 2 == 0) a[i].add_(a[(i + 1) % a.size()].sum());
      }
      cut();
    }
    Parameters all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  };
  restart();
  expect_same(run(test_device()), run(torch::kCPU), 1e-4);
}

}  // namespace
}  // namespace sluice::tests
