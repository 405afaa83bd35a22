// Weights from files straight into the blocks of several virtual devices.
#include <gmock/gmock.h>

#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/test_memory.h"
#include "sluice/data/test_bucket.h"
#include "sluice/device/start/without_values.h"
#include "sluice/models/language/language.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/pretrained/pretrained.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace nn = torch::nn;
using sessions::NamedTensors;

models::LanguageOptions small_llama(bool tied) {
  models::LanguageOptions options = models::language_preset("llama-tiny");
  options.width = 256;
  options.feedforward = 512;
  options.vocabulary = 515;  // tensor=2 does not divide it
  options.tied = tied;
  return options;
}

// Writes tensors into a folder, in several files with an index.
void write_folder(const std::string& folder, const NamedTensors& tensors, size_t files) {
  base::value_or_throw(base::make_directories(folder));
  std::string map;
  for (size_t f = 0; f < files; ++f) {
    const std::string name = base::str("model-", f, ".safetensors");
    NamedTensors own;
    for (size_t i = f; i < tensors.size(); i += files) {
      own.push_back(tensors[i]);
      map += base::str(map.empty() ? "" : ",", '"', tensors[i].first, "\":\"", name, '"');
    }
    base::value_or_throw(sessions::write_safetensors(base::join_path(folder, name), own));
  }
  base::value_or_throw(base::write_file_atomically(base::join_path(folder, "model.safetensors.index.json"),
                                                   R"({"weight_map":{)" + map + "}}"));
}

