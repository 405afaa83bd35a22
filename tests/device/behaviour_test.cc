// What is the device's own: its errors, threads, fallbacks and counts, when the graph is cut, how the process
// ends.
#include <c10/core/AutogradState.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

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

// The storage of a pending value of no elements gets its memory, and waits for its next value once.
TEST(Resize, AnEmptyPendingTensorGrows) {
  torch::Device device = test_device();
  torch::Tensor grown = torch::ones({0}, device), other = torch::ones({2}, device);
  grown.resize_({3});
  grown.fill_(2);
  expect_same(grown + 1, torch::full({3}, 3.0f), 0);
  expect_same(other, torch::ones({2}), 0);
  expect_same(grown, torch::full({3}, 2.0f), 0);
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

// Whose thread has recorded nothing: autograd's own does it, also where the CPU's backward pass was the
// first.
TEST(Backward, MayBeCalledByAnotherThread) {
  torch::Tensor x = ramp({3}).to(test_device()).requires_grad_();
  torch::Tensor y = x * 2, gradient = torch::ones_like(y);
  std::thread other([&] { y.backward(gradient); });
  other.join();
  expect_same(x.grad(), torch::full({3}, 2.0f), 0);
}

// LibTorch's own code asks the host whether a factor is 0.
TEST(Backward, OfACumulativeProductReadsNothing) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Tensor factors = torch::tensor({{1.f, -2.f, 3.f}, {2.f, 0.f, 0.5f}, {0.f, 0.f, 2.f}});
  const auto gradients = [&](torch::Device device) {
    const torch::Tensor x = factors.to(device).requires_grad_(), y = torch::cumprod(x, 1);
    const torch::Tensor weights = ramp({3, 3}).to(device);
    return torch::autograd::grad({(y * weights).sum()}, {x})[0];
  };
  restart();
  const Counters before = counters();
  const torch::Tensor found = gradients(test_device());
  EXPECT_EQ(counters().host_reads, before.host_reads);
  EXPECT_EQ(counters().cuts, before.cuts);
  expect_same(found, gradients(torch::kCPU), 1e-6);
}

TEST(Backward, OfACumulativeProductHasAGradient) {
  const torch::Tensor factors = torch::tensor({{1.f, -2.f, 3.f}, {2.f, 0.f, 0.5f}, {0.f, 0.f, 2.f}});
  const auto second = [&](torch::Device device) {
    const torch::Tensor x = factors.to(device).requires_grad_(), weights = ramp({3, 3}).to(device);
    const torch::Tensor loss = (torch::cumprod(x, 1) * weights).sum();
    const torch::Tensor first = torch::autograd::grad({loss}, {x}, {}, std::nullopt, true)[0];
    return torch::autograd::grad({first.pow(2).sum()}, {x})[0];
  };
  expect_same(second(test_device()), second(torch::kCPU), 1e-6);
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
      {"airy_ai", [](const auto& x) { return torch::special_airy_ai(x); }},
      {"linalg_eig", [](const auto& x) { return std::get<0>(torch::linalg_eig(x.narrow(1, 0, 3))).abs(); }},
      {"linalg_eigvals", [](const auto& x) { return torch::linalg_eigvals(x.narrow(1, 0, 3)).abs(); }},
      {"linalg_ldl_factor", [](const auto& x) { return std::get<0>(torch::linalg_ldl_factor(x.mm(x.t()))); }},
      {"unique_consecutive",
       [](const auto& x) { return std::get<0>(torch::unique_consecutive(x.flatten().round())); }},
      {"unique_dim", [](const auto& x) { return std::get<0>(torch::unique_dim(x.round(), 0)); }},
      {"legendre_polynomial_p", [](const auto& x) { return torch::special_legendre_polynomial_p(x, 3); }},
      {"bessel_j0", [](const auto& x) { return torch::special_bessel_j0(x); }},
      {"bessel_j1", [](const auto& x) { return torch::special_bessel_j1(x); }},
      {"modified_bessel_k0", [](const auto& x) { return torch::special_modified_bessel_k0(x.abs()); }},
      {"spherical_bessel_j0", [](const auto& x) { return torch::special_spherical_bessel_j0(x); }},
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
  EXPECT_GE(counters().fallbacks, 4);
  EXPECT_GE(fallback_counts().size(), 4u);
}

TEST(Fallback, WarnsOncePerOperationAndCounts) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  reset_metrics();
  torch::Tensor x = (ramp({3, 4}) + 0.1).to(test_device());
  const std::string lines = warned([&] {
    for (int i = 0; i < 3; ++i) expect_same(torch::special_airy_ai(x), torch::special_airy_ai(x.cpu()), 1e-4);
  });
  EXPECT_EQ(count_of("aten::special_airy_ai", lines), 1u) << lines;
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

