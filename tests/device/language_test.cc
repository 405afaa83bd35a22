// Language models on the device: equal to LibTorch's CPU, without fallbacks and without recompiling.
#include "sluice/models/language/language.h"

#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

constexpr int64_t kBatch = 3, kLength = 12;
constexpr int kSteps = 6;

struct Found {
  std::vector<torch::Tensor> losses, parameters;
  int64_t later_programs = 0;  // compiled behind the third step
};

torch::Tensor loss_of(models::LanguageModel& model, const models::LanguageInput& input) {
  const torch::Tensor logits = model.forward(input).slice(1, 0, kLength - 1).flatten(0, 1);
  torch::Tensor wanted = input.ids.slice(1, 1, kLength).flatten();
  if (input.mask.defined())
    wanted = wanted.masked_fill(input.mask.slice(1, 1, kLength).flatten().logical_not(), -100);
  return torch::nn::functional::cross_entropy(logits, wanted);
}

enum class Filled { kWholly, kWithAMask, kWithDocuments };
const char* name_of(Filled filled) {
  return filled == Filled::kWholly ? "" : filled == Filled::kWithAMask ? " with a mask" : " with documents";
}

models::LanguageInput input_of(Filled filled, int step, torch::Device device) {
  models::LanguageInput input = {torch::randint(3, 20, {kBatch, kLength}, torch::kLong).to(device)};
  if (filled == Filled::kWithAMask) {
    const torch::Tensor mask = torch::ones({kBatch, kLength}, torch::kBool);
    mask[1].slice(0, 4 + step, kLength).zero_();
    mask[2].slice(0, 0, 3).zero_();
    input.mask = mask.to(device);
  }
  if (filled == Filled::kWithDocuments) {
    // Two documents in each row; the last row's second one ends early.
    const torch::Tensor place = torch::arange(kLength, torch::kInt),
                        first = torch::tensor({{5}, {1}, {step + 2}}, torch::kInt);
    torch::Tensor documents = place.ge(first).to(torch::kInt) + 1,
                  positions = place - first * place.ge(first);
    documents[2].slice(0, kLength - 2, kLength).zero_();
    positions[2].slice(0, kLength - 2, kLength).zero_();
    input.documents = documents.to(device);
    input.positions = positions.to(device);
  }
  return input;
}

Found train(const std::string& preset, Filled filled, torch::Device device) {
  torch::manual_seed(5);
  const models::LanguageModelPtr model = models::language_model(models::language_preset(preset));
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(0.1));
  Found found;
  int64_t programs = 0;
  for (int step = 0; step < kSteps; ++step) {
    const models::LanguageInput input = input_of(filled, step, device);
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(*model, input);
    loss.backward();
    optimizer.step();
    found.losses.push_back(loss.detach());
    cut();
    if (step == 2 && !on_cpu()) programs = counters().programs;
  }
  if (!on_cpu()) found.later_programs = counters().programs - programs;
  for (const torch::Tensor& parameter : model->parameters()) found.parameters.push_back(parameter.detach());
  return found;
}

class Language : public testing::TestWithParam<const char*> {};

TEST_P(Language, TrainsAsOnTheCpuWithoutFallbacks) {
  const torch::Device device = test_device();
  for (const Filled filled : {Filled::kWholly, Filled::kWithAMask, Filled::kWithDocuments}) {
    const Found expected = train(GetParam(), filled, torch::kCPU);
    const int64_t fallbacks = counters().fallbacks;
    const Found found = train(GetParam(), filled, device);
    const std::string where = c10::str(GetParam(), name_of(filled));
    expect_same(found.losses, expected.losses, 1e-4, where + " losses");
    EXPECT_GT(expected.losses.front().item<double>() - expected.losses.back().item<double>(), 0.1) << where;
    for (size_t i = 0; i < expected.parameters.size(); ++i)
      EXPECT_LT((found.parameters[i].cpu() - expected.parameters[i]).abs().max().item<double>(), 2e-3)
          << where << " parameter " << i;
    if (on_cpu()) continue;
    EXPECT_EQ(counters().fallbacks, fallbacks) << where << "\n" << metrics_report();
    EXPECT_EQ(found.later_programs, 0) << where << "\n" << metrics_report();
  }
}

TEST_P(Language, OutlivesTheDevice) {
  torch::NoGradGuard no_grad;
  const models::LanguageModelPtr model = models::language_model(models::language_preset(GetParam()));
  const torch::Tensor ids = torch::randint(3, 20, {kBatch, kLength}, torch::kLong),
                      expected = model->forward(ids);
  for (int start = 0; start < 2; ++start) {
    restart();
    const torch::Device device = test_device();
    model->to(device);
    expect_same(model->forward(ids.to(device)), expected, 1e-4);
    model->to(torch::kCPU);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Language, testing::Values("llama-tiny", "gpt2-tiny", "roberta-tiny"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

// In training each layer's attention is one call with its dropout, and so is its gradient.
TEST(LanguageModels, DropoutIsPartOfAttention) {
  if (on_cpu()) GTEST_SKIP() << "it has no calls";
  for (const char* type : {"gpt2", "llama", "roberta"}) {
    const DumpedPrograms programs;
    models::LanguageOptions options = models::language_preset(std::string(type) + "-tiny");
    options.attention_dropout = 0.1;
    const models::LanguageModelPtr model = models::language_model(options);
    model->to(test_device());
    const torch::Tensor ids = torch::randint(3, 20, {12, 48}, torch::kLong).to(test_device());
    model->eval();
    model->forward({ids}).sum().backward();
    cut();
    EXPECT_EQ(programs.calls("dropout = 1"), 0) << type;
    model->train();
    model->forward({ids}).sum().backward();
    cut();
    EXPECT_EQ(programs.calls("dropout = 1"), 2 * options.layers) << type;
  }
  restart();
}

// Trains with gradients that are scaled by their norm, and returns the losses and the weights.
std::vector<torch::Tensor> train_clipped(torch::Device device) {
  torch::manual_seed(5);
  models::LanguageOptions options = models::language_preset("llama-mini");
  options.width = 320;
  options.layers = 2;
  options.feedforward = 480;
  options.vocabulary = 509;
  options.tied = false;
  const models::LanguageModelPtr model = models::language_model(options);
  model->to(device);
  std::vector<torch::Tensor> parameters = model->parameters(), found;
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.3));
  for (int step = 0; step < 4; ++step) {
    const torch::Tensor ids = torch::randint(0, options.vocabulary, {8, kLength}, torch::kLong).to(device);
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(*model, {ids});
    loss.backward();
    std::vector<torch::Tensor> norms;
    for (const torch::Tensor& parameter : parameters) norms.push_back(parameter.grad().norm());
    const torch::Tensor scale = (torch::stack(norms).norm() + 1e-6).reciprocal().clamp_max(1);
    for (const torch::Tensor& parameter : parameters) parameter.grad().mul_(scale);
    optimizer.step();
    found.push_back(loss.detach());
    cut();
  }
  for (const torch::Tensor& parameter : parameters) found.push_back(parameter.detach().cpu());
  return found;
}

// The second step's products must see the weights that the first one wrote in place (pjrt/client.cc).
TEST(LanguageModels, ClippedUpdatesInPlaceAreThoseOfTheCpu) {
  const std::vector<torch::Tensor> expected = train_clipped(torch::kCPU);
  for (const bool kernels : {false, true}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    restart(options);
    expect_same(train_clipped(test_device()), expected, 2e-6, kernels ? "with kernels" : "without kernels");
  }
  restart();
}

}  // namespace
}  // namespace sluice::tests
