// Recurrent layers where samples (tests/conformance/samples/recurrent.txt) cannot say it: packed sequences,
// whose sizes stay on the CPU, the number of operations, autocast, second derivatives.
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
using torch::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int64_t kFeatures = 3, kHidden = 4;

template <typename Options>
Options deep(bool both) {
  return Options(kFeatures, kHidden).num_layers(2).bidirectional(both);
}

template <typename Module>
void fill(Module& module, torch::Device device) {
  torch::NoGradGuard no_grad;
  double value = 0.02;
  for (Tensor& p : module->parameters()) p.copy_(ramp(p.sizes().vec(), value += 0.005));
  module->to(device);
}

// The states that a layer returns: one tensor, or an LSTM's two.
Tensors states_of(const Tensor& state) { return {state}; }
Tensors states_of(const std::tuple<Tensor, Tensor>& states) {
  return {std::get<0>(states), std::get<1>(states)};
}

// The results of a layer, and the gradients of a loss that reads all of them.
template <typename Module>
Tensors results_and_gradients(Module& module, const Tensor& x, Tensors results) {
  Tensor loss = torch::zeros({}, x.options());
  for (const Tensor& result : results) loss = loss + (result * result).sum();
  loss.backward();
  results.push_back(x.grad());
  for (const Tensor& p : module->parameters()) results.push_back(p.grad());
  return results;
}

template <typename Module>
Tensors run_packed(Module module, const Tensor& lengths, bool sorted, torch::Device device) {
  fill(module, device);
  const Tensor x = ramp({5, lengths.size(0), kFeatures}).to(device).requires_grad_();
  const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths, false, sorted);
  auto [output, states] = module->forward_with_packed_input(packed);
  Tensors results = {output.data()};
  for (const Tensor& state : states_of(states)) results.push_back(state);
  return results_and_gradients(module, x, results);
}

// Sorted sequences through a layer of both directions, others through one of one direction.
template <typename Module, typename Options>
void compare_packed(const char* name) {
  for (const bool both : {false, true}) {
    const std::vector<int64_t> lengths =
        both ? std::vector<int64_t>{5, 5, 2, 1} : std::vector<int64_t>{1, 5, 3};
    const auto run = [&](torch::Device device) {
      return run_packed(Module(deep<Options>(both)), torch::tensor(lengths), /*sorted=*/both, device);
    };
    expect_same(run(test_device()), run(torch::kCPU), 1e-4, c10::str(name, both ? ", both" : ""));
  }
}

TEST(Recurrent, PackedSequencesAreThoseOfTheCpu) {
  compare_packed<nn::LSTM, nn::LSTMOptions>("lstm");
  compare_packed<nn::GRU, nn::GRUOptions>("gru");
  compare_packed<nn::RNN, nn::RNNOptions>("rnn");
}

TEST(Recurrent, PackedSequencesNeedTheirSizesOnTheCpu) {
  const torch::Device device = test_device();
  nn::GRU gru(kFeatures, kHidden);
  gru->to(device);
  const auto call = [&](const Tensor& sizes) {
    return thrown([&] {
      torch::gru(ramp({4, kFeatures}).to(device), sizes, torch::zeros({1, 2, kHidden}).to(device),
                 gru->all_weights(), true, 1, 0.0, true, false);
    });
  };
  EXPECT_EQ(call(torch::tensor({2, 2}, torch::kLong)), "");
  if (on_cpu()) return;
  EXPECT_THAT(
      call(torch::tensor({2, 2}, torch::kLong).to(device)),
      testing::HasSubstr("aten::gru: expected 'data' of 2 dimensions and 'batch_sizes' of one, int64 and on "
                         "the CPU"));
  EXPECT_THAT(call(torch::tensor({1, 3}, torch::kLong)), testing::HasSubstr("never grow, found 3 at step 1"));
  EXPECT_THAT(call(torch::tensor({2, 1}, torch::kLong)), testing::HasSubstr("found 4"));
}

// LibTorch's CPU takes these calls and reads memory that is not the tensors'.
TEST(Recurrent, ShapesThatDoNotFitAreRefusedByName) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Device device = test_device();
  nn::LSTM lstm(kFeatures, kHidden);
  lstm->to(device);
  const auto call = [&](int64_t features, int64_t batch, torch::ScalarType type) {
    const Tensor state = torch::zeros({1, batch, kHidden}, type).to(device);
    return thrown([&] {
      torch::lstm(ramp({5, 2, features}).to(device), {state, state}, lstm->all_weights(), true, 1, 0.0, true,
                  false, false);
    });
  };
  EXPECT_EQ(call(kFeatures, 2, torch::kFloat), "");
  EXPECT_THAT(call(kFeatures + 1, 2, torch::kFloat),
              testing::HasSubstr("aten::lstm: expected params[0] of shape [16, 4], found [16, 3]"));
  EXPECT_THAT(call(kFeatures, 3, torch::kFloat),
              testing::HasSubstr("expected 'hx' of shape [1, 2, hidden size], found [1, 3, 4]"));
  EXPECT_THAT(call(kFeatures, 2, torch::kDouble), testing::HasSubstr("expected 'hx' of Float as the input"));
}

