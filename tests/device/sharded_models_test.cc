// Several virtual devices that share a model with rules of its own: trainings equal one device's, and
// gradients that are kept, and optimizers that mix elements, give the same values.
#include <map>

#include "sluice/device/sharding/shard.h"
#include "sluice/models/language/language.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace nn = torch::nn;

constexpr double kLearningRate = 1e-3;

// Relative to the largest value, or to a step of the optimizer for a bias that has hardly moved from 0.
double error_of(const torch::Tensor& found, const torch::Tensor& wanted) {
  return relative_error(found, wanted, kLearningRate);
}

struct Training {
  std::vector<double> losses;
  std::map<std::string, torch::Tensor> weights;
  std::map<std::string, std::string> layouts;
};

// Trains for three steps of Adam; each step has other tokens.
Training train_model(const models::LanguageOptions& options, const std::string& mesh,
                     const std::vector<ShardRule>& rules) {
  open_mesh(mesh);
  torch::manual_seed(5);
  const models::LanguageModelPtr model = models::language_model(options);
  shard(*model, rules);
  // A large epsilon: Adam divides a gradient by itself, which makes rounding errors of small ones large.
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(kLearningRate).eps(1e-3));
  Training run;
  for (int step = 0; step < 3; ++step) {
    const torch::Tensor rows = torch::arange(8).unsqueeze(1) * 31 + step * 17;
    const torch::Tensor ids = (rows + torch::arange(17) * (step + 3)).remainder(options.vocabulary);
    const torch::Tensor x = shard_batch(ids.slice(1, 0, 16)), y = shard_batch(ids.slice(1, 1));
    optimizer.zero_grad();
    const torch::Tensor loss = nn::functional::cross_entropy(model->forward(x).flatten(0, 1), y.flatten());
    loss.backward();
    optimizer.step();
    sync();
    run.losses.push_back(loss.item<double>());
  }
  for (const auto& item : model->named_parameters()) {
    run.layouts[item.key()] = layout_of(item.value()).str();
    run.weights[item.key()] = item.value().detach().cpu();
  }
  return run;
}

void expect_equal_trainings(const Training& found, const Training& wanted) {
  EXPECT_LT(error_of(torch::tensor(found.losses), torch::tensor(wanted.losses)), 1e-5);
  for (const auto& [name, weight] : wanted.weights)
    // Adam divides a gradient by its size, which makes the rounding errors of sums in another order larger.
    EXPECT_LT(error_of(found.weights.at(name), weight), 3e-5) << name;
}

class ShardedModels : public MeshTest {};

models::LanguageOptions one_layer(const char* preset) {
  models::LanguageOptions options = models::language_preset(preset);
  options.layers = 1;
  options.width = 256;
  options.feedforward = 512;
  options.vocabulary = 512;
  return options;
}

// Attention's matrices have 65,536 elements or fewer, so the caller's rules lay them out, and the model's
// rules the others.
TEST_F(ShardedModels, ALlamaTrainsAsOnOneDevice) {
  models::LanguageOptions options = one_layer("llama-tiny");
  options.tied = false;
  options.recompute = true;
  const std::vector<ShardRule> rules = {{"*.q_proj.weight", "tensor", 0, 4},
                                        {"*.k_proj.weight", "tensor", 0, 2},
                                        {"*.v_proj.weight", "tensor", 0, 2},
                                        {"layers.0.self_attn.o_proj.weight", "tensor", 1, 4}};
  const Training one = train_model(options, "fsdp=1", rules);
  const Training four = train_model(options, "fsdp=2,tensor=2", rules);
  expect_equal_trainings(four, one);
  const std::string layer = "model.layers.0.";
  const std::map<std::string, std::string> layouts = {
      {"model.embed_tokens.weight", "[tensor, fsdp]"},    {"lm_head.weight", "[tensor, fsdp]"},
      {layer + "mlp.gate_proj.weight", "[tensor, fsdp]"}, {layer + "mlp.down_proj.weight", "[fsdp, tensor]"},
      {layer + "self_attn.q_proj.weight", "[tensor, -]"}, {layer + "self_attn.o_proj.weight", "[-, tensor]"},
      {layer + "input_layernorm.weight", "[-]"}};
  for (const auto& [name, layout] : layouts) EXPECT_EQ(four.layouts.at(name), layout) << name;
}

