// What programs rely on besides the values: Module::to, hooks, scripts, printing, errors, fallback, counts.
#include <c10/core/AutogradState.h>
#include <torch/script.h>

#include <sstream>
#include <thread>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

torch::Tensor ramp(std::vector<int64_t> sizes, double scale = 0.25) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return ((torch::arange(count, torch::kFloat) * 7).remainder(11) - 5).mul(scale).reshape(sizes);
}

// The message of what the call throws; "" when it does not.
std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
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

TEST(Errors, MixedDevicesAreRefusedClearly) {
  if (on_cpu()) GTEST_SKIP();
  torch::Device device = test_device();
  torch::Tensor here = ramp({2, 3}), there = here.to(device);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { there + here; }, [&] { here + there; }, [&] { torch::mm(there, here.t()); },
           [&] { there.add_(here); },
           [&] {
             torch::cat({there, here});
           },
           [&] { nn::Linear(3, 2)->forward(there); },
           [&] { torch::nn::functional::cross_entropy(there, torch::zeros({2}, torch::kLong)); }}) {
    std::string message = thrown(call);
    EXPECT_THAT(message, HasSubstr("cpu"));
    EXPECT_THAT(message, HasSubstr("xla"));
  }
  // A number in a tensor may stand on the CPU, as on other devices.
  expect_same(there * torch::tensor(2.0f), here * 2, 0);
  expect_same(there * 2 + 1, here * 2 + 1, 0);
}

TEST(Errors, SecondDeviceIsExplained) {
  if (on_cpu()) GTEST_SKIP();
  test_device();
  EXPECT_THAT(thrown([] { torch::zeros({2}, torch::Device(torch::kXLA, 1)); }), HasSubstr("xla:0"));
}

TEST(Errors, AFailedCallLeavesTheDeviceUsable) {
  torch::Device device = test_device();
  torch::Tensor a = ramp({2, 3}).to(device), b = ramp({2, 3}).to(device);
  torch::Tensor pending = a + 1;
  EXPECT_NE(thrown([&] { torch::mm(a, b); }), "");
  EXPECT_NE(thrown([&] { a + torch::ones({4, 5}, device); }), "");
  EXPECT_NE(thrown([&] { a.view({7}); }), "");
  EXPECT_NE(thrown([&] { a.add_(torch::ones({3, 2, 3}, device)); }), "");
  EXPECT_NE(thrown([&] { torch::cat({a, torch::ones({2, 4, 1}, device)}); }), "");
  expect_same(pending, ramp({2, 3}) + 1, 0);
  expect_same(a, ramp({2, 3}), 0);
  torch::Tensor x = ramp({3}).to(device).requires_grad_();
  torch::Tensor y = x * 2;
  y.register_hook([](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("no"); });
  EXPECT_NE(thrown([&] { y.sum().backward(); }), "");
  torch::Tensor z = (x * 3).sum();
  z.backward();
  expect_same(x.grad(), torch::full({3}, 3.0f), 0);
}

TEST(Errors, ASecondThreadMayNotRecord) {
  if (on_cpu()) GTEST_SKIP();
  torch::Tensor x = ramp({2}).to(test_device());
  torch::Tensor pending = x + 1;
  std::string message;
  std::thread other([&] { message = thrown([&] { x * 2; }); });
  other.join();
  EXPECT_THAT(message, HasSubstr("thread"));
  expect_same(pending, ramp({2}) + 1, 0);
}

TEST(Backward, IsRecordedByItsCaller) {
  torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  torch::Tensor y = x * 2;
  std::thread::id recorded_by;
  y.register_hook([&](const torch::Tensor&) { recorded_by = std::this_thread::get_id(); });
  y.sum().backward();
  EXPECT_EQ(recorded_by, std::this_thread::get_id());
  expect_same(x.grad(), torch::full({3}, 2.0f), 0);
}

// What autograd does with its threads is the user's: it is another thing only during a pass on the device.
TEST(Backward, LeavesAutogradsThreadsAsTheyWere) {
  using c10::AutogradState;
  const auto threads = [] { return AutogradState::get_tls_state().get_multithreading_enabled(); };
  const auto passes = [&](torch::Device device) {
    std::vector<bool> seen;
    torch::Tensor x = ramp({3}).to(device).requires_grad_();
    torch::Tensor y = x * 2;
    y.register_hook([&](const torch::Tensor&) { seen.push_back(threads()); });
    EXPECT_TRUE(threads());
    y.sum().backward({}, /*retain_graph=*/true);
    EXPECT_TRUE(threads());
    const torch::Tensor gradient = torch::autograd::grad({y.sum()}, {x})[0];
    EXPECT_TRUE(threads());
    expect_same(gradient, torch::full({3}, 2.0f), 0);
    return seen;
  };
  EXPECT_EQ(passes(test_device()), std::vector<bool>(2, on_cpu()));
  EXPECT_EQ(passes(torch::kCPU), std::vector<bool>(2, true));
  torch::Tensor pending = ramp({3}).to(test_device()) + 1;
  EXPECT_EQ(passes(torch::kCPU), std::vector<bool>(2, true));
  expect_same(pending, ramp({3}) + 1, 0);
}

