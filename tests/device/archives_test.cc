// torch::save, torch::load, TorchScript's archives and pickles with values on the device.
#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <sstream>

#include "tests/device/support.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;

nn::Sequential small_model() {
  return nn::Sequential(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Linear(4, 2));
}

template <typename Value>
std::string saved(const Value& value) {
  std::ostringstream stream;
  torch::save(value, stream);
  return stream.str();
}

template <typename Value>
void load(Value& value, const std::string& bytes, std::optional<torch::Device> device = std::nullopt) {
  std::istringstream stream(bytes);
  torch::load(value, stream, device);
}

void expect_same_modules(nn::Module& found, nn::Module& expected) {
  expect_same(found.parameters(), expected.parameters(), 0);
  expect_same(found.buffers(), expected.buffers(), 0);
}

TEST(Archives, ATensorGoesThroughAFileBothWays) {
  torch::Tensor x = ramp({3, 4});
  torch::Tensor found;
  load(found, saved(x.to(test_device())));
  EXPECT_TRUE(found.device().is_cpu());  // so that every other program reads the file, too
  expect_same(found, x, 0);
  torch::Tensor back;
  load(back, saved(x), test_device());
  EXPECT_EQ(back.device(), test_device());
  expect_same(back, x, 0);
  torch::Tensor there = torch::zeros({3, 4}, test_device());
  load(there, saved(x));
  EXPECT_EQ(there.device(), test_device());
  expect_same(there, x, 0);
  // A view, of which the whole storage is written.
  load(found, saved(x.to(test_device()).t().slice(0, 1, 3)));
  expect_same(found, x.t().slice(0, 1, 3), 0);
}

TEST(Archives, AVectorOfTensors) {
  const std::vector<torch::Tensor> x = {ramp({3}), ramp({2, 2}).to(torch::kLong), torch::empty({0, 2})};
  std::vector<torch::Tensor> there, found;
  for (const torch::Tensor& tensor : x) there.push_back(tensor.to(test_device()));
  load(found, saved(there));
  expect_same(found, x, 0);
  found.clear();
  load(found, saved(x), test_device());
  EXPECT_EQ(found[1].device(), test_device());
  expect_same(found, x, 0);
}

TEST(Archives, AModuleStaysWhereItIs) {
  nn::Sequential here = small_model(), there = small_model(), other = small_model();
  there->to(test_device());
  torch::Tensor weight = there->parameters()[0];
  load(there, saved(here));
  EXPECT_EQ(weight.device(), test_device());
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(there->parameters()[0].is_same(weight));
  expect_same_modules(*there, *here);
  there->forward(ramp({5, 3}).to(test_device())).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  load(other, saved(there));
  EXPECT_TRUE(other->parameters()[0].device().is_cpu());
  expect_same_modules(*other, *there);
}

template <typename Optimizer, typename Options>
void expect_optimizer_resumes(const Options& options) {
  auto train = [](nn::Sequential& model, torch::optim::Optimizer& optimizer, int steps) {
    const torch::Device device = model->parameters()[0].device();
    torch::Tensor x = ramp({5, 3}).to(device), y = ramp({5, 2}).to(device);
    for (int step = 0; step < steps; ++step) {
      optimizer.step([&] {
        optimizer.zero_grad();
        torch::Tensor loss = nn::functional::mse_loss(model->forward(x), y);
        loss.backward();
        return loss;
      });
    }
  };
  auto make = [] { return nn::Sequential(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2)); };
  nn::Sequential expected = make(), first = make(), second = make();
  load(first, saved(expected));
  first->to(test_device());
  second->to(test_device());
  Optimizer one(expected->parameters(), options), two(first->parameters(), options),
      three(second->parameters(), options);
  train(expected, one, 5);
  train(first, two, 3);
  load(second, saved(first));
  load(three, saved(two));
  train(second, three, 2);
  expect_same(second->parameters(), expected->parameters(), 2e-4);
  // And on the CPU.
  nn::Sequential fourth = make();
  Optimizer four(fourth->parameters(), options);
  load(fourth, saved(first));
  load(four, saved(two));
  train(fourth, four, 2);
  expect_same(fourth->parameters(), expected->parameters(), 2e-4);
}

