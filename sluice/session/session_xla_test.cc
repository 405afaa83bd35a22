// The session on the device "xla", through the real CPU plugin, against LibTorch on the CPU.
#include "sluice/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sluice/base/files/file.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/save.h"

namespace sluice::sessions {
namespace {

Session xla_session() {
  Options options;
  options.device = "xla";
  options.xla.plugin = "cpu";
  return start(options);
}

// The same weights on both devices.
torch::nn::Linear linear_on(const torch::Device& device, const torch::nn::Linear& source) {
  torch::nn::Linear result(source->options);
  torch::NoGradGuard no_grad;
  result->weight.copy_(source->weight);
  result->bias.copy_(source->bias);
  result->to(device);
  return result;
}

bool close(const torch::Tensor& a, const torch::Tensor& b) {
  return torch::allclose(a.cpu(), b.cpu(), 1e-4, 1e-5);
}

TEST(SessionOnXla, TrainsAsLibTorchDoes) {
  auto session = xla_session();
  torch::manual_seed(5);
  torch::nn::Linear source(6, 3);
  auto model = linear_on(session.device(), source);
  auto twin = linear_on(torch::kCPU, source);
  torch::optim::Adam optimizer(model->parameters(), 0.05), by_hand(twin->parameters(), 0.05);
  session.prepare(*model, optimizer);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
  for (int i = 0; i < 12; ++i)
    batches.emplace_back(torch::randn({8, 6}), torch::randint(3, {8}, torch::kLong));
  std::vector<double> logged;
  int64_t compiles_after_two = 0;
  for (auto& batch : session.feed(batches)) {
    auto [x, y] = batch;
    EXPECT_TRUE(x.is_xla());
    auto loss = torch::nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    session.step(optimizer, {.clip_norm = 1.0});
    session.after_step({loss}, [&](std::vector<torch::Tensor> v) { logged.push_back(v[0].item<double>()); });
    if (session.steps() == 2) compiles_after_two = session.backend().compiles();
  }
  session.finish();
  EXPECT_EQ(session.backend().compiles(), compiles_after_two);
  ASSERT_EQ(logged.size(), batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    by_hand.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(twin->forward(batches[i].first), batches[i].second);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(twin->parameters(), 1.0);
    by_hand.step();
    EXPECT_NEAR(logged[i], loss.item<double>(), 1e-4) << i;
  }
  EXPECT_TRUE(close(model->weight, twin->weight));
}

TEST(SessionOnXla, AccumulatesAndStepsSeveralOptimizers) {
  auto session = xla_session();
  torch::nn::Linear source(4, 1);
  auto model = linear_on(session.device(), source);
  auto twin = linear_on(torch::kCPU, source);
  torch::optim::SGD a({model->weight}, 0.1), b({model->bias}, 0.2), c({twin->weight}, 0.1),
      d({twin->bias}, 0.2);
  const auto x = torch::randn({8, 4});
  for (int i = 0; i < 2; ++i) {
    {
      Accumulate micro(session);
      (model->forward(x.slice(0, 0, 4).to(session.device())).square().mean() / 2).backward();
      session.step({&a, &b});
    }
    (model->forward(x.slice(0, 4, 8).to(session.device())).square().mean() / 2).backward();
    session.step({&a, &b});
    c.zero_grad();
    d.zero_grad();
    twin->forward(x).square().mean().backward();
    c.step();
    d.step();
  }
  EXPECT_TRUE(close(model->weight, twin->weight));
  EXPECT_TRUE(close(model->bias, twin->bias));
}

TEST(SessionOnXla, LbfgsFindsTheMinimum) {
  auto session = xla_session();
  torch::nn::Linear model(3, 1);
  model->to(session.device());
  torch::optim::LBFGS lbfgs(model->parameters(), torch::optim::LBFGSOptions(0.5));
  const auto x = torch::randn({8, 3}).to(session.device());
  double last = 0;
  for (int i = 0; i < 6; ++i)
    last = session
               .step(lbfgs,
                     [&] {
                       lbfgs.zero_grad();
                       auto loss = model->forward(x).square().mean();
                       loss.backward();
                       return loss;
                     })
               .item()
               .toDouble();
  EXPECT_LT(last, 1e-2);
}

TEST(SessionOnXla, SavesAndLoadsThroughTheCpu) {
  auto session = xla_session();
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  torch::nn::Linear a(3, 2), b(3, 2);
  a->to(session.device());
  b->to(session.device());
  for (const char* name : {"a.pt", "a.safetensors"}) {
    {
      torch::NoGradGuard no_grad;
      a->weight.add_(1);
    }
    save(a, folder.path(name));
    load(b, folder.path(name));
    EXPECT_TRUE(torch::equal(a->weight.cpu(), b->weight.cpu()));
  }
}

TEST(SessionOnXla, AModuleWithComplexBuffersHasCheckpoints) {
  auto session = xla_session();
  auto folder = base::value_or_throw(base::TemporaryDirectory::create());
  const at::Tensor pairs = at::arange(8, at::kDouble).reshape({2, 2, 2});
  const auto make = [&](double scale) {
    torch::nn::Linear model(3, 2);
    model->register_buffer("c128", at::view_as_complex(pairs * scale));
    model->register_buffer("c64", at::view_as_complex(pairs * scale).to(at::kComplexFloat));
    model->to(session.device());
    return model;
  };
  auto model = make(3), other = make(0);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  ASSERT_TRUE(
      write_checkpoint(take_snapshot(session.backend(), *model, {&optimizer}, {}), folder.path("last")));
  const auto read = base::value_or_throw(read_checkpoint(folder.path("last")));
  ASSERT_TRUE(load_module(*other, read.model, "last"));
  const at::Tensor want = at::view_as_complex(pairs * 3);
  EXPECT_TRUE(torch::equal(other->named_buffers()["c128"].cpu(), want));
  EXPECT_TRUE(torch::equal(other->named_buffers()["c64"].cpu(), want.to(at::kComplexFloat)));
}

// A snapshot holds the values of its moment, whatever the next steps do with the buffers.
TEST(SessionOnXla, ASnapshotIsNotChangedByLaterSteps) {
  auto session = xla_session();
  torch::nn::Linear model(4, 4);
  const auto before = model->weight.detach().clone();
  model->to(session.device());
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  session.sync();
  Snapshot snapshot = take_snapshot(session.backend(), *model, {&optimizer}, {});
  for (int i = 0; i < 5; ++i) {
    model->forward(torch::ones({2, 4}).to(session.device())).sum().backward();
    session.step(optimizer);
  }
  EXPECT_EQ(snapshot.model[0].first, "weight");
  EXPECT_TRUE(torch::equal(snapshot.model[0].second.get().front(), before));
  EXPECT_FALSE(torch::equal(model->weight.cpu(), before));
}

TEST(SessionOnXla, ASettledSnapshotIsOneCopyForAllReplicas) {
  if (is_initialized()) shutdown();
  {
    Options options;
    options.xla.plugin = "cpu";
    options.xla.devices = 2;
    auto session = start(options);
    torch::nn::Linear model(4, 4);
    const auto before = model->weight.detach().clone();
    model->to(session.device());
    torch::optim::SGD optimizer(model->parameters(), 0.5);
    session.sync();
    Snapshot snapshot = take_snapshot(session.backend(), *model, {&optimizer}, {});
    EXPECT_EQ(snapshot.model[0].second.get().size(), 2U);
    settle(snapshot);
    EXPECT_EQ(snapshot.model[0].second.get().size(), 1U);
    EXPECT_TRUE(torch::equal(snapshot.model[0].second.get().front(), before));
  }
  shutdown();
}

Session mesh_session(const char* mesh) {
  if (is_initialized()) shutdown();
  Options options;
  options.device = "xla";
  options.xla.plugin = "cpu";
  options.mesh = Mesh::parse(mesh);
  return start(options);
}

// The caller's rules come first, and what sluice::shard has laid out stays so.
TEST(SessionOnXla, PlacesByTheCallersRules) {
  {
    auto session = mesh_session("fsdp=2");
    torch::nn::Linear layer(512, 256);  // by default it lies along its larger dimension
    session.place(*layer);
    EXPECT_EQ(layout_of(layer->weight).str(), "[-, fsdp]");
    session.place(*layer, {{"weight", "fsdp", 0}});
    EXPECT_EQ(layout_of(layer->weight).str(), "[fsdp, -]");
    session.place(*layer);
    EXPECT_EQ(layout_of(layer->weight).str(), "[fsdp, -]");
  }
  shutdown();
}

TEST(SessionOnXla, SaysThatLbfgsHoldsWholeVectors) {
  {
    auto session = mesh_session("fsdp=2");
    torch::nn::Linear layer(4, 2);
    session.place(*layer);
    torch::optim::LBFGS optimizer(layer->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(2));
    const torch::Tensor x = session.upload({torch::ones({4, 4})});
    testing::internal::CaptureStderr();
    for (int step = 0; step < 2; ++step)
      session.step(optimizer, [&] {
        optimizer.zero_grad();
        torch::Tensor loss = layer(x).square().mean();
        loss.backward();
        return loss;
      });
    const std::string said = testing::internal::GetCapturedStderr();
    const char* const expected =
        "joins all parameters, and its history, into vectors that are whole on every";
    EXPECT_THAT(said, testing::HasSubstr(expected));
    EXPECT_EQ(said.find(expected), said.rfind(expected));
  }
  shutdown();
}

}  // namespace
}  // namespace sluice::sessions
