// Many replicas in one process: collectives and their gradients, sameness, random numbers, fallbacks, and
// trainings that equal one replica with the whole batch.
#include "sluice/replica/collectives.h"

#include "sluice/base/error.h"
#include "sluice/session/session.h"
#include "tests/device/random_words.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
namespace nn = torch::nn;

constexpr int kReplicas = 4;

class Replicas : public testing::Test {
 protected:
  void SetUp() override {
    if (on_cpu()) GTEST_SKIP() << "LibTorch's CPU has one replica";
    torch::set_num_threads(1);
    DeviceOptions options;
    options.devices = kReplicas;
    restart(options);
    torch::manual_seed(3);
  }

  static Options session_options(int replicas = kReplicas) {
    Options options;
    options.xla.devices = replicas;
    options.xla.cache = false;
    return options;
  }
  // Values that differ, on the host.
  static std::vector<torch::Tensor> values(c10::IntArrayRef sizes, torch::ScalarType type = torch::kFloat) {
    std::vector<torch::Tensor> all;
    for (int r = 0; r < kReplicas; ++r) all.push_back((torch::randn(sizes) * 4).to(type));
    return all;
  }
  static std::vector<torch::Tensor> on_all(const torch::Tensor& tensor) {
    std::vector<torch::Tensor> all;
    for (int r = 0; r < kReplicas; ++r) all.push_back(on_replica(tensor, r));
    return all;
  }
};

TEST_F(Replicas, ReductionsEqualTheHostsInAllTypes) {
  for (auto type :
       {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf, torch::kLong, torch::kInt}) {
    const auto host = values({3, 5}, type);
    const torch::Tensor device = upload(host);
    const torch::Tensor stacked = torch::stack(host);
    const double tolerance = type == torch::kBFloat16 ? 0.1 : type == torch::kHalf ? 2e-2 : 1e-6;
    expect_same(sluice::sum(device).cpu(), stacked.to(torch::kDouble).sum(0).to(type), tolerance, "sum");
    expect_same(all_reduce(device, Reduce::kMax).cpu(), stacked.amax(0), 0, "max");
    expect_same(all_reduce(device, Reduce::kMin).cpu(), stacked.amin(0), 0, "min");
    if (c10::isFloatingType(type))
      expect_same(sluice::mean(device).cpu(), stacked.to(torch::kDouble).mean(0).to(type), tolerance, "mean");
  }
}

TEST_F(Replicas, GatherScatterBroadcastAndPermute) {
  const auto host = values({4, 8});
  const torch::Tensor device = upload(host);
  for (int64_t dim : {0, 1, -1}) {
    expect_same(all_gather(device, dim).cpu(), torch::cat(host, dim), 0, "gather");
    const auto parts = torch::stack(host).sum(0).chunk(kReplicas, dim);
    expect_same(on_all(reduce_scatter(device, dim)), parts, 1e-6, "scatter");
  }
  for (int root = 0; root < kReplicas; ++root)
    expect_same(broadcast(device, root).cpu(), host[static_cast<size_t>(root)], 0, "broadcast");
  const torch::Tensor zeros = upload(std::vector<torch::Tensor>(kReplicas, torch::full({2}, -0.0)));
  EXPECT_TRUE(torch::signbit(broadcast(zeros, 1).cpu()).all().item<bool>()) << "the sign of a zero is kept";
  expect_same(on_all(collective_permute(device, {{0, 2}, {2, 1}})),
              {torch::zeros({4, 8}), host[2], host[0], torch::zeros({4, 8})}, 0, "permute");
  const auto ids = on_all(replica_id());
  for (int r = 0; r < kReplicas; ++r) EXPECT_EQ(ids[static_cast<size_t>(r)].item<int>(), r);
  const torch::Tensor whole = torch::arange(24, torch::kFloat).reshape({2, 12});
  expect_same(on_all(sluice::split(whole, 1)), whole.chunk(kReplicas, 1), 0, "split");
}

TEST_F(Replicas, CollectivesOfOneProgramThatNeedNothingOfEachOther) {
  for (int round = 0; round < 20; ++round) {
    std::vector<torch::Tensor> results, expected;
    for (auto type : {torch::kFloat, torch::kLong, torch::kDouble}) {
      const auto host = values({64}, type);
      const torch::Tensor device = upload(host);
      results.push_back(sluice::sum(device));
      expected.push_back(torch::stack(host).sum(0));
      results.push_back(all_gather(device, 0));
      expected.push_back(torch::cat(host, 0));
    }
    cut();
    for (size_t i = 0; i < results.size(); ++i) expect_same(results[i].cpu(), expected[i], 1e-5);
  }
}

