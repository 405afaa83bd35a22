// Profiles by layer, of trainings on XLA's CPU plugin with its library kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Loss = std::function<torch::Tensor()>;

// The text of the profile's file with this ending; "" where there is none.
std::string file_in(const std::string& folder, const std::string& ending) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path();
    if (path.ends_with(ending)) return base::value_or_throw(base::read_file(path));
  }
  return "";
}

struct Pages {
  std::string layers, words;
};

Session xla_session() {
  Options options;
  options.device = "xla";
  options.xla.plugin = "cpu";
  return start(options);
}

Pages profile(Session& session, const std::vector<torch::Tensor>& parameters, const Loss& loss) {
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  torch::optim::SGD optimizer(parameters, 0.01);
  session.profile(5, 9, folder.path());
  for (int i = 0; i < 9; ++i) {
    const torch::Tensor value = loss();
    value.backward();
    session.step(optimizer);
    optimizer.zero_grad();
    value.item();  // the device has computed the whole step, and nothing of the next one
  }
  return {file_in(folder.path(), ".layers.json"), file_in(folder.path(), ".txt")};
}

const json* find(const json& page, const std::string& name, const std::string& pass) {
  for (const json& row : page.at("rows"))
    if (row.at("kind") == "layer" && row.at("name") == name && row.value("pass", "") == pass) return &row;
  return nullptr;
}

// A row with this number of calls and of floating-point operations in a step.
void expect_row(const json& page, const std::string& name, const std::string& pass, double calls,
                double flops) {
  const json* const row = find(page, name, pass);
  ASSERT_NE(row, nullptr) << name << " " << pass << " in " << page.dump(1);
  EXPECT_NEAR(row->at("calls").get<double>(), calls, 0.01 * calls) << name << " " << pass;
  EXPECT_NEAR(row->at("flops").get<double>(), flops, 0.01 * flops) << name << " " << pass;
  EXPECT_GT(row->at("bytes").get<double>(), 0);
  EXPECT_GT(row->at("ms").get<double>(), 0);
}

struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 32, 3).padding(1)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(32));
    conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 32, 3).padding(1)));
    fc1 = register_module("fc1", torch::nn::Linear(32 * 16 * 16, 128));
    fc2 = register_module("fc2", torch::nn::Linear(128, 64));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = conv2(torch::relu(bn1(conv1(x))));
    return fc2(torch::relu(fc1(torch::relu(x).flatten(1))));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Net);

TEST(LayerProfile, KernelsAndWhatLiesBetweenAreTheStep) {
  Session session = xla_session();
  Net net;
  net->to(session.device());
  session.name(*net);
  const torch::Tensor x = torch::randn({32, 8, 16, 16}).to(session.device());
  const Pages pages = profile(session, net->parameters(), [&] { return net(x).pow(2).mean(); });
  ASSERT_NE(pages.layers, "") << pages.words;
  const json page = json::parse(pages.layers);
  const double step = page.at("ms"), kernels = page.at("layers_ms"), compiled = page.at("compiled_ms");
  EXPECT_NEAR(kernels + compiled + page.at("no_program_ms").get<double>(), step, 1e-6 * step) << page.dump(1);
  EXPECT_GT(kernels, 0) << page.dump(1);
  EXPECT_GT(compiled, 0) << page.dump(1);
  double sum = page.at("no_program_ms");
  for (const json& row : page.at("rows")) sum += row.at("ms").get<double>();
  EXPECT_NEAR(sum, step, 1e-6 * step);

  constexpr double kPixels = 32 * 16 * 16;
  expect_row(page, "conv1", "forward", 1, 2 * kPixels * 8 * 9 * 32);
  expect_row(page, "conv2", "forward", 1, 2 * kPixels * 32 * 9 * 32);
  expect_row(page, "conv1", "backward", 1, 2 * kPixels * 8 * 9 * 32);  // x needs no gradient
  const json* const conv2 = find(page, "conv2", "backward");
  ASSERT_NE(conv2, nullptr);
  EXPECT_GT(conv2->at("flops").get<double>(),
            find(page, "conv2", "forward")->at("flops").get<double>() * 1.2);
  expect_row(page, "fc1", "forward", 1, 2.0 * 32 * 8192 * 128);
  // The weight's gradient, and that of the ReLU behind it, which is a part of fc2's product. The other
  // product of fc1's is done with the ReLU's gradient in front of it.
  expect_row(page, "fc1", "backward", 2, 2.0 * 32 * 8192 * 128 + 2.0 * 32 * 128 * 64);
  EXPECT_NE(find(page, "bn1", "forward"), nullptr) << page.dump(1);
  EXPECT_NE(find(page, "bn1", "backward"), nullptr) << page.dump(1);
  EXPECT_THAT(pages.words, HasSubstr("\nBy layer, a step: library kernels "));
  EXPECT_THAT(pages.words, HasSubstr("  conv2 backward\n"));
  EXPECT_THAT(pages.words, HasSubstr("  XLA, "));
}

// The gradient of the first layer's weight reads no parameter: only autograd knows whose it is.
TEST(LayerProfile, AGradientBelongsToTheLayerThatItIsOf) {
  Session session = xla_session();
  torch::nn::Sequential net;
  for (const char* name : {"first", "second"}) net->push_back(name, torch::nn::Linear(300, 300));
  net->to(session.device());
  session.name(*net);
  const torch::Tensor x = torch::randn({200, 300}).to(session.device());
  const Pages pages = profile(session, net->parameters(), [&] { return net->forward(x).pow(2).mean(); });
  ASSERT_NE(pages.layers, "") << pages.words;
  const json page = json::parse(pages.layers);
  constexpr double kProduct = 2.0 * 200 * 300 * 300;
  expect_row(page, "first", "forward", 1, kProduct);
  expect_row(page, "second", "forward", 1, kProduct);
  // With the sums that are the biases' gradients.
  expect_row(page, "first", "backward", 2, kProduct);
  expect_row(page, "second", "backward", 3, 2 * kProduct);
}

TEST(LayerProfile, WithoutALayerTheOperationHasItsPlace) {
  Session session = xla_session();
  torch::Tensor w = torch::randn({300, 300}).to(session.device()).requires_grad_();
  const torch::Tensor x = torch::randn({200, 300}).to(session.device());
  const Pages pages = profile(session, {w}, [&] { return torch::mm(x, w).pow(2).mean(); });
  ASSERT_NE(pages.layers, "") << pages.words;
  std::vector<std::string> names;
  const json page = json::parse(pages.layers);
  for (const json& row : page.at("rows"))
    if (row.value("pass", "") == "forward") names.push_back(row.at("name"));
  EXPECT_THAT(names, ::testing::Contains(StartsWith("aten::mm, first called at layer_profile_test.cc:")));
}

}  // namespace
}  // namespace sluice
