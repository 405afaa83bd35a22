// What LibTorch promises besides the values: Module::to, copies, printing, hooks, scripts, models and
// optimizers.
#include <torch/script.h>

#include <sstream>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;

TEST(Errors, AreLibTorchsAndOurs) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Tensor there = ramp({2, 3}).to(test_device());
  auto caught_by = [&](auto kind, const std::function<void()>& call) {
    try {
      call();
    } catch (const typename decltype(kind)::type& error) {
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("Exception raised from")));
      return true;
    } catch (...) {
    }
    return false;
  };
  const std::function<void()> calls[] = {
      [&] { (void)torch::mm(there, there); },  // while recording
      [&] { (void)there.index_select(0, torch::full({1}, 7, torch::kLong).to(test_device())).cpu(); },
      [&] { (void)there.accessor<float, 2>(); },     // its memory
      [&] { (void)sluice::fetch(torch::ones(2)); },  // our own functions
  };
  for (const auto& call : calls) {
    EXPECT_TRUE(caught_by(std::type_identity<c10::Error>(), call)) << &call - calls;
    EXPECT_TRUE(caught_by(std::type_identity<sluice::Error>(), call)) << &call - calls;
    EXPECT_TRUE(caught_by(std::type_identity<std::exception>(), call)) << &call - calls;
  }
}

TEST(Errors, ACallIsNamedWithItsArguments) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Tensor a = ramp({2, 3}).to(test_device()), b = ramp({4, 5}).to(test_device());
  EXPECT_THAT(thrown([&] { (void)torch::mm(a, b); }),
              testing::HasSubstr("aten::mm: shapes cannot be multiplied: Float[2, 3] and Float[4, 5]"));
  EXPECT_THAT(thrown([&] { (void)(a + b); }), testing::AllOf(testing::HasSubstr("aten::add"),
                                                             testing::HasSubstr("Float[2, 3], Float[4, 5]")));
  EXPECT_THAT(thrown([&] {
                (void)torch::cat({a, b});
              }),
              testing::AllOf(testing::HasSubstr("aten::cat"), testing::Not(testing::HasSubstr("stablehlo"))));
  EXPECT_THAT(thrown([&] { (void)a.sum(5); }), testing::HasSubstr("aten::sum"));
}

TEST(Errors, OtherKindsOfTensorsAreRefusedInWords) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Tensor there = ramp({4, 3}).to(test_device());
  EXPECT_THAT(thrown([&] { (void)there.to_sparse(); }), testing::HasSubstr(".cpu().to_sparse()"));
  const torch::Tensor compressed = torch::eye(3).to_sparse_csr();
  EXPECT_THAT(thrown([&] { (void)compressed.to(test_device()); }), testing::HasSubstr("index_add"));
  nn::Embedding embedding(nn::EmbeddingOptions(5, 3).sparse(true));
  embedding->to(test_device());
  const torch::Tensor rows = torch::tensor({1, 2}, torch::kLong).to(test_device());
  EXPECT_THAT(thrown([&] { embedding->forward(rows).sum().backward(); }),
              testing::HasSubstr("sparse(false)"));
  EXPECT_THAT(thrown([&] { (void)torch::quantize_per_tensor(there, 0.1, 0, torch::kQInt8); }),
              testing::HasSubstr("quantized"));
  EXPECT_EQ(thrown([&] { (void)(there + 1).cpu(); }), "");
}

