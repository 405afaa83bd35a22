// Models that are made without values: their start, over meshes and on one device, against models that are
// made on the CPU.
#include "sluice/device/start/without_values.h"

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "sluice/models/language/language.h"
#include "sluice/models/models.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace nn = torch::nn;

using Values = std::map<std::string, torch::Tensor>;
using Maker = std::function<std::shared_ptr<nn::Module>()>;

constexpr uint64_t kSeed = 11;

Values values_of(const nn::Module& model) {
  Values values;
  for (const auto& item : model.named_parameters()) values[item.key()] = item.value().detach().cpu();
  for (const auto& item : model.named_buffers()) values[item.key()] = item.value().detach().cpu();
  return values;
}

// The next number of LibTorch's CPU generator.
double next_number() { return torch::rand({1}).item<double>(); }

models::LanguageOptions small(const char* preset) {
  models::LanguageOptions options = models::language_preset(preset);
  options.width = 256;
  options.feedforward = 512;
  options.vocabulary = 514;
  return options;
}

struct InitialisedByHandImpl : nn::Module {
  InitialisedByHandImpl() {
    torch::NoGradGuard no_grad;
    nn::init::xavier_uniform_(first->weight);
    first->bias.copy_(torch::linspace(0, 1, first->bias.size(0)));
    second->weight.mul_(0.5).t().select(0, 3).fill_(7);
    scales = register_parameter("scales", torch::cat({torch::ones({3}), torch::randn({2})}));
    register_buffer("steps", torch::arange(4));
    register_buffer("table", torch::tensor({1.0, 2.5}));
  }
  nn::Linear first = register_module("first", nn::Linear(300, 400));
  nn::Linear second = register_module("second", nn::Linear(400, 5));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(5));
  nn::LSTM recurrent = register_module("recurrent", nn::LSTM(8, 16));
  torch::Tensor scales;
};
TORCH_MODULE(InitialisedByHand);

const std::map<std::string, Maker> kModels = {
    {"llama", [] { return models::language_model(small("llama-tiny")); }},
    {"gpt2", [] { return models::language_model(small("gpt2-tiny")); }},
    {"roberta", [] { return models::language_model(small("roberta-tiny")); }},
    {"transformer", [] { return models::transformer({.layers = 1, .width = 256, .vocabulary = 300}); }},
    {"resnet", [] { return models::cifar_resnet(8); }},
    {"by hand", [] { return InitialisedByHand().ptr(); }},
};

std::shared_ptr<nn::Module> without_values(const Maker& make, StartNumbers numbers) {
  torch::manual_seed(kSeed);
  const WithoutValues scope(numbers);
  return make();
}

class WithoutValuesTest : public MeshTest {};

TEST_F(WithoutValuesTest, TheHostsNumbersAreThoseOfAModelMadeOnTheCpu) {
  open_mesh("fsdp=2,tensor=2");
  for (const auto& [name, make] : kModels) {
    SCOPED_TRACE(name);
    torch::manual_seed(kSeed);
    const std::shared_ptr<nn::Module> plain = make();
    const Values wanted = values_of(*plain);
    const double next = next_number();
    const auto model = without_values(make, StartNumbers::kHost);
    int lacking = 0;
    for (const auto& parameter : model->parameters()) lacking += lacks_value(parameter) ? 1 : 0;
    EXPECT_EQ(lacking, static_cast<int>(model->parameters().size()));
    shard(*model);
    EXPECT_EQ(next_number(), next) << "the generator is elsewhere";
    shard(*plain);
    const auto expected = plain->named_parameters();
    for (const auto& item : model->named_parameters()) {
      EXPECT_TRUE(item.value().is_xla() && item.value().requires_grad()) << item.key();
      EXPECT_EQ(layout_of(item.value()), layout_of(expected[item.key()])) << item.key();
    }
    const Values found = values_of(*model);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [tensor, value] : wanted) EXPECT_TRUE(torch::equal(found.at(tensor), value)) << tensor;
  }
}

// Programs draw whole tensors, so the numbers do not depend on where they lie.
TEST_F(WithoutValuesTest, TheDevicesNumbersAreTheSameOverAnyMesh) {
  std::map<std::string, Values> wanted;
  for (const char* const mesh : {"", "fsdp=4", "data=2,fsdp=2", "fsdp=2,tensor=2"}) {
    if (is_initialized()) shutdown();
    if (*mesh == '\0') {
      DeviceOptions one;
      one.devices = 1;
      init(one);
    } else {
      open_mesh(mesh);
    }
    for (const auto& [name, make] : kModels) {
      SCOPED_TRACE(base::str(name, " over ", mesh));
      const auto model = without_values(make, StartNumbers::kDevice);
      shard(*model);
      const Values found = values_of(*model);
      if (*mesh == '\0') wanted[name] = found;
      for (const auto& [tensor, value] : wanted[name])
        EXPECT_TRUE(torch::equal(found.at(tensor), value)) << tensor;
    }
  }
  // They are the numbers that the constructors asked for.
  const Values& llama = wanted["llama"];
  const torch::Tensor table = llama.at("model.embed_tokens.weight");
  EXPECT_NEAR(table.mean().item<double>(), 0, 3e-4);
  EXPECT_NEAR(table.std().item<double>(), 0.02, 3e-4);
  EXPECT_TRUE(torch::equal(llama.at("model.norm.weight"), torch::ones({256})));
  const Values& hand = wanted["by hand"];
  EXPECT_LE(hand.at("first.weight").abs().max().item<double>(), std::sqrt(6.0 / 700));
  EXPECT_TRUE(torch::equal(hand.at("second.weight").select(1, 3), torch::full({5}, 7.0)));
  EXPECT_FALSE(torch::equal(llama.at("model.layers.0.mlp.up_proj.weight"),
                            llama.at("model.layers.1.mlp.up_proj.weight")));
}