TEST(Archives, OptimizersResumeOnTheDeviceAndOnTheCpu) {
  torch::manual_seed(3);
  expect_optimizer_resumes<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  expect_optimizer_resumes<torch::optim::Adam>(torch::optim::AdamOptions(0.01).amsgrad(true));
  expect_optimizer_resumes<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01));
  expect_optimizer_resumes<torch::optim::RMSprop>(
      torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true));
  expect_optimizer_resumes<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.05));
}

// Groups have their own rates and weight decay, and one parameter is frozen. The optimizer that reads the
// file was made with other settings. LibTorch restores the options since 2.4.
template <typename Optimizer, typename Options>
void expect_groups_resume(const Options& first, const Options& second) {
  auto make = [&](nn::Sequential& model, bool as_saved) {
    std::vector<torch::Tensor> p = model->parameters();
    p[3].set_requires_grad(false);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    const Options other(0.7);
    groups.emplace_back(std::vector{p[0], p[3]}, std::make_unique<Options>(as_saved ? first : other));
    groups.emplace_back(std::vector{p[1], p[2]}, std::make_unique<Options>(as_saved ? second : other));
    return std::make_unique<Optimizer>(groups, other);
  };
  auto train = [](nn::Sequential& model, torch::optim::Optimizer& optimizer, int steps) {
    const torch::Device device = model->parameters()[0].device();
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      model->forward(ramp({5, 3}).to(device)).square().mean().backward();
      optimizer.step();
    }
  };
  nn::Sequential expected(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2)),
      begun(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2)),
      resumed(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  load(begun, saved(expected));
  begun->to(test_device());
  resumed->to(test_device());
  const auto whole = make(expected, true), before = make(begun, true), after = make(resumed, false);
  train(expected, *whole, 4);
  train(begun, *before, 2);
  load(resumed, saved(begun));
  load(*after, saved(*before));
  train(resumed, *after, 2);
  expect_same(resumed->parameters(), expected->parameters(), 2e-4);
  for (const size_t group : {0, 1})
    EXPECT_EQ(static_cast<const Options&>(after->param_groups()[group].options()),
              static_cast<const Options&>(whole->param_groups()[group].options()));
}

TEST(Archives, GroupsOfAnOptimizerKeepTheirOptions) {
  torch::manual_seed(3);
  expect_groups_resume<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01),
                                          torch::optim::SGDOptions(0.02).momentum(0.5).nesterov(true));
  expect_groups_resume<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01).weight_decay(0.2),
                                            torch::optim::AdamWOptions(0.03).weight_decay(0).amsgrad(true));
}

// Programs made and graphs cut by the call.
std::pair<int64_t, int64_t> programs_and_cuts(const std::function<void()>& call) {
  const Counters before = counters();
  call();
  const Counters after = counters();
  return {after.programs - before.programs, after.cuts - before.cuts};
}

TEST(Archives, SavingCompilesNothing) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Device device = test_device();
  torch::manual_seed(3);
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).bias(false)), nn::BatchNorm2d(4), nn::ReLU(),
                       nn::Conv2d(4, 2, 3), nn::Flatten(), nn::Linear(32, 5));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01).amsgrad(true));
  const torch::Tensor x = ramp({2, 3, 8, 8}).to(device);
  torch::Tensor loss;
  const auto step = [&] {
    optimizer.zero_grad();
    loss = model->forward(x).square().sum();
    loss.backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) {
    step();
    sync("step");
  }
  std::string bytes, states;
  using Counts = std::pair<int64_t, int64_t>;
  EXPECT_EQ(programs_and_cuts([&] {
              bytes = saved(model);
              states = saved(optimizer);
              loss.item<float>();
              for (const auto& item : model->named_parameters()) item.value().cpu();
              for (const auto& item : model->named_buffers()) item.value().to(torch::kCPU);
              for (const auto& p : model->parameters()) p.transpose(0, p.dim() - 1).cpu();
            }),
            (Counts{0, 0}));
  // What is pending is cut once, and its program is the step's own.
  step();
  EXPECT_EQ(programs_and_cuts([&] { EXPECT_NE(saved(model), bytes); }), (Counts{0, 1}));
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& p : model->parameters()) before.push_back(p.detach().cpu());
  EXPECT_EQ(programs_and_cuts([&] { model->to(torch::kCPU); }), (Counts{0, 0}));
  for (size_t i = 0; i < before.size(); ++i) expect_same(model->parameters()[i], before[i], 0);
  load(model, saved(model));
}