TEST(ModuleTo, KeepsTensorsAndWorksInAllDirections) {
  torch::Device device = test_device();
  nn::Linear module(3, 2);
  torch::Tensor weight = module->weight;
  torch::Tensor before = weight.detach().clone();
  c10::TensorImpl* impl = weight.unsafeGetTensorImpl();
  module->to(device);
  EXPECT_EQ(module->weight.unsafeGetTensorImpl(), impl);
  EXPECT_EQ(weight.device().type(), device.type());
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(weight.is_leaf());
  torch::Tensor x = ramp({4, 3});
  module->forward(x.to(device)).sum().backward();
  expect_same(weight.grad(), x.sum(0).expand({2, 3}).contiguous());
  module->zero_grad();
  module->to(torch::kBFloat16);
  EXPECT_EQ(weight.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(weight.unsafeGetTensorImpl(), impl);
  module->to(torch::kFloat);
  module->to(torch::kCPU);
  EXPECT_TRUE(weight.device().is_cpu());
  EXPECT_EQ(weight.unsafeGetTensorImpl(), impl);
  expect_same(weight, before.to(torch::kBFloat16).to(torch::kFloat), 0);
  module->to(device, torch::kDouble);
  expect_same(weight.cpu(), before.to(torch::kBFloat16).to(torch::kDouble), 0);
}

TEST(ModuleTo, SetDataAndDetachShareMemory) {
  torch::Device device = test_device();
  torch::Tensor a = ramp({3}).to(device), b = ramp({2, 2}).to(device);
  torch::Tensor alias = a.detach();
  a.add_(1);
  expect_same(alias, ramp({3}) + 1, 0);
  a.set_data(b);
  b.mul_(2);
  expect_same(a, ramp({2, 2}) * 2, 0);
  expect_same(alias, ramp({3}) + 1, 0);
}

TEST(Host, CopiesOfAllTypesAndShapesGoBothWays) {
  torch::Device device = test_device();
  for (auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
                    torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {0}, {3, 0, 2}, {5}, {2, 3, 4}}) {
      torch::Tensor x = ramp(sizes, 1).abs().to(type);
      expect_same(x.to(device), x, 0, c10::str(type, torch::IntArrayRef(sizes)));
    }
  }
  torch::Tensor strided = ramp({4, 6}).t().slice(0, 1, 5, 2);
  expect_same(strided.to(device), strided, 0);
  expect_same(ramp({4, 6}).to(device).t().slice(0, 1, 5, 2), strided, 0);
  torch::Tensor target = torch::zeros({6, 4});
  target.t().copy_(ramp({4, 6}).to(device));
  expect_same(target, ramp({4, 6}).t(), 0);
  torch::Tensor part = torch::zeros({4, 6}, device);
  part.select(0, 2).copy_(ramp({6}));
  expect_same(part.sum(0), ramp({6}), 0);
  expect_same(ramp({2, 2}).to(device).to(torch::kCPU, torch::kDouble), ramp({2, 2}).to(torch::kDouble), 0);
}

TEST(Host, PrintingAndItemShowTheValues) {
  torch::Tensor x = ramp({2, 3}), y = x.to(test_device());
  std::ostringstream found, expected;
  found << y + 0.5;
  expected << x + 0.5;
  std::string head = found.str().substr(0, found.str().find('['));
  EXPECT_EQ(head, expected.str().substr(0, expected.str().find('[')));
  EXPECT_FLOAT_EQ(y[1][2].item<float>(), x[1][2].item<float>());
  EXPECT_TRUE(torch::equal(y, y.clone()));
  EXPECT_FALSE(torch::equal(y, y + 1));
  EXPECT_TRUE(torch::allclose(y, x.to(test_device())));
  EXPECT_TRUE((y.sum() < 1000).item<bool>());
}

TEST(Autograd, HooksAndRetainedGradients) {
  torch::Device device = test_device();
  torch::Tensor x = ramp({3}).to(device).requires_grad_();
  torch::Tensor y = x * 2;
  y.retain_grad();
  int calls = 0;
  y.register_hook([&](const torch::Tensor& gradient) {
    ++calls;
    return gradient * 10;
  });
  (y * y).sum().backward();
  EXPECT_EQ(calls, 1);
  expect_same(x.grad(), ramp({3}) * 80);
  expect_same(y.grad(), ramp({3}) * 40);
}

TEST(Autograd, DoubleBackward) {
  auto penalty = [](torch::Device device) {
    torch::Tensor x = ramp({4, 3}).to(device).requires_grad_(), w = ramp({3, 2}).to(device).requires_grad_();
    torch::Tensor out = torch::tanh(x.mm(w)).sum();
    auto gradient = torch::autograd::grad({out}, {x}, {}, true, true)[0];
    (gradient.pow(2).sum() + out).backward();
    return std::vector<torch::Tensor>{x.grad(), w.grad()};
  };
  expect_same(penalty(test_device()), penalty(torch::kCPU), 1e-5);
}

struct ScaledIdentity : torch::autograd::Function<ScaledIdentity> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x.clone();
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list gradients) {
    torch::Tensor x = ctx->get_saved_variables()[0];
    return {gradients[0] * x * ctx->saved_data["scale"].toDouble(), torch::Tensor()};
  }
};

TEST(Autograd, CustomFunction) {
  torch::Tensor x = ramp({5}).to(test_device()).requires_grad_();
  ScaledIdentity::apply(x, 3.0).sum().backward();
  expect_same(x.grad(), ramp({5}) * 3);
}