TEST_F(Replicas, ResultsHaveTheSizeOfTheReplicasThatThereAre) {
  for (const int replicas : {2, 3, 2}) {
    DeviceOptions options;
    options.devices = replicas;
    restart(options);
    const std::vector<torch::Tensor> host(static_cast<size_t>(replicas), torch::ones({2}));
    EXPECT_EQ(all_gather(upload(host), 0).cpu().numel(), 2 * replicas);
  }
}

TEST_F(Replicas, GroupsWorkAmongThemselves) {
  const auto host = values({4});
  const torch::Tensor device = upload(host);
  const Groups groups = {{0, 3}, {2, 1}};
  const torch::Tensor outer = host[0] + host[3], inner = host[1] + host[2];
  expect_same(on_all(all_reduce(device, Reduce::kSum, groups)), {outer, inner, inner, outer}, 1e-6, "sum");
  const torch::Tensor a = torch::cat({host[0], host[3]}), b = torch::cat({host[2], host[1]});
  expect_same(on_all(all_gather(device, 0, groups)), {a, b, b, a}, 0, "gather");
  expect_same(on_all(reduce_scatter(device, 0, groups)),
              {outer.narrow(0, 0, 2), inner.narrow(0, 2, 2), inner.narrow(0, 0, 2), outer.narrow(0, 2, 2)},
              1e-6, "scatter");
  EXPECT_THAT(thrown([&] {
                all_reduce(device, Reduce::kSum, {{0, 1}, {2}});
              }),
              HasSubstr("groups of one size"));
  EXPECT_THAT(thrown([&] {
                all_reduce(device, Reduce::kSum, {{0, 1}});
              }),
              HasSubstr("replica 2 is in no group"));
  EXPECT_THAT(thrown([&] {
                all_reduce(device, Reduce::kSum, {{0, 9}});
              }),
              HasSubstr("there is no replica 9"));
}

TEST_F(Replicas, AGlobalValueNeedsNoCommunication) {
  const torch::Tensor same = torch::randn({3}).to(test_device());
  expect_same(sluice::sum(same).cpu(), same.cpu() * kReplicas, 1e-6);
  expect_same(sluice::mean(same).cpu(), same.cpu(), 0);
}

// The replicas as one computation on the host: f(x_0 … x_3) and its gradients.
TEST_F(Replicas, GradientsOfCollectives) {
  struct Case {
    std::string name;
    std::function<torch::Tensor(const torch::Tensor&)> device;
    std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>&)> host;
  };
  auto repeated = [](const torch::Tensor& one) { return std::vector<torch::Tensor>(kReplicas, one); };
  const std::vector<Case> cases = {
      {"sum", [](const torch::Tensor& x) { return sluice::sum(x); },
       [&](const std::vector<torch::Tensor>& x) { return repeated(torch::stack(x).sum(0)); }},
      {"mean", [](const torch::Tensor& x) { return sluice::mean(x); },
       [&](const std::vector<torch::Tensor>& x) { return repeated(torch::stack(x).mean(0)); }},
      {"gather", [](const torch::Tensor& x) { return all_gather(x, 1); },
       [&](const std::vector<torch::Tensor>& x) { return repeated(torch::cat(x, 1)); }},
      {"scatter", [](const torch::Tensor& x) { return reduce_scatter(x, 0); },
       [](const std::vector<torch::Tensor>& x) { return torch::stack(x).sum(0).chunk(kReplicas, 0); }},
      {"broadcast", [](const torch::Tensor& x) { return broadcast(x, 2); },
       [&](const std::vector<torch::Tensor>& x) { return repeated(x[2]); }},
      {"permute",
       [](const torch::Tensor& x) {
         return collective_permute(x, {{0, 1}, {1, 3}});
       },
       [](const std::vector<torch::Tensor>& x) {
         return std::vector<torch::Tensor>{x[0] * 0, x[0] * 1, x[0] * 0, x[1] * 1};
       }}};
  for (const Case& one : cases) {
    auto host = values({4, 4});
    for (auto& x : host) x.requires_grad_();
    const auto outputs = one.host(host);
    std::vector<torch::Tensor> weights;
    torch::Tensor objective = torch::zeros({});
    for (int r = 0; r < kReplicas; ++r) {
      weights.push_back(torch::randn_like(outputs[static_cast<size_t>(r)]));
      objective = objective + (outputs[static_cast<size_t>(r)] * weights.back()).sum();
    }
    objective.backward();
    std::vector<torch::Tensor> plain, expected;
    for (const auto& x : host) {
      plain.push_back(x.detach().clone());
      expected.push_back(x.grad().defined() ? x.grad() : torch::zeros_like(x));
    }
    torch::Tensor device = upload(plain).requires_grad_();
    (one.device(device) * upload(weights)).sum().backward();
    expect_same(on_all(device.grad()), expected, 1e-5, one.name);
  }
}