// What a training step of two layers in both directions records, forward and backward.
template <typename Module>
int64_t recorded(Module module, int64_t steps) {
  fill(module, test_device());
  const Tensor x = ramp({steps, 2, kFeatures}).to(test_device());
  cut();
  const Counters before = counters();
  std::get<0>(module->forward(x)).sum().backward();
  cut();
  const Counters after = counters();
  EXPECT_EQ(after.programs, before.programs + 1);
  EXPECT_EQ(after.fallbacks, before.fallbacks);
  return after.recorded - before.recorded;
}

TEST(Recurrent, LongSequencesRecordNoMoreThanShortOnes) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU records nothing";
  const int64_t lstm = recorded(nn::LSTM(deep<nn::LSTMOptions>(true)), 2);
  EXPECT_EQ(recorded(nn::LSTM(deep<nn::LSTMOptions>(true)), 300), lstm);
  EXPECT_LT(lstm, 200);
  const int64_t gru = recorded(nn::GRU(deep<nn::GRUOptions>(true)), 2);
  EXPECT_EQ(recorded(nn::GRU(deep<nn::GRUOptions>(true)), 300), gru);
  const int64_t rnn = recorded(nn::RNN(deep<nn::RNNOptions>(true)), 2);
  EXPECT_EQ(recorded(nn::RNN(deep<nn::RNNOptions>(true)), 300), rnn);
}

// Under autocast the products are bf16's, and gated layers keep their state, and so their output, in f32.
template <typename Module>
void compare_autocast(Module module, torch::ScalarType expected, const char* name) {
  const torch::Device device = test_device();
  fill(module, device);
  const Tensor x = ramp({5, 2, kFeatures}).to(device).requires_grad_();
  const auto run = [&](bool autocast) {
    Tensor y;
    {
      Autocast scope(device, autocast);
      y = std::get<0>(module->forward(x));
      EXPECT_EQ(y.scalar_type(), autocast ? expected : torch::kFloat) << name;
      y = y.to(torch::kFloat);
    }
    x.mutable_grad() = Tensor();
    module->zero_grad();
    Tensors results = results_and_gradients(module, x, {y});
    for (Tensor& result : results) result = result.detach().cpu();
    return results;
  };
  const Tensors rough = run(true), exact = run(false);
  expect_same(rough, exact, 0.05, name);
  EXPECT_NE(differs(rough[0], exact[0], 1e-5), "") << name;
}

TEST(Recurrent, AutocastMultipliesInLowerPrecision) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has its own types here";
  compare_autocast(nn::LSTM(deep<nn::LSTMOptions>(false)), torch::kFloat, "lstm");
  compare_autocast(nn::GRU(deep<nn::GRUOptions>(true)), torch::kFloat, "gru");
  compare_autocast(nn::RNN(deep<nn::RNNOptions>(false)), torch::kBFloat16, "rnn");
}

TEST(Recurrent, RunsInInferenceMode) {
  const auto run = [](torch::Device device) {
    nn::LSTM module(deep<nn::LSTMOptions>(true));
    fill(module, device);
    c10::InferenceMode guard;
    auto [output, states] = module->forward(ramp({5, 2, kFeatures}).to(device));
    return Tensors{output.cpu(), std::get<0>(states).cpu(), std::get<1>(states).cpu()};
  };
  expect_same(run(test_device()), run(torch::kCPU), 1e-5);
}

// The loss reads the last state alone, as classifiers do.
TEST(Recurrent, GradientsOfTheLastStateAlone) {
  const auto run = [](torch::Device device) {
    nn::LSTM module(deep<nn::LSTMOptions>(true));
    fill(module, device);
    const Tensor x = ramp({5, 2, kFeatures}).to(device).requires_grad_();
    const auto states = std::get<1>(module->forward(x));
    return results_and_gradients(module, x, {std::get<0>(states)});
  };
  expect_same(run(test_device()), run(torch::kCPU), 1e-4);
}

TEST(Recurrent, ASecondDerivativeIsRefusedWithAdvice) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has its own rules";
  nn::LSTM module(kFeatures, kHidden);
  fill(module, test_device());
  const Tensor x = ramp({5, 2, kFeatures}).to(test_device()).requires_grad_();
  const Tensor loss = std::get<0>(module->forward(x)).sum();
  EXPECT_THAT(thrown([&] { torch::autograd::grad({loss}, {x}, {}, true, true); }),
              testing::HasSubstr("no second derivative (create_graph); build the layer of cells"));
}

}  // namespace
}  // namespace sluice::tests