// Any view of all of a storage is read without a program: other shapes, orders and element types.
TEST(Archives, WholeStoragesAreReadAsTheyAre) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const torch::Device device = test_device();
  const torch::Tensor x = ramp({2, 3, 4, 5}), z = torch::view_as_complex(ramp({3, 4, 2}));
  const torch::Tensor there = x.to(device), last = x.contiguous(torch::MemoryFormat::ChannelsLast).to(device),
                      pairs = torch::view_as_real(z).to(device);
  const auto same_view = [&](const std::function<torch::Tensor(torch::Tensor)>& view) {
    expect_same(view(there), view(x), 0);
    expect_same(view(last), view(x.contiguous(torch::MemoryFormat::ChannelsLast)), 0);
  };
  EXPECT_EQ(programs_and_cuts([&] {
              same_view([](const torch::Tensor& t) { return t; });
              same_view([](const torch::Tensor& t) { return t.transpose(1, 3); });
              same_view([](const torch::Tensor& t) { return t.permute({3, 0, 2, 1}); });
              same_view([](const torch::Tensor& t) { return t.flatten(2); });
              same_view([](const torch::Tensor& t) { return t.as_strided({120}, {1}); });
              same_view([](const torch::Tensor& t) { return t.transpose(1, 2).view(torch::kInt); });
              expect_same(torch::view_as_real(torch::view_as_complex(pairs).cpu()), torch::view_as_real(z),
                          0);
            }),
            (std::pair<int64_t, int64_t>{0, 0}));
  expect_same(torch::view_as_real(torch::view_as_complex(pairs).conj().cpu().resolve_conj()),
              torch::view_as_real(z.conj().resolve_conj()), 0);
}

torch::jit::Module script() {
  torch::jit::Module module("m");
  module.register_parameter("weight", ramp({3, 2}).requires_grad_(), false);
  module.register_buffer("shift", ramp({2}));
  module.define("def forward(self, x):\n  return torch.relu(torch.mm(x, self.weight) + self.shift) + 0.5\n");
  return module;
}

torch::jit::Module load_script(const std::string& bytes, std::optional<torch::Device> device = std::nullopt) {
  std::istringstream stream(bytes);
  return torch::jit::load(stream, device);
}

std::string saved(const torch::jit::Module& module) {
  std::ostringstream stream;
  module.save(stream);
  return stream.str();
}

TEST(Archives, ScriptsAreLoadedOntoTheDeviceSavedAndFrozen) {
  torch::jit::Module here = script();
  torch::Tensor x = ramp({4, 3});
  const torch::Tensor expected = here.forward({x}).toTensor();
  torch::jit::Module there = load_script(saved(here), test_device());
  EXPECT_EQ(there.attr("weight").toTensor().device(), test_device());
  EXPECT_TRUE(there.attr("weight").toTensor().requires_grad());
  expect_same(there.forward({x.to(test_device())}).toTensor(), expected);
  torch::jit::Module back = load_script(saved(there));
  EXPECT_TRUE(back.attr("weight").toTensor().device().is_cpu());
  expect_same(back.forward({x}).toTensor(), expected);
  there.eval();
  torch::jit::Module frozen = torch::jit::freeze(there);
  expect_same(frozen.forward({x.to(test_device())}).toTensor(), expected);
  torch::jit::Module again = load_script(saved(frozen), test_device());
  expect_same(again.forward({x.to(test_device())}).toTensor(), expected);
}

TEST(Archives, PicklesHoldTensorsOfTheDevice) {
  c10::Dict<std::string, torch::Tensor> dict;
  dict.insert("a", ramp({2, 3}).to(test_device()));
  dict.insert("b", ramp({4}).to(test_device()).slice(0, 1, 3));
  const auto found = torch::pickle_load(torch::pickle_save(dict)).toGenericDict();
  expect_same(found.at("a").toTensor(), ramp({2, 3}), 0);
  expect_same(found.at("b").toTensor(), ramp({4}).slice(0, 1, 3), 0);
  EXPECT_TRUE(found.at("a").toTensor().device().is_cpu());
}

