// Recurrent layers where samples (tests/conformance/samples/recurrent.txt) cannot say it: packed sequences,
// whose sizes stay on the CPU, the number of operations, autocast, second derivatives.
#include "sluice/device/padded_layers.h"
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

// Padded sequences of these lengths; what is padding is not a number.
Padded padded_sequences(const std::vector<int64_t>& lengths, int64_t length, torch::Device device) {
  const auto count = static_cast<int64_t>(lengths.size());
  const Tensor mask = torch::arange(length) < torch::tensor(lengths, torch::kLong).unsqueeze(1);
  const Tensor x = ramp({count, length, kFeatures}).masked_fill(mask.logical_not().unsqueeze(2), NAN);
  return {x.to(device), mask.to(device)};
}

template <typename Module>
Tensors run_padded(Module module, const std::vector<int64_t>& lengths, torch::Device device) {
  fill(module, device);
  Padded sequences = padded_sequences(lengths, 6, device);
  sequences.values.requires_grad_();
  const auto [output, state] = forward_padded(module, sequences);
  Tensors results = {output};
  for (const Tensor& one : states_of(state)) results.push_back(one);
  return results_and_gradients(module, sequences.values, results);
}

// The definition: each sequence by itself.
template <typename Module>
Tensors run_each(Module module, const std::vector<int64_t>& lengths) {
  fill(module, torch::kCPU);
  const Padded sequences = padded_sequences(lengths, 6, torch::kCPU);
  const Tensor x = sequences.values.nan_to_num(0).requires_grad_();
  Tensors outputs;
  std::vector<Tensors> states;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Tensor one = x[static_cast<int64_t>(i)].slice(0, 0, lengths[i]).unsqueeze(1);
    const auto [output, state] = module->forward(one);
    outputs.push_back(torch::constant_pad_nd(output.squeeze(1), {0, 0, 0, 6 - lengths[i]}));
    const Tensors last = states_of(state);
    states.resize(last.size());
    for (size_t k = 0; k < last.size(); ++k) states[k].push_back(last[k]);
  }
  Tensors results = {torch::stack(outputs)};
  for (const Tensors& one : states) results.push_back(torch::cat(one, 1));
  return results_and_gradients(module, x, results);
}

template <typename Module, typename Options>
void compare_padded(const char* name) {
  for (const bool both : {false, true}) {
    const std::vector<int64_t> lengths = {2, 5, 1, 6, 5};
    const Tensors expected = run_each(Module(deep<Options>(both).batch_first(false)), lengths);
    for (const torch::Device device : {torch::Device(torch::kCPU), test_device()})
      expect_same(run_padded(Module(deep<Options>(both)), lengths, device), expected, 1e-4,
                  c10::str(name, both ? ", both" : "", " on ", device));
  }
}

TEST(Recurrent, PaddedSequencesAreThoseOfEachByItself) {
  compare_padded<nn::LSTM, nn::LSTMOptions>("lstm");
  compare_padded<nn::GRU, nn::GRUOptions>("gru");
  compare_padded<nn::RNN, nn::RNNOptions>("rnn");
}

TEST(Recurrent, PaddedSequencesOfLengthZeroKeepTheirFirstState) {
  nn::GRU gru(deep<nn::GRUOptions>(true));
  for (const torch::Device device : {torch::Device(torch::kCPU), test_device()}) {
    fill(gru, device);
    const Padded sequences = padded_sequences({0, 3}, 4, device);
    const Tensor first = ramp({4, 2, kHidden}).to(device);
    const auto [output, state] = forward_padded(gru, sequences, first);
    expect_same(output[0].cpu(), torch::zeros({4, 2 * kHidden}));
    expect_same(state.select(1, 0).cpu(), first.select(1, 0).cpu());
    EXPECT_EQ(differs(state.select(1, 1).cpu(), first.select(1, 1).cpu(), 1e-5).empty(), false);
  }
}

TEST(Recurrent, PaddedSequencesOfAnyLengthsShareAProgram) {
  if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has no programs";
  nn::LSTM lstm(deep<nn::LSTMOptions>(true));
  fill(lstm, test_device());
  cut();
  int64_t programs = 0;
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{2, 5, 1}, {6, 6, 6}, {1, 1, 2}, {0, 3, 4}, {4, 4, 1}}) {
    const Padded sequences = padded_sequences(lengths, 6, torch::kCPU);
    const auto [output, state] =
        forward_padded(lstm, {sequences.values.to(test_device()), sequences.mask.to(test_device())});
    output.pow(2).sum().backward();
    lstm->zero_grad();
    cut();
    if (programs == 0) programs = counters().programs;
  }
  EXPECT_EQ(counters().programs, programs);
}

TEST(Recurrent, PaddedSequencesOfOtherShapesAreRefused) {
  for (const torch::Device device : {torch::Device(torch::kCPU), test_device()}) {
    nn::GRU gru(kFeatures, kHidden);
    nn::LSTM projected(nn::LSTMOptions(kFeatures, kHidden).proj_size(2));
    gru->to(device), projected->to(device);
    const Padded good = padded_sequences({2, 1}, 4, device);
    const auto call = [&](const Padded& sequences) {
      return thrown([&] { forward_padded(gru, sequences); });
    };
    EXPECT_THAT(call({good.values.slice(2, 1), good.mask}),
                testing::HasSubstr("expected values [batch, length, 3], found [2, 4, 2]"));
    EXPECT_THAT(call({good.values, good.mask.slice(1, 1)}),
                testing::HasSubstr("expected a mask of bool [2, 4], found Bool [2, 3]"));
    EXPECT_THAT(call({good.values, good.mask.to(torch::kLong)}), testing::HasSubstr("found Long [2, 4]"));
    EXPECT_THAT(thrown([&] { forward_padded(projected, good); }),
                testing::HasSubstr("expected a module without proj_size, found proj_size 2"));
  }
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