TEST(Backward, AnErrorLeavesAutogradsThreadsAsTheyWere) {
  torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  torch::Tensor y = x * 2;
  y.register_hook([](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("no"); });
  EXPECT_NE(thrown([&] { y.sum().backward(); }), "");
  EXPECT_TRUE(c10::AutogradState::get_tls_state().get_multithreading_enabled());
}

// Who has switched them off keeps them so.
TEST(Backward, MayBeWithoutAutogradsThreadsForGood) {
  auto& state = c10::AutogradState::get_tls_state();
  state.set_multithreading_enabled(false);
  torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  (x * 2).sum().backward();
  EXPECT_FALSE(state.get_multithreading_enabled());
  state.set_multithreading_enabled(true);
  expect_same(x.grad(), torch::full({3}, 2.0f), 0);
}

// Whose thread has recorded nothing: autograd's own does it.
TEST(Backward, MayBeCalledByAnotherThread) {
  torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  torch::Tensor y = x * 2, gradient = torch::ones_like(y);
  std::thread other([&] { y.backward(gradient); });
  other.join();
  expect_same(x.grad(), torch::full({3}, 2.0f), 0);
}

// Calls that few programs make; most have no row.
std::vector<std::pair<std::string, std::function<torch::Tensor(const torch::Tensor&)>>> rare_calls() {
  return {
      {"logcumsumexp", [](const auto& x) { return x.logcumsumexp(0); }},
      {"median", [](const auto& x) { return std::get<0>(x.median(1)); }},
      {"kthvalue", [](const auto& x) { return std::get<1>(x.flatten().kthvalue(3)); }},
      {"histc", [](const auto& x) { return x.histc(4, -2, 2); }},
      {"inverse",
       [](const auto& x) { return torch::linalg_inv(x.mm(x.t()) + torch::eye(3, x.options()) * 4); }},
      {"cholesky",
       [](const auto& x) { return torch::linalg_cholesky(x.mm(x.t()) + torch::eye(3, x.options()) * 4); }},
      {"digamma", [](const auto& x) { return (x.abs() + 0.5).digamma(); }},
      {"polygamma", [](const auto& x) { return torch::polygamma(2, x.abs() + 0.5); }},
      {"renorm", [](const auto& x) { return x.renorm(2, 0, 0.5); }},
      {"bucketize",
       [](const auto& x) { return torch::bucketize(x, torch::linspace(-1, 1, 5, x.options())); }},
      {"nonzero", [](const auto& x) { return x.gt(0).nonzero(); }},
      {"masked_select", [](const auto& x) { return x.masked_select(x > 0); }},
      {"unique", [](const auto& x) { return std::get<0>(torch::_unique2(x, true, true, true)); }},
      {"mode", [](const auto& x) { return std::get<0>(x.mode(1)); }},
      {"cdist", [](const auto& x) { return torch::cdist(x, x + 1); }},
      {"digamma_", [](const auto& x) { return (x.abs() + 0.5).digamma_(); }},
      {"renorm_ on a view",
       [](const auto& x) {
         torch::Tensor y = x.clone();
         y.t().renorm_(2, 0, 0.5);
         return y;
       }},
      {"digamma.out",
       [](const auto& x) {
         torch::Tensor out = torch::empty({0}, x.options());
         return torch::digamma_out(out, x.abs() + 0.5);
       }},
      {"put_",
       [](const auto& x) {
         return x.clone().put_(torch::tensor({1, 3}).to(x.device()), torch::ones({2}, x.options()));
       }},
      {"_foreach_add_", [](const auto& x) {
         std::vector<torch::Tensor> list{x.clone(), x * 2};
         torch::_foreach_add_(list, 1.5);
         return torch::cat(list);
       }}};
}

TEST(Fallback, RareOperationsAreRight) {
  if (!on_cpu()) restart();
  torch::Device device = test_device();
  torch::Tensor x = ramp({3, 4}) + 0.1;
  for (const auto& [name, call] : rare_calls()) {
    std::string message = thrown([&] { expect_same(call(x.to(device)), call(x), 1e-4, name); });
    EXPECT_EQ(message, "") << name;
  }
  if (on_cpu()) return;
  EXPECT_GE(counters().fallbacks, 5);
  EXPECT_GE(fallback_counts().size(), 5u);
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Fallback, WarnsOncePerOperationAndCounts) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  reset_metrics();
  torch::Tensor x = (ramp({3, 4}) + 0.1).to(test_device());
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) expect_same(torch::special_airy_ai(x), torch::special_airy_ai(x.cpu()), 1e-4);
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(occurrences(lines, "aten::special_airy_ai"), 1u) << lines;
  EXPECT_EQ(counters().fallbacks, 3) << metrics_report();
  EXPECT_THAT(metrics_report(), HasSubstr("special_airy_ai"));
}