TEST(Autograd, NoGradAndInferenceMode) {
  torch::Device device = test_device();
  nn::Sequential model(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  torch::Tensor x = ramp({2, 3});
  torch::Tensor expected = model->forward(x).detach();
  model->to(device);
  {
    torch::NoGradGuard guard;
    torch::Tensor y = model->forward(x.to(device));
    EXPECT_FALSE(y.requires_grad());
    expect_same(y, expected);
  }
  {
    torch::InferenceMode guard;
    torch::Tensor y = model->forward(x.to(device));
    EXPECT_TRUE(y.is_inference());
    y.add_(1);
    expect_same(y.slice(1, 0, 1), (expected + 1).slice(1, 0, 1));
  }
}

TEST(Autograd, InPlaceOnViewsOfLeavesThatNeedGradients) {
  auto gradient = [](torch::Device device) {
    torch::Tensor x = ramp({4, 4}).to(device).requires_grad_();
    torch::Tensor y = x * 2;
    y.select(0, 1).mul_(3);
    y.t().slice(0, 1, 3).add_(y.slice(1, 0, 2).t().clone());
    y.diagonal().fill_(0.5);
    (y * y).sum().backward();
    return x.grad();
  };
  expect_same(gradient(test_device()), gradient(torch::kCPU));
}

TEST(Script, AModuleIsLoadedMovedAndTrained) {
  torch::jit::Module module("scaled");
  module.register_parameter("w", ramp({3, 2}).requires_grad_(), false);
  module.define("def forward(self, x):\n  return torch.relu(torch.mm(x, self.w)) * 2.0\n");
  std::stringstream file;
  module.save(file);
  torch::jit::Module loaded = torch::jit::load(file);
  loaded.to(test_device());
  torch::Tensor x = ramp({4, 3});
  for (int i = 0; i < 3; ++i) {  // the executor specialises after the first calls
    torch::Tensor w = module.attr("w").toTensor(), moved = loaded.attr("w").toTensor();
    torch::Tensor expected = module.forward({x}).toTensor();
    torch::Tensor found = loaded.forward({x.to(test_device())}).toTensor();
    expect_same(found, expected);
    expected.sum().backward();
    found.sum().backward();
    expect_same(moved.grad(), w.grad());
  }
}

TEST(Models, ClipGradNorm) {
  auto clip = [](torch::Device device) {
    torch::Tensor a = ramp({3, 3}).to(device).requires_grad_(), b = ramp({4}).to(device).requires_grad_();
    ((a * a).sum() * 5 + (b * b * b).sum()).backward();
    double norm = nn::utils::clip_grad_norm_({a, b}, 0.5);
    return std::vector<torch::Tensor>{a.grad(), b.grad(), torch::tensor(norm)};
  };
  expect_same(clip(test_device()), clip(torch::kCPU), 1e-5);
}

TEST(Models, LstmAndGru) {
  auto run = [](auto model, torch::Device device) {
    torch::NoGradGuard no_grad;
    double value = 0.02;
    for (auto& p : model->parameters()) p.copy_(ramp(p.sizes().vec(), value += 0.01));
    torch::AutoGradMode grad(true);
    model->to(device);
    torch::Tensor x = ramp({5, 2, 3}).to(device).requires_grad_();
    torch::Tensor y = std::get<0>(model->forward(x));
    (y * y).sum().backward();
    return std::vector<torch::Tensor>{y, x.grad(), model->parameters()[0].grad()};
  };
  expect_same(run(nn::LSTM(3, 4), test_device()), run(nn::LSTM(3, 4), torch::kCPU), 1e-4, "lstm");
  expect_same(run(nn::GRU(nn::GRUOptions(3, 4).num_layers(2)), test_device()),
              run(nn::GRU(nn::GRUOptions(3, 4).num_layers(2)), torch::kCPU), 1e-4, "gru");
}

TEST(Models, OptimizersOfAllKinds) {
  auto train = [](torch::Device device, int kind) {
    torch::Tensor w = ramp({4, 3}).to(device).requires_grad_();
    std::vector<torch::Tensor> list{w};
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    if (kind == 0)
      optimizer = std::make_unique<torch::optim::Adam>(list, torch::optim::AdamOptions(0.1).amsgrad(true));
    if (kind == 1) optimizer = std::make_unique<torch::optim::AdamW>(list, torch::optim::AdamWOptions(0.1));
    if (kind == 2)
      optimizer =
          std::make_unique<torch::optim::RMSprop>(list, torch::optim::RMSpropOptions(0.1).centered(true));
    if (kind == 3)
      optimizer = std::make_unique<torch::optim::Adagrad>(list, torch::optim::AdagradOptions(0.1));
    if (kind == 4)
      optimizer = std::make_unique<torch::optim::LBFGS>(list, torch::optim::LBFGSOptions(0.5).max_iter(3));
    torch::Tensor x = ramp({6, 4}).to(device);
    auto closure = [&] {
      torch::AutoGradMode grad(true);
      optimizer->zero_grad();
      torch::Tensor loss = (torch::tanh(x.mm(w)) - 0.3).pow(2).mean();
      loss.backward();
      return loss;
    };
    for (int i = 0; i < (kind == 4 ? 1 : 4); ++i) {
      if (kind == 4) {
        optimizer->step(closure);
      } else {
        closure();
        optimizer->step();
      }
      cut();
    }
    return w;
  };
  for (int kind = 0; kind < 5; ++kind) {
    expect_same(train(test_device(), kind), train(torch::kCPU, kind), 1e-4, c10::str("optimizer ", kind));
  }
}

}  // namespace
}  // namespace sluice::tests