TEST_F(Replicas, ReadingADifferingValueIsAnErrorThatHelps) {
  torch::Tensor weight = torch::randn({5, 2}).to(test_device());
  name_tensors({{"fc.weight", weight}});
  const torch::Tensor y = upload(values({3, 5})).mm(weight).relu();
  const std::string message = thrown([&] { y.sum().item<float>(); });
  EXPECT_THAT(
      message,
      HasSubstr(".item(): the value differs between the 4 replicas (different since aten::mm in layer "
                "fc.weight)"));
  EXPECT_THAT(message, HasSubstr("sluice::mean(tensor)"));
  EXPECT_THAT(message, HasSubstr("sluice::on_replica(tensor, 0)"));
  EXPECT_THAT(thrown([&] { torch::equal(y, y + 1); }), HasSubstr("differs between the 4 replicas"));
  EXPECT_TRUE(std::isfinite(sluice::mean(y.sum()).item<float>()));
  EXPECT_THAT(thrown([&] { on_replica(y, 4); }), HasSubstr("there is no replica 4; this process has 4"));
}

TEST_F(Replicas, TheForgottenAverageIsCaught) {
  auto model = nn::Linear(5, 2);
  model->to(test_device());
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  auto session = start(session_options());
  session.prepare(*model, optimizer);
  model->forward(upload(values({3, 5}))).pow(2).mean().backward();
  const std::string message = thrown([&] { optimizer.step(); });
  EXPECT_THAT(message,
              HasSubstr("the parameter 'weight' would get a value that differs between the replicas"));
  EXPECT_THAT(message, HasSubstr("different since aten::addmm"));
  EXPECT_THAT(message, HasSubstr("session.step(optimizer)"));
  // By hand, as the message says.
  session.reduce_gradients(model->parameters());
  session.reduce_gradients(model->parameters());
  optimizer.step();
  session.sync();
  session.check_replicas(*model);
}

TEST_F(Replicas, ModelsOfTheHostAreGlobalAndOfTheDeviceStayEqual) {
  // Weights that are initialised on the device draw the same numbers once they are marked.
  torch::Tensor weight = torch::empty({64}, test_device());
  keep_equal({weight});
  weight.normal_();
  const auto weights = on_all(weight);
  expect_same(weights[1], weights[0], 0);
  // Dropout differs on each replica; inside the scope it does not.
  const auto different = on_all(torch::rand({64}, test_device()));
  EXPECT_NE(differs(different[1], different[0], 1e-6), "");
  torch::manual_seed(6);
  const auto drawn = on_all(torch::rand({7, 9}, test_device()));
  for (uint32_t r = 0; r < kReplicas; ++r)
    expect_same(drawn[r], uniform_of(first_key(6), {7, 9}, /*wide=*/false, r).to(torch::kFloat), 0);
  const auto attend = [x = torch::ones({1, 2, 32, 16}, test_device())] {
    return at::scaled_dot_product_attention(x, x, x, /*attn_mask=*/{}, /*dropout_p=*/0.5);
  };
  const auto attended = on_all(attend());
  EXPECT_NE(differs(attended[1], attended[0], 1e-6), "");
  const SharedRandom scope;
  const auto alike = on_all(attend());
  expect_same(alike[1], alike[0], 0);
  const torch::Tensor shared = torch::rand({64}, test_device());
  expect_same(on_all(shared)[3], shared.cpu(), 0);
}

TEST_F(Replicas, AnUnsplitBatchIsReported) {
  auto session = start(session_options());
  auto model = nn::Linear(5, 2);
  model->to(session.device());
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    model->forward(torch::ones({3, 5}).to(session.device())).sum().backward();
    session.step(optimizer);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("all gradients are equal on the 4 replicas"));
  EXPECT_EQ(log.find("all gradients are equal"), log.rfind("all gradients are equal")) << "said once";
}

TEST_F(Replicas, FallbacksRunOnceForEachReplica) {
  const auto host = values({4, 4});
  const torch::Tensor device = upload(host);
  const int64_t before = counters().fallbacks;
  std::vector<torch::Tensor> expected;
  for (const auto& x : host) expected.push_back(torch::special_airy_ai(x));
  expect_same(on_all(torch::special_airy_ai(device)), expected, 1e-3, "an operation without a row");
  EXPECT_GT(counters().fallbacks, before) << "airy_ai has a row now: choose another operation";
  const auto signs = upload({torch::tensor({1.F, -1.F}), torch::tensor({1.F, 1.F}), torch::tensor({1.F, 1.F}),
                             torch::tensor({-1.F, -1.F})});
  EXPECT_THAT(thrown([&] { torch::nonzero(signs.gt(0)); }), HasSubstr("different shapes on the replicas"));
}

// A small net with BatchNorm, trained on `replicas` devices that share the batch.
struct Recipe {
  std::string name;
  bool adam = false;
  int accumulate = 1;
  double clip_norm = 0;
};