TEST(Fallback, StrictRefuses) {
  if (on_cpu()) GTEST_SKIP();
  DeviceOptions options;
  options.strict = true;
  restart(options);
  torch::Tensor x = (ramp({3}) + 0.1).to(test_device());
  EXPECT_THAT(thrown([&] { torch::special_airy_ai(x); }), HasSubstr("special_airy_ai"));
  torch::Tensor y = x + 1;
  sync_and_wait();
  EXPECT_EQ(thrown([&] { y.cpu(); }), "");
  restart();
}

TEST(Metrics, HostReadsAreCountedByPlace) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  torch::Tensor x = ramp({3}).to(test_device());
  int64_t before = counters().host_reads;
  for (int i = 0; i < 4; ++i) {
    x = x * 0.5;
    x.sum().item<float>();
    sync();
  }
  EXPECT_EQ(counters().host_reads - before, 4);
  EXPECT_THAT(metrics_report(), HasSubstr("behaviour_test.cc"));
}

TEST(Fetch, DoesNotWaitAndKeepsTheValueOfItsMoment) {
  if (on_cpu()) GTEST_SKIP();
  torch::Tensor x = ramp({3}).to(test_device());
  torch::Tensor y = x * 2;
  int64_t cuts = counters().cuts;
  Fetch fetched = fetch(y);
  EXPECT_EQ(counters().cuts, cuts);
  y.add_(100);
  sync();
  y.add_(100);
  sync();
  expect_same(fetched.get().at(0), ramp({3}) * 2, 0);
  expect_same(y, ramp({3}) * 2 + 200, 0);
}

TEST(Graph, ALongChainWithoutACutIsCutByForce) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  torch::Tensor x = torch::zeros({2}, test_device());
  // A deep chain that nobody holds at the end: it is freed without recursion, and not compiled.
  torch::Tensor chain = x;
  for (int i = 0; i < 60'000; ++i) chain = chain + 1;
  chain = x + 5;
  testing::internal::CaptureStderr();
  torch::Tensor last = chain;
  for (int i = 0; i < 40'500; ++i) last = chain + i;
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_GE(counters().forced_cuts, 1);
  EXPECT_THAT(metrics_report(),
              testing::ContainsRegex("the graph was cut [0-9]+ times because no boundary came"));
  EXPECT_THAT(lines, HasSubstr("sync"));
  expect_same(last, torch::full({2}, 40504.0f), 0);
}

TEST(Graph, DroppedWorkIsNotCompiled) {
  if (on_cpu()) GTEST_SKIP();
  test_device();
  sync_and_wait();
  int64_t programs = counters().programs;
  {
    torch::Tensor x = torch::ones({37}, test_device());
    for (int i = 0; i < 1000; ++i) x = x * 2 + 1;
  }
  sync_and_wait();
  EXPECT_EQ(counters().programs, programs);
}

TEST(Session, ASecondOneInTheSameProcess) {
  if (on_cpu()) GTEST_SKIP();
  for (int i = 0; i < 3; ++i) {
    restart();
    torch::Tensor x = ramp({4, 4}).to(test_device());
    expect_same(x.mm(x).sum(), ramp({4, 4}).mm(ramp({4, 4})).sum());
  }
}

TEST(Random, SameSeedSameNumbersWhateverTheCuts) {
  torch::Device device = test_device();
  auto draw = [&](bool cuts) {
    torch::manual_seed(17);
    std::vector<torch::Tensor> drawn;
    for (int i = 0; i < 4; ++i) {
      drawn.push_back(torch::rand({3}, device));
      drawn.push_back(torch::randn({2, 2}, device));
      drawn.push_back(torch::empty({50}, device).bernoulli_(0.5));
      drawn.push_back(torch::nn::functional::dropout(torch::ones({20}, device)));
      if (cuts) cut();
    }
    cut();
    return drawn;
  };
  auto first = draw(false), second = draw(true);
  expect_same(first, second, 0);
  EXPECT_NE(differs(first[0], first[4], 0), "");
}

TEST(ProcessEndDeathTest, TensorsMayOutliveTheDevice) {
  if (on_cpu()) GTEST_SKIP();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static torch::Tensor alive = torch::ones({3}, test_device());
        static torch::Tensor pending = alive + 1;
        sync();
        static torch::Tensor recorded = pending * 2;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        torch::Tensor alive = torch::ones({3}, test_device());
        torch::Tensor recorded = alive * 2;
        sync();
        shutdown();
        alive = torch::Tensor();
        recorded = torch::Tensor();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::tests