TEST_F(WithoutValuesTest, OtherSeedsDrawOtherNumbersAndOneTypeMayBeChosenLater) {
  open_mesh("fsdp=4");
  const Maker& make = kModels.at("llama");
  const auto model = without_values(make, StartNumbers::kHost);
  model->to(torch::kBFloat16);
  shard(*model);
  torch::manual_seed(kSeed);
  const std::shared_ptr<nn::Module> plain = make();
  const Values wanted = values_of(*plain), found = values_of(*model);
  for (const auto& [tensor, value] : wanted)
    EXPECT_TRUE(torch::equal(found.at(tensor), value.to(torch::kBFloat16))) << tensor;
  for (const StartNumbers numbers : {StartNumbers::kHost, StartNumbers::kDevice}) {
    std::vector<torch::Tensor> tables;
    for (const uint64_t seed : {1, 2}) {
      torch::manual_seed(seed);
      std::shared_ptr<nn::Module> seeded;
      {
        const WithoutValues scope(numbers);
        seeded = make();
      }
      shard(*seeded);
      tables.push_back(seeded->parameters().front().detach().cpu());
    }
    EXPECT_FALSE(torch::equal(tables[0], tables[1]));
  }
}

template <typename Function>
std::string thrown(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

TEST_F(WithoutValuesTest, WhatIsIgnoredOrUnknownIsAnError) {
  open_mesh("fsdp=4");
  const auto linear = [](StartNumbers numbers) {
    const WithoutValues scope(numbers);
    return nn::Linear(8, 4);
  };
  nn::Linear written = linear(StartNumbers::kHost);
  nn::init::ones_(written->weight);  // LibTorch does nothing
  EXPECT_THAT(thrown([&] { shard(*written); }), HasSubstr("weight was written to before it had a value"));
  const nn::Linear read = linear(StartNumbers::kDevice);
  EXPECT_NE(thrown([&] { (void)read->weight.sum().item<float>(); }), "nothing");
  nn::Module unknown;
  unknown.register_parameter("weight", torch::empty({8, 4}, torch::kMeta));
  EXPECT_THAT(thrown([&] { shard(unknown); }),
              testing::AllOf(HasSubstr("weight has no value"), HasSubstr("sluice::WithoutValues")));
  const nn::Linear other = linear(StartNumbers::kHost);
  EXPECT_THAT(thrown([&] {
                const WithoutValues scope;
                torch::NoGradGuard no_grad;
                other->weight.mul_(2);
              }),
              HasSubstr("was not made in this scope"));
  // After a scope, tensors have values again.
  EXPECT_FALSE(lacks_value(torch::zeros({3})));
  EXPECT_THAT(thrown([&] { give_value(other->weight, torch::zeros({4, 7})); }), HasSubstr("[4, 7]"));
}

struct Net : nn::Module {
  nn::Linear large = register_module("large", nn::Linear(512, 256));
};

TEST_F(WithoutValuesTest, AsThePageSays) {
  open_mesh("fsdp=4");
  // [page]
  std::shared_ptr<Net> model;
  {
    const sluice::WithoutValues scope;  // StartNumbers::kHost: the numbers of a model made on the CPU
    model = std::make_shared<Net>();
  }
  sluice::shard(*model);  // or session.place(*model)
  // [end]
  EXPECT_EQ(layout_of(model->large->weight).str(), "[-, fsdp]");
}

// Something draws numbers between the construction and the start: neither changes the other.
TEST_F(WithoutValuesTest, NumbersDrawnMeanwhileStayWhatTheyWere) {
  open_mesh("fsdp=4");
  const auto model = without_values(kModels.at("llama"), StartNumbers::kHost);
  const double meanwhile = next_number();
  shard(*model);
  const double after = next_number();
  torch::manual_seed(kSeed);
  EXPECT_EQ(next_number(), meanwhile);
  EXPECT_EQ(next_number(), after);
  torch::manual_seed(kSeed);
  const std::shared_ptr<nn::Module> plain = kModels.at("llama")();
  EXPECT_TRUE(torch::equal(model->parameters().front().cpu(), plain->parameters().front()));
}

}  // namespace
}  // namespace sluice::tests
