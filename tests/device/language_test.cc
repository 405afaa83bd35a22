// Language models on the device: equal to LibTorch's CPU, without fallbacks and without recompiling.
#include "sluice/models/language/language.h"

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

constexpr int64_t kBatch = 3, kLength = 12;
constexpr int kSteps = 6;

struct Found {
  std::vector<torch::Tensor> losses, parameters;
  int64_t later_programs = 0;  // compiled behind the third step
};

torch::Tensor loss_of(models::LanguageModel& model, const torch::Tensor& ids, const torch::Tensor& mask) {
  const torch::Tensor logits = model.forward(ids, mask).slice(1, 0, kLength - 1).flatten(0, 1);
  torch::Tensor wanted = ids.slice(1, 1, kLength).flatten();
  if (mask.defined()) wanted = wanted.masked_fill(mask.slice(1, 1, kLength).flatten().logical_not(), -100);
  return torch::nn::functional::cross_entropy(logits, wanted);
}

Found train(const std::string& preset, bool masked, torch::Device device) {
  torch::manual_seed(5);
  const models::LanguageModelPtr model = models::language_model(models::language_preset(preset));
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(0.1));
  Found found;
  int64_t programs = 0;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor ids = torch::randint(3, 20, {kBatch, kLength}, torch::kLong);
    torch::Tensor mask;
    if (masked) {
      mask = torch::ones({kBatch, kLength}, torch::kBool);
      mask[1].slice(0, 4 + step, kLength).zero_();
      mask[2].slice(0, 0, 3).zero_();
      mask = mask.to(device);
    }
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(*model, ids.to(device), mask);
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
  for (const bool masked : {false, true}) {
    const Found expected = train(GetParam(), masked, torch::kCPU);
    const int64_t fallbacks = counters().fallbacks;
    const Found found = train(GetParam(), masked, device);
    const std::string where = c10::str(GetParam(), masked ? " with a mask" : "");
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

INSTANTIATE_TEST_SUITE_P(Models, Language, testing::Values("llama-tiny", "gpt2-tiny", "roberta-tiny"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

}  // namespace
}  // namespace sluice::tests