// One projection for queries, keys and values, and a vocabulary that nothing divides.
TEST_F(ShardedModels, AGpt2TrainsAsOnOneDevice) {
  models::LanguageOptions options = one_layer("gpt2-tiny");
  options.vocabulary = 509;
  const Training one = train_model(options, "fsdp=1", {});
  Training four;
  EXPECT_THAT(warned([&] { four = train_model(options, "fsdp=2,tensor=2", {}); }),
              testing::Not(HasSubstr("does not fit the mesh")));
  expect_equal_trainings(four, one);
  EXPECT_EQ(four.layouts.at("transformer.wte.weight"), "[tensor padded, fsdp]");
  EXPECT_EQ(four.layouts.at("transformer.h.0.attn.c_attn.weight"), "[fsdp, tensor]");
}

struct WrapperImpl : nn::Module {
  models::LanguageModelPtr inner;
  explicit WrapperImpl(models::LanguageModelPtr model) : inner(register_module("inner", std::move(model))) {}
};

TEST_F(ShardedModels, AModelInAnotherModuleKeepsItsRules) {
  open_mesh("tensor=2");
  WrapperImpl wrapper(models::language_model(one_layer("llama-tiny")));
  shard(wrapper);
  const auto parameters = wrapper.named_parameters();
  EXPECT_EQ(layout_of(parameters["inner.model.layers.0.mlp.down_proj.weight"]).str(), "[-, tensor]");
  EXPECT_TRUE(is_laid_out(parameters["inner.model.layers.0.mlp.down_proj.weight"]));
  EXPECT_FALSE(is_laid_out(parameters["inner.model.norm.weight"]));
}

TEST_F(ShardedModels, TheRulesOfThePage) {
  open_mesh("tensor=2");
  const models::LanguageModelPtr model = models::language_model(one_layer("llama-tiny"));
  // [rules]
  sluice::shard(*model, {{"*.q_proj.weight", "tensor", 0, 4},  // dimension 0, which is 4 heads
                         {"*.norm.weight"}});                  // whole on every device
  // [end]
  const auto parameters = model->named_parameters();
  EXPECT_EQ(layout_of(parameters["model.layers.0.self_attn.q_proj.weight"]).str(), "[tensor, -]");
  EXPECT_EQ(layout_of(parameters["model.layers.0.mlp.up_proj.weight"]).str(), "[tensor, -]");
  EXPECT_EQ(layout_of(parameters["model.norm.weight"]).str(), "[-]");
}

// A linear layer of 131,072 weights after two updates, each of three batches.
torch::Tensor accumulated(const std::string& mesh) {
  open_mesh(mesh);
  torch::manual_seed(1);
  nn::Linear layer(512, 256);
  shard(*layer);
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  for (int update = 0; update < 2; ++update) {
    optimizer.zero_grad();
    for (int part = 1; part <= 3; ++part) {
      layer(shard_batch(ramp({8, 512}, 0.1 * part + update))).square().mean().backward();
      sync();
      EXPECT_EQ(layout_of(layer->weight.grad()).str(), layout_of(layer->weight).str()) << mesh << ' ' << part;
    }
    optimizer.step();
    sync();
  }
  return layer->weight.detach().cpu();
}

TEST_F(ShardedModels, GradientsThatAreKeptLieLikeTheirParameters) {
  const torch::Tensor one = accumulated("fsdp=1");
  EXPECT_LT(error_of(accumulated("fsdp=4"), one), 1e-5);
}

// A gradient's buffer has a quarter of the bytes from the first program on.
TEST_F(ShardedModels, AKeptGradientTakesABlockOfEachDevice) {
  open_mesh("fsdp=4");
  nn::Linear layer(512, 256);
  shard(*layer);
  layer(shard_batch(ramp({8, 512}))).sum().backward();
  EXPECT_EQ(bytes_on_device(layer->weight.grad()), 512 * 256 * 4 / 4);
}

torch::Tensor after_lbfgs(const std::string& mesh) {
  open_mesh(mesh);
  torch::manual_seed(1);
  nn::Linear layer(512, 256);
  shard(*layer);
  torch::optim::LBFGS optimizer(layer->parameters(), torch::optim::LBFGSOptions(0.5).max_iter(3));
  const torch::Tensor x = shard_batch(ramp({8, 512}, 0.05)), y = shard_batch(ramp({8, 256}));
  optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor loss = (layer(x) - y).square().mean();
    loss.backward();
    return loss;
  });
  return layer->weight.detach().cpu();
}

// It joins all parameters into one vector, which lies like none of them; the values are those of one device.
TEST_F(ShardedModels, LbfgsTakesTheStepsOfOneDevice) {
  const torch::Tensor one = after_lbfgs("fsdp=1");
  // Its history divides by differences of gradients that are nearly equal: measured are 1.3e-4 and 1.6e-4.
  EXPECT_LT(error_of(after_lbfgs("fsdp=4"), one), 1e-3);
}

}  // namespace
}  // namespace sluice::tests