// The archive as PyTorch/XLA writes it: its tensors are said to be on xla:0.
std::vector<char> marked_as_xla(const std::vector<char>& bytes) {
  std::istringstream in(std::string(bytes.begin(), bytes.end()));
  caffe2::serialize::PyTorchStreamReader reader(&in);
  std::ostringstream out;
  {
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
      out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
      return size;
    });
    for (const std::string& name : reader.getAllRecords()) {
      if (name == "version" || name == ".data/serialization_id" || name == "byteorder") continue;
      const auto [data, size] = reader.getRecord(name);
      std::string record(static_cast<const char*>(data.get()), size);
      const std::string cpu("X\3\0\0\0cpu", 8), xla("X\5\0\0\0xla:0", 10);
      for (size_t at = record.find(cpu); at != std::string::npos; at = record.find(cpu, at + 1))
        record.replace(at, cpu.size(), xla);
      writer.writeRecord(name, record.data(), record.size());
    }
    writer.writeEndOfFile();
  }
  const std::string text = out.str();
  return {text.begin(), text.end()};
}

TEST(Archives, FilesOfPyTorchXlaComeBackToTheDevice) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const std::vector<char> bytes = marked_as_xla(torch::pickle_save(ramp({2, 3})));
  const torch::Tensor found = torch::pickle_load(bytes).toTensor();
  EXPECT_EQ(found.device(), test_device());
  expect_same(found, ramp({2, 3}), 0);
}

TEST(RawMemory, WhoAsksForItIsToldToCopyFirst) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Tensor x = ramp({2, 3}).to(test_device());
  const char* told = "lives on xla:0";
  EXPECT_THAT(thrown([&] { x.data_ptr<float>(); }), testing::HasSubstr(told));
  EXPECT_THAT(thrown([&] { x.const_data_ptr<float>(); }), testing::HasSubstr(told));
  EXPECT_THAT(thrown([&] { x.mutable_data_ptr(); }), testing::HasSubstr(told));
  EXPECT_THAT(thrown([&] { x.data_ptr(); }), testing::HasSubstr(told));
  EXPECT_THAT(thrown([&] { x.accessor<float, 2>(); }), testing::HasSubstr(told));
  EXPECT_THAT(thrown([&] { x.storage().data(); }), testing::HasSubstr(told));
  torch::Tensor host = x.cpu();
  EXPECT_FLOAT_EQ((host.accessor<float, 2>()[1][2]), ramp({2, 3})[1][2].item<float>());
}

TEST(RawMemory, WhatIsAskedOfATensorIsAnswered) {
  torch::Tensor x = ramp({2, 3}).to(test_device());
  EXPECT_EQ(x.storage().nbytes(), 24u);
  EXPECT_EQ(x.storage().use_count(), 1u);
  EXPECT_EQ(x.nbytes(), 24u);
  EXPECT_EQ(x.options().device(), test_device());
  std::ostringstream text;
  text << x.options();
  EXPECT_THAT(text.str(), testing::HasSubstr(on_cpu() ? "device=cpu" : "device=xla:0"));
  EXPECT_FALSE(x.is_pinned());
  EXPECT_TRUE(x.is_set_to(x));
  EXPECT_TRUE(x.is_set_to(x.detach()));
  EXPECT_FALSE(x.is_set_to(x.clone()));
  EXPECT_FALSE(x.is_set_to(x.t()));
  EXPECT_TRUE(x.is_alias_of(x.t()));
}

TEST(RawMemory, HostMemoryIsCopiedNotTaken) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  float values[4] = {1, 2, 3, 4};
  const auto on_device = torch::TensorOptions().device(test_device());
  EXPECT_THAT(thrown([&] { torch::from_blob(values, {4}, on_device); }), testing::HasSubstr(".to(xla:0)"));
  expect_same(torch::from_blob(values, {4}).to(test_device()), torch::tensor({1.f, 2.f, 3.f, 4.f}), 0);
  // Pinned memory is ordinary memory here.
  torch::Tensor pinned = ramp({3}).pin_memory();
  EXPECT_TRUE(pinned.device().is_cpu());
  expect_same(pinned.to(test_device(), /*non_blocking=*/true), ramp({3}), 0);
}

TEST(Generators, TheDeviceDrawsFromTheGeneratorsOfTheHost) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  torch::Generator one = at::globalContext().defaultGenerator(test_device());
  EXPECT_EQ(one, at::detail::getDefaultCPUGenerator());
  auto draw = [](uint64_t seed) {
    torch::Generator own = at::detail::createCPUGenerator(seed);
    return torch::randn({4}, own, torch::TensorOptions().device(test_device())).cpu();
  };
  expect_same(draw(3), draw(3), 0);
  EXPECT_FALSE(torch::equal(draw(3), draw(4)));
}

}  // namespace
}  // namespace sluice::tests