TEST(Graph, ALongChainWithoutACutIsCutByForce) {
  if (on_cpu()) GTEST_SKIP();
  restart();
  torch::Tensor x = torch::zeros({2}, test_device());
  // A deep chain that nobody holds at the end: it is freed without recursion, and not compiled.
  torch::Tensor chain = x;
  for (int i = 0; i < 60'000; ++i) chain = chain + 1;
  chain = x + 5;
  torch::Tensor last = chain;
  const std::string lines = warned([&] {
    for (int i = 0; i < 40'500; ++i) last = chain + i;
  });
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

// A plugin does not survive a fork(): the child gets an error at each use, and ends by itself.
TEST(Fork, TheChildGetsAnError) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Tensor x = torch::ones({3}, test_device()), pending = x + 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int wrong = 0;
    const auto refuses = [&wrong](const std::function<void()>& use) {
      try {
        use();
        ++wrong;
      } catch (const std::exception& error) {
        if (std::string(error.what()).find("forked") == std::string::npos) ++wrong;
      }
    };
    refuses([&] { (x + 1).cpu(); });
    refuses([&] { x.cpu(); });
    refuses([&] { pending.cpu(); });
    refuses([] {
      torch::ones({3}, torch::Device(torch::kXLA, 0));
      sync();
      init();
    });
    shutdown();
    if (is_initialized()) ++wrong;
    ::_exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pending.cpu()[0].item<float>(), 2);
}

TEST(Fork, AChildThatUsesNothingEnds) {
  if (on_cpu()) GTEST_SKIP();
  GTEST_FLAG_SET(death_test_style, "fast");
  const torch::Tensor x = torch::ones({3}, test_device()), pending = x + 1;
  EXPECT_EXIT(
      {
        ::alarm(60);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Shutdown, ATensorOfBeforeSaysSo) {
  if (on_cpu()) GTEST_SKIP();
  torch::Tensor x = torch::ones({3}, test_device());
  cut();
  restart();
  const auto said = testing::HasSubstr("before sluice::shutdown()");
  EXPECT_THAT([&] { (x + 1).cpu(); }, testing::ThrowsMessage<std::exception>(said));
  EXPECT_THAT([&] { x.cpu(); }, testing::ThrowsMessage<std::exception>(said));
  EXPECT_THAT([&] { x.mul_(2); }, testing::ThrowsMessage<std::exception>(said));
  x = torch::ones({3}, test_device());
  EXPECT_EQ((x + 1).cpu()[0].item<float>(), 2);
}

// LibTorch's own gelu has NaN and infinity here where the CPU has AVX-512, so conformance leaves these out.
TEST(Values, GeluOfLargeNumbers) {
  if (on_cpu()) GTEST_SKIP();
  const float inf = std::numeric_limits<float>::infinity();
  const torch::Tensor y = torch::gelu(torch::tensor({inf, 3e38f}).to(test_device())).cpu();
  EXPECT_EQ(y[0].item<float>(), inf);
  EXPECT_EQ(y[1].item<float>(), 3e38f);
}

// XLA knows these zeros when it compiles, and must not divide them.
TEST(Values, AnglesOfZerosThatAreKnown) {
  const auto angles = [](torch::Device device) {
    const torch::Tensor i = torch::arange(3).to(device), zero = (i ^ i).to(torch::kFloat);
    return torch::stack({torch::atan2(zero, zero), torch::atan2(zero, -zero), torch::atan2(-zero, -zero),
                         torch::angle(torch::complex(-zero, zero)), torch::atan2(-zero, zero) + 1});
  };
  expect_same(angles(test_device()), angles(torch::kCPU), 1e-6);
}

// A gradient of 1 and a count of 0, and a mask that was converted: NaN, and not what a selection leaves.
TEST(Values, NothingOfNoEqualsIsNaN) {
  const auto gradients = [](torch::Device device) {
    torch::Tensor x = torch::tensor({1.f, NAN, 2.f, 2.f, 0.f, 1.f}).view({2, 3}).to(device);
    x.requires_grad_();
    (x.amax(1) + x.detach().mul(x.detach().gt(0).to(torch::kFloat)).sum(1)).sum().backward();
    const torch::Tensor none =
        torch::full({3}, INFINITY).to(device) * torch::zeros({3}).to(device).gt(0).to(torch::kFloat);
    return torch::cat({x.grad().flatten(), none});
  };
  expect_same(gradients(test_device()), gradients(torch::kCPU), 1e-6);
}

}  // namespace
}  // namespace sluice::tests