template <typename Function>
std::string thrown(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class LoadOverMesh : public MeshTest {
 protected:
  // Writes a llama as a folder of transformers, with three files of weights.
  models::LanguageModelPtr write_llama(bool tied) {
    torch::manual_seed(3);
    const models::LanguageModelPtr model = models::language_model(small_llama(tied));
    write_folder(folder_.path(), sessions::module_tensors(*model), 3);
    base::value_or_throw(
        base::write_file_atomically(folder_.path("config.json"), models::language_config(model->options())));
    return model;
  }
  base::TemporaryDirectory folder_ = base::value_or_throw(base::TemporaryDirectory::create());
};

void expect_same(const nn::Module& found, const nn::Module& wanted, at::ScalarType type = at::kFloat) {
  const auto values = wanted.named_parameters();
  for (const auto& item : found.named_parameters()) {
    EXPECT_TRUE(item.value().requires_grad());
    EXPECT_TRUE(torch::equal(item.value().detach().cpu(), values[item.key()].to(type))) << item.key();
  }
}

TEST_F(LoadOverMesh, BlocksHaveTheValuesAndTheLayoutsOfAPlainLoad) {
  for (const bool tied : {false, true}) {
    const models::LanguageModelPtr plain = write_llama(tied);
    for (const char* const mesh : {"fsdp=4", "data=2,fsdp=2", "fsdp=2,tensor=2", "data=4"}) {
      SCOPED_TRACE(mesh);
      open_mesh(mesh);
      const models::LanguageModelPtr model = load_pretrained_over_mesh(folder_.path());
      expect_same(*model, *plain);
      const models::LanguageModelPtr placed = load_pretrained(folder_.path());
      shard(*placed);
      const auto layouts = placed->named_parameters();
      for (const auto& item : model->named_parameters()) {
        EXPECT_EQ(layout_of(item.value()), layout_of(layouts[item.key()])) << item.key();
        EXPECT_EQ(bytes_on_device(item.value()), bytes_on_device(layouts[item.key()])) << item.key();
      }
    }
  }
  open_mesh("fsdp=4");
  const models::LanguageModelPtr plain = write_llama(true);
  expect_same(*load_pretrained_over_mesh(folder_.path(), {}, torch::kBFloat16), *plain, at::kBFloat16);
  // Gradients lie like the weights, and training goes on from there.
  const models::LanguageModelPtr model = load_pretrained_over_mesh(folder_.path());
  model->forward(shard_batch(torch::arange(64).view({4, 16}))).square().mean().backward();
  sync();
  const torch::Tensor weight = model->named_parameters()["model.layers.0.mlp.up_proj.weight"];
  EXPECT_EQ(layout_of(weight.grad()), layout_of(weight));
}

TEST_F(LoadOverMesh, AFreshHeadStartsAsOnTheCpu) {
  write_llama(false);
  open_mesh("fsdp=4");
  const PretrainedOptions how{.new_classes = 7};
  torch::manual_seed(9);
  const models::LanguageModelPtr plain = load_pretrained(folder_.path(), how);
  torch::manual_seed(9);
  expect_same(*load_pretrained_over_mesh(folder_.path(), how), *plain);
}

TEST_F(LoadOverMesh, ABucketIsReadOnce) {
  auto& service = data::test::service();
  const models::LanguageModelPtr plain = write_llama(false);
  for (const auto& name : base::value_or_throw(base::list_directory(folder_.path())))
    service.bucket.put("llama/" + name, base::value_or_throw(base::read_file(folder_.path(name))));
  open_mesh("fsdp=4");
  const int before = service.media;
  const models::LanguageModelPtr model = load_pretrained_over_mesh("gs://b/llama");
  expect_same(*model, *plain);
  // The index, config.json, three headers, and the tensors, of which neighbours are read together.
  EXPECT_LE(service.media - before, 5 + static_cast<int>(plain->parameters().size()));
  // Each process reads what its devices need; here that is all, once.
  sessions::StoredReader reader;
  const auto stored = base::value_or_throw(reader.list("gs://b/llama"));
  torch::manual_seed(4);
  const models::LanguageModelPtr again = models::language_model(small_llama(false));
  ASSERT_TRUE(sessions::load_stored(*again, reader, stored, "gs://b/llama"));
  int64_t bytes = 0;
  for (const auto& parameter : plain->parameters()) bytes += static_cast<int64_t>(parameter.nbytes());
  EXPECT_EQ(reader.reads().needed, bytes);
  EXPECT_EQ(reader.reads().bytes, bytes);
  expect_same(*again, *plain);
  // Without a mesh, too.
  expect_same(*load_pretrained("gs://b/llama/"), *plain);
}

TEST_F(LoadOverMesh, LayoutsOfTheCallerStay) {
  open_mesh("fsdp=2,tensor=2");
  const std::string path = folder_.path("x.safetensors");
  const torch::Tensor weight = torch::randn({512, 256}), bias = torch::randn({512});
  base::value_or_throw(sessions::write_safetensors(path, {{"weight", weight}, {"bias", bias}}));
  nn::Linear model(256, 512), usual(256, 512);
  shard(*usual);
  shard(*model, {{"weight", "tensor", 1}});
  const Layout layout = layout_of(model->weight);
  EXPECT_NE(layout, layout_of(usual->weight));
  sessions::StoredReader reader;
  const auto stored = base::value_or_throw(reader.list(path));
  base::value_or_throw(sessions::load_stored(*model, reader, stored, path));
  EXPECT_EQ(layout_of(model->weight), layout);
  EXPECT_TRUE(is_laid_out(model->weight));
  EXPECT_TRUE(torch::equal(model->weight.detach().cpu(), weight));
  EXPECT_TRUE(torch::equal(model->bias.detach().cpu(), bias));
  EXPECT_EQ(reader.reads().bytes, static_cast<int64_t>(weight.nbytes() + bias.nbytes()));
}

TEST_F(LoadOverMesh, ErrorsNameTensorAndFile) {
  open_mesh("fsdp=4");
  const std::string path = folder_.path("x.safetensors");
  const auto load = [&](const NamedTensors& tensors) {
    base::value_or_throw(sessions::write_safetensors(path, tensors));
    std::optional<nn::Linear> model;
    {
      const WithoutValues scope;
      model.emplace(512, 256);
    }
    return thrown([&] { base::value_or_throw(sessions::load_over_mesh(**model, path)); });
  };
  const torch::Tensor weight = torch::randn({256, 512}), bias = torch::randn({256});
  EXPECT_EQ(load({{"weight", weight}, {"bias", bias}}), "nothing");
  EXPECT_THAT(load({{"weight", weight}}), AllOf(HasSubstr(path), HasSubstr("the tensor bias is missing")));
  EXPECT_THAT(load({{"weight", weight}, {"bias", bias}, {"more", bias}}),
              AllOf(HasSubstr(path), HasSubstr("no tensor called more")));
  EXPECT_THAT(load({{"weight", weight.t()}, {"bias", bias}}),
              AllOf(HasSubstr("the tensor weight has shape [512, 256] there, [256, 512] in the model")));
  EXPECT_THAT(load({{"weight", weight.to(torch::kComplexFloat)}, {"bias", bias}}), HasSubstr("complex"));
  // A file of torch.save is read whole.
  const std::string torch_file = folder_.path("x.pt");
  base::value_or_throw(sessions::write_torch_file(torch_file, {{"weight", weight}, {"bias", bias}}));
  nn::Linear model(512, 256);
  base::value_or_throw(sessions::load_over_mesh(*model, torch_file));
  EXPECT_TRUE(torch::equal(model->weight.cpu(), weight));
  EXPECT_EQ(layout_of(model->weight).str(), "[-, fsdp]");
}

// The blocks of XLA's CPU devices are memory of the host, too.
TEST_F(LoadOverMesh, PeakMemoryIsTheBlocksAndTwoTensors) {
  open_mesh("fsdp=4");
  constexpr int64_t kLayers = 6, kWidth = 2048;
  constexpr int64_t kTensor = kWidth * kWidth * 4;
  const std::string path = folder_.path("x.safetensors");
  {
    NamedTensors tensors;
    const torch::Tensor one = torch::randn({kWidth, kWidth});
    for (int64_t i = 0; i < kLayers; ++i) tensors.emplace_back(base::str(i, ".weight"), one);
    base::value_or_throw(sessions::write_safetensors(path, tensors));
  }
  const auto made = [] {
    const WithoutValues scope;
    nn::Sequential model;
    for (int64_t i = 0; i < kLayers; ++i)
      model->push_back(nn::Linear(nn::LinearOptions(kWidth, kWidth).bias(false)));
    return model;
  };
  // For libraries and threads that the first load brings in.
  nn::Linear first(nn::LinearOptions(512, 512).bias(false));
  base::value_or_throw(sessions::write_safetensors(folder_.path("y"), {{"weight", first->weight}}));
  base::value_or_throw(sessions::load_over_mesh(*first, folder_.path("y")));
  base::reset_peak_memory();
  const int64_t before = base::peak_memory();
  nn::Sequential model = made();
  EXPECT_LT(base::peak_memory() - before, kTensor / 2) << "a model without values takes memory";
  base::value_or_throw(sessions::load_over_mesh(*model, path));
  const int64_t loaded = base::peak_memory() - before;
  EXPECT_GT(loaded, kLayers * kTensor * 9 / 10) << "the peak was not measured";
  EXPECT_LE(loaded, (kLayers + 2) * kTensor);
  // A start that the host draws holds one tensor at a time as well.
  model = nullptr;
  base::reset_peak_memory();
  const int64_t empty = base::peak_memory();
  model = made();
  shard(*model);
  sync_and_wait();
  EXPECT_LE(base::peak_memory() - empty, (kLayers + 2) * kTensor);
}

}  // namespace
}  // namespace sluice::tests