std::vector<torch::Tensor> train_on(int replicas, const Recipe& recipe) {
  constexpr int kRows = 16, kSteps = 6;
  DeviceOptions device_options;
  device_options.devices = replicas;
  restart(device_options);
  Options options;
  options.xla = device_options;
  options.xla.cache = false;
  auto session = start(options);
  set_sync_batch_norm(true);
  torch::manual_seed(11);
  auto model = nn::Sequential(nn::Conv2d(nn::Conv2dOptions(2, 6, 3).padding(1).bias(false)),
                              nn::BatchNorm2d(6), nn::ReLU(), nn::Flatten(), nn::Linear(6 * 25, 4));
  model->to(session.device());
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (recipe.adam)
    optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(0.01));
  else
    optimizer =
        std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  session.prepare(*model, *optimizer);
  std::vector<torch::Tensor> result;
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor loss;
    for (int part = 0; part < recipe.accumulate; ++part) {
      const torch::Tensor image = torch::randn({kRows, 2, 5, 5}), label = torch::randint(4, {kRows});
      std::optional<Accumulate> more;
      if (part + 1 < recipe.accumulate) more.emplace(session);
      loss = nn::functional::cross_entropy(model->forward(sluice::split(image)), sluice::split(label)) /
             recipe.accumulate;
      loss.backward();
      session.step(*optimizer, {.clip_norm = recipe.clip_norm});
    }
    result.push_back(sluice::mean(loss.detach()).cpu());
  }
  session.check_replicas(*model);
  session.sync_buffers(*model);
  for (const auto& tensor : model->parameters()) result.push_back(tensor.detach().cpu());
  for (const auto& tensor : model->buffers()) result.push_back(tensor.cpu());
  set_sync_batch_norm(false);
  return result;
}

class EightEqualOne : public testing::TestWithParam<Recipe> {};

TEST_P(EightEqualOne, WithTheWholeBatch) {
  if (on_cpu()) GTEST_SKIP();
  torch::set_num_threads(1);
  // Adam divides by the root of a gradient's square, so rounding counts for more where that is small.
  const double tolerance = GetParam().adam ? 2e-4 : 2e-5;
  expect_same(train_on(8, GetParam()), train_on(1, GetParam()), tolerance, GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Recipes, EightEqualOne,
                         testing::Values(Recipe{"sgd"}, Recipe{"adam", true}, Recipe{"accumulate", false, 3},
                                         Recipe{"clip", false, 1, 0.05}),
                         [](const auto& info) { return info.param.name; });

// A generator and a discriminator, each with an optimizer of its own, in one graph.
std::vector<torch::Tensor> train_gan_on(int replicas) {
  constexpr int kRows = 16;
  Options options;
  options.xla.devices = replicas;
  options.xla.cache = false;
  restart(options.xla);
  auto session = start(options);
  torch::manual_seed(13);
  auto generator = nn::Sequential(nn::Linear(3, 8), nn::ReLU(), nn::Linear(8, 5));
  auto discriminator = nn::Sequential(nn::Linear(5, 8), nn::LeakyReLU(), nn::Linear(8, 1));
  generator->to(session.device());
  discriminator->to(session.device());
  auto adam = [](nn::Sequential& model) {
    return torch::optim::Adam(model->parameters(), torch::optim::AdamOptions(0.01).betas({0.5, 0.9}));
  };
  auto generator_optimizer = adam(generator), discriminator_optimizer = adam(discriminator);
  auto loss = [](const torch::Tensor& logits, double label) {
    return nn::functional::binary_cross_entropy_with_logits(logits, torch::full_like(logits, label));
  };
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor real = sluice::split(torch::randn({kRows, 5}));
    const torch::Tensor noise = sluice::split(torch::randn({kRows, 3}));
    const torch::Tensor fake = generator->forward(noise);
    (loss(discriminator->forward(real), 1) + loss(discriminator->forward(fake.detach()), 0)).backward();
    session.reduce_gradients(discriminator->parameters());
    // LibTorch's own reads the norm: it may, now that the gradients are equal.
    nn::utils::clip_grad_norm_(discriminator->parameters(), 0.5);
    session.step(discriminator_optimizer);
    loss(discriminator->forward(fake), 1).backward();
    session.step({&generator_optimizer});
    discriminator->zero_grad();
  }
  std::vector<torch::Tensor> result;
  for (const auto& model : {generator, discriminator})
    for (const auto& tensor : model->parameters()) result.push_back(tensor.detach().cpu());
  return result;
}

TEST(Gan, EightReplicasEqualOne) {
  if (on_cpu()) GTEST_SKIP();
  torch::set_num_threads(1);
  expect_same(train_gan_on(8), train_gan_on(1), 2e-4, "gan");
}

}  // namespace
}  // namespace sluice::tests
