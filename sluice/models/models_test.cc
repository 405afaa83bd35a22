#include "sluice/models/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "sluice/base/error.h"
#include "sluice/base/text/strings.h"

namespace sluice::models {
namespace {

// Lists and numbers written by tests/python/model_oracle.py from torchvision's and torch.nn's own
// definitions.
std::string oracle(const std::string& name) {
  std::ifstream file(std::string(SLUICE_MODELS_TESTDATA) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::map<std::string, torch::Tensor> state(const Model& model) {
  std::map<std::string, torch::Tensor> result;
  for (const auto& item : model.named_parameters()) result[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) result[item.key()] = item.value();
  return result;
}

std::string listing(const Model& model) {
  std::ostringstream out;
  for (const auto& [name, tensor] : state(model)) {
    out << name;
    for (int64_t size : tensor.sizes()) out << ' ' << size;
    out << '\n';
  }
  return out.str();
}

// The numbers of model_oracle.py's fill().
void fill(Model& model) {
  torch::NoGradGuard no_grad;
  int k = -1;
  for (auto& [name, tensor] : state(model)) {
    ++k;
    if (!tensor.is_floating_point()) continue;
    int64_t n = tensor.numel();
    torch::Tensor wave = torch::sin(torch::arange(n, torch::kFloat64) * 0.7 + k);
    if (base::ends_with(name, "running_var"))
      wave = 1 + 0.5 * wave;
    else if (tensor.dim() > 1)
      wave = wave * std::sqrt(2.0 / (static_cast<double>(n) / static_cast<double>(tensor.size(0))));
    else
      wave = (base::ends_with(name, "weight") ? 1.0 : 0.0) + 0.1 * wave;
    tensor.copy_(wave.reshape(tensor.sizes()));
  }
}

torch::Tensor expected(const std::string& model, int64_t rows) {
  std::istringstream lines(oracle("outputs.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != model) continue;
    std::vector<double> values;
    for (double value; words >> value;) values.push_back(value);
    return torch::tensor(values, torch::kFloat64).reshape({rows, -1});
  }
  ADD_FAILURE() << "no outputs of " << model;
  return {};
}

TEST(Models, ResNetsHaveTorchvisionsNamesAndShapes) {
  EXPECT_EQ(listing(*resnet18()), oracle("resnet18.txt"));
  EXPECT_EQ(listing(*resnet34()), oracle("resnet34.txt"));
  EXPECT_EQ(listing(*resnet50()), oracle("resnet50.txt"));
  EXPECT_EQ(listing(*resnet101()), oracle("resnet101.txt"));
  EXPECT_EQ(listing(*resnet152()), oracle("resnet152.txt"));
}

TEST(Models, ResNetsComputeWhatTorchvisionComputes) {
  torch::NoGradGuard no_grad;
  torch::Tensor image =
      torch::sin(torch::arange(2 * 3 * 64 * 64, torch::kFloat64) * 0.01).reshape({2, 3, 64, 64});
  for (const char* name : {"resnet18", "resnet50"}) {
    ModelPtr model = create(name, {10, 3, 64});
    model->to(torch::kFloat64);
    model->eval();
    fill(*model);
    torch::Tensor want = expected(name, 2);
    torch::Tensor got = model->forward(image.to(torch::kFloat32).to(torch::kFloat64));
    EXPECT_TRUE(torch::allclose(got, want, 1e-4, 1e-4)) << name << "\n" << got << "\n" << want;
  }
}

TEST(Models, TransformerComputesWhatTorchNnComputes) {
  TransformerOptions options;
  options.classes = 3;
  options.layers = 2;
  options.width = 16;
  options.heads = 2;
  options.feedforward = 32;
  options.dropout = 0;
  options.vocabulary = 11;
  options.max_length = 7;
  options.padding = 0;
  ModelPtr model = transformer(options);
  model->to(torch::kFloat64);
  fill(*model);
  torch::Tensor tokens = torch::tensor({{1, 2, 3, 4, 5}, {6, 7, 10, 0, 0}}, torch::kInt64);
  torch::Tensor got = model->forward(tokens);
  EXPECT_TRUE(torch::allclose(got, expected("transformer", 2), 1e-4, 1e-4)) << got;
}

TEST(Models, InitialisationIsTorchvisions) {
  torch::manual_seed(1);
  auto tensors = state(*resnet18(10));
  // Normal numbers of deviation sqrt(2 / fan out); fan out = 128 · 3 · 3.
  EXPECT_NEAR(tensors["layer2.0.conv2.weight"].std().item<double>(), std::sqrt(2.0 / (128 * 9)), 1e-3);
  EXPECT_TRUE(torch::equal(tensors["bn1.weight"], torch::ones({64})));
  EXPECT_TRUE(torch::equal(tensors["layer4.1.bn2.bias"], torch::zeros({512})));
  EXPECT_LE(tensors["fc.weight"].abs().max().item<double>(), 1 / std::sqrt(512.0));
}

TEST(Models, EveryNameMakesAModelThatTrains) {
  for (const std::string& name : names()) {
    if (name == "resnet101" || name == "resnet152" || name == "cifar_resnet110")
      continue;  // big, but no other kind
    ModelPtr model = create(name, {7, 1, 16});
    torch::Tensor out = model->forward(torch::randn({2, 1, 16, 16}));
    EXPECT_EQ(out.sizes(), (std::vector<int64_t>{2, 7})) << name;
    out.sum().backward();
    for (const auto& item : model->named_parameters())
      EXPECT_TRUE(item.value().grad().defined()) << name << " " << item.key();
  }
}

// With dropout, and positions that are masked.
TEST(Models, ATransformerThatIsComputedAgainHasTheSameGradients) {
  TransformerOptions options;
  options.vocabulary = 20;
  options.padding = 0;
  options.layers = 3;
  std::vector<torch::Tensor> results[2];
  for (const bool recompute : {false, true}) {
    options.recompute = recompute;
    torch::manual_seed(3);
    const ModelPtr model = transformer(options);
    const torch::Tensor loss = model->forward(torch::arange(24).remainder(5).view({2, 12})).square().sum();
    loss.backward();
    results[recompute].push_back(loss.detach());
    for (const auto& parameter : model->parameters()) results[recompute].push_back(parameter.grad());
  }
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(torch::equal(results[0][i], results[1][i])) << i;
  EXPECT_NO_THROW(create("transformer", {.recompute = true}));
  EXPECT_THROW(create("resnet18", {.recompute = true}), Error);
}

TEST(Models, TransformerLayersStartDifferent) {
  auto tensors = state(*create("transformer", {10, 3, 32}));
  EXPECT_FALSE(
      torch::equal(tensors["encoder.layers.0.linear1.weight"], tensors["encoder.layers.1.linear1.weight"]));
}

TEST(Models, UnknownNameProposesTheNearest) {
  try {
    create("resnet5O", {10, 3, 32});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean \"resnet50\"?"));
  }
}

TEST(Models, SenselessOptionsAreErrors) {
  EXPECT_THROW(cifar_resnet(19), Error);
  EXPECT_THROW(create("resnet18", {0, 3, 32}), Error);
  EXPECT_THROW(create("lenet", {10, 1, 8}), Error);
  TransformerOptions options;
  options.heads = 3;
  EXPECT_THROW(transformer(options), Error);
}

}  // namespace
}  // namespace sluice::models
