#include "sluice/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "sluice/base/error.h"
#include "sluice/session/feed_state.h"

namespace sluice {
namespace {

Session cpu_session() {
  Options options;
  options.device = "cpu";
  return start(options);
}

std::vector<torch::Tensor> numbers(int64_t count) {
  std::vector<torch::Tensor> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(torch::full({2}, i));
  return result;
}

TEST(Session, FeedsAnyRange) {
  auto session = cpu_session();
  std::vector<double> seen;
  auto tensors = numbers(5);
  for (auto& batch : session.feed(tensors)) seen.push_back(batch.image.sum().item<double>());
  EXPECT_EQ(seen, (std::vector<double>{0, 2, 4, 6, 8}));

  std::vector<std::pair<torch::Tensor, torch::Tensor>> pairs = {{torch::ones({2}), torch::zeros({2})}};
  for (auto& batch : session.feed(pairs)) {
    auto [image, label] = batch;
    EXPECT_EQ(image.sum().item<double>(), 2);
    EXPECT_EQ(label.sum().item<double>(), 0);
    EXPECT_EQ(batch.count, 2);
  }

  std::vector<torch::data::Example<>> examples = {{torch::ones({3}), torch::zeros({3})}};
  for (auto& batch : session.feed(examples)) EXPECT_EQ(batch.columns.size(), 2u);
}

TEST(Session, FeedSkips) {
  auto session = cpu_session();
  FeedOptions options;
  options.skip = 3;
  std::vector<int64_t> seen;
  for (auto& batch : session.feed(numbers(5), options)) seen.push_back(batch.index);
  EXPECT_EQ(seen, (std::vector<int64_t>{3, 4}));
}

class Squares : public torch::data::Dataset<Squares> {
 public:
  torch::data::Example<> get(size_t index) override {
    const auto x = static_cast<float>(index);
    return {torch::full({1}, x), torch::full({1}, x * x)};
  }
  torch::optional<size_t> size() const override { return 6; }
};

TEST(Session, FeedsLibTorchsDataLoaders) {
  auto session = cpu_session();
  auto stacked = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Squares().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(3));
  std::vector<double> seen;
  for (auto& batch : session.feed(*stacked)) seen.push_back(batch.label.sum().item<double>());
  EXPECT_EQ(seen, (std::vector<double>{5, 50}));
  auto loose = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Squares(), torch::data::DataLoaderOptions(3));
  seen.clear();
  for (auto& batch : session.feed(*loose)) seen.push_back(batch.label.sum().item<double>());
  EXPECT_EQ(seen, (std::vector<double>{5, 50}));
}

// A range that notes how far it is read ahead of the loop that it feeds.
struct Counting {
  struct Iterator {
    Counting* range;
    int at;
    torch::Tensor operator*() const {
      range->taken = at + 1;
      range->furthest = std::max<int>(range->furthest, at + 1 - range->seen);
      return torch::full({1}, at);
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() { return {this, 0}; }
  Iterator end() { return {this, 1000}; }
  std::atomic<int> taken{0}, seen{0}, furthest{0};  // `seen`: what the loop has got
};

TEST(Session, FeedStaysABoundedWayAheadAndCanBeLeft) {
  auto session = cpu_session();
  Counting range;
  constexpr int kPrefetch = 2;
  FeedOptions options;
  options.prefetch = kPrefetch;
  for (auto& batch : session.feed(range, options)) {
    range.seen = static_cast<int>(batch.index) + 1;
    // Without being asked it goes on until its queue is full and one more is in its hand.
    while (batch.index < 10 && range.taken < range.seen + kPrefetch + 1) std::this_thread::yield();
    if (batch.index == 100) break;
  }
  // And one that the loop has taken from the queue, but not counted yet.
  EXPECT_GE(range.furthest, kPrefetch + 1);
  EXPECT_LE(range.furthest, kPrefetch + 2);
  EXPECT_LT(range.taken, 1000);
}

struct Failing {
  struct Iterator {
    int at;
    torch::Tensor operator*() const {
      if (at == 2) throw std::runtime_error("the disk is on fire");
      return torch::zeros({1});
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() { return {0}; }
  Iterator end() { return {9}; }
};

TEST(Session, FeedThrowsTheSourcesError) {
  auto session = cpu_session();
  int seen = 0;
  try {
    for (auto& batch : session.feed(Failing())) seen += static_cast<int>(batch.count);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the disk is on fire"));
  }
  EXPECT_EQ(seen, 2);
}

TEST(Session, SplitsABatchByReplica) {
  data::Batch batch;
  batch.image = data::Array::zeros(data::ElementType::kUint8, {6, 1, 2, 2});
  batch.label = data::Array::zeros(data::ElementType::kInt64, {6});
  batch.mask = data::Array::zeros(data::ElementType::kBool, {6});
  for (int64_t i = 0; i < 6; ++i) batch.label.data<int64_t>()[i] = i;
  for (int64_t i = 0; i < 4; ++i) batch.mask.data<bool>()[i] = true;
  batch.columns.resize(2);
  batch.columns[0].array = batch.image;
  batch.columns[1].array = batch.label;
  batch.count = batch.global_count = 4;
  auto parts = sessions::split_batch(batch, 2, /*padded=*/true);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(torch::equal(parts[1].label, torch::tensor({3, 4, 5}, torch::kLong)));
  EXPECT_EQ(parts[0].count, 3);
  EXPECT_EQ(parts[1].count, 1);
  // The mean over replicas of weight × local mean is the global mean: (3·w0/2)/3 …: weights 3·2/4 and 1·2/4.
  EXPECT_FLOAT_EQ(parts[0].weight, 1.5F);
  EXPECT_FLOAT_EQ(parts[1].weight, 0.5F);
  EXPECT_TRUE(torch::equal(parts[1].mask, torch::tensor({true, false, false})));
}

torch::Tensor loss_of(torch::nn::Linear& model, const torch::Tensor& x) {
  return model->forward(x).square().mean();
}

TEST(Session, StepUpdatesAndReleasesTheGradients) {
  auto session = cpu_session();
  torch::manual_seed(3);
  torch::nn::Linear model(3, 2);
  torch::nn::Linear twin(3, 2);
  {
    torch::NoGradGuard no_grad;
    twin->weight.copy_(model->weight);
    twin->bias.copy_(model->bias);
  }
  torch::optim::Adam optimizer(model->parameters(), 0.1), by_hand(twin->parameters(), 0.1);
  session.prepare(*model, optimizer);
  for (int i = 0; i < 3; ++i) {
    const auto x = torch::randn({4, 3});
    loss_of(model, x).backward();
    session.step(optimizer);
    EXPECT_FALSE(model->weight.grad().defined());
    by_hand.zero_grad();
    loss_of(twin, x).backward();
    by_hand.step();
  }
  EXPECT_TRUE(torch::equal(model->weight, twin->weight));
  EXPECT_EQ(session.steps(), 3);
  loss_of(model, torch::randn({4, 3})).backward();
  session.step(optimizer, {.keep_gradients = true});
  EXPECT_TRUE(model->weight.grad().defined());
}

TEST(Session, StepsSeveralOptimizersAndClosures) {
  auto session = cpu_session();
  torch::nn::Linear a(2, 1), b(2, 1);
  torch::optim::SGD first(a->parameters(), 0.1);
  torch::optim::Adam second(b->parameters(), 0.1);
  const auto before = a->weight.clone(), before_b = b->weight.clone();
  (loss_of(a, torch::ones({1, 2})) + loss_of(b, torch::ones({1, 2}))).backward();
  session.step({&first, &second});
  EXPECT_FALSE(torch::equal(a->weight, before));
  EXPECT_FALSE(torch::equal(b->weight, before_b));

  torch::optim::LBFGS lbfgs(a->parameters(), torch::optim::LBFGSOptions(0.5));
  const auto x = torch::randn({8, 2});
  const double start_loss = loss_of(a, x).item<double>();
  for (int i = 0; i < 5; ++i)
    session.step(lbfgs, [&] {
      lbfgs.zero_grad();
      auto loss = loss_of(a, x);
      loss.backward();
      return loss;
    });
  EXPECT_LT(loss_of(a, x).item<double>(), 0.1 * start_loss);
}

TEST(Session, ClipsAsLibTorchDoes) {
  torch::nn::Linear a(5, 4), b(5, 4);
  for (double max_norm : {0.01, 1000.0})
    for (double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
      a->weight.mutable_grad() = torch::randn({4, 5});
      a->bias.mutable_grad() = torch::randn({4});
      b->weight.mutable_grad() = a->weight.grad().clone();
      b->bias.mutable_grad() = a->bias.grad().clone();
      const double want = torch::nn::utils::clip_grad_norm_(b->parameters(), max_norm, type);
      EXPECT_NEAR(clip_grad_norm_(a->parameters(), max_norm, type).item<double>(), want, 1e-5);
      EXPECT_TRUE(torch::allclose(a->weight.grad(), b->weight.grad()));
    }
}

// LibTorch takes the norm in the gradients' own type. What it takes for them in f32 is the value to compare
// with.
TEST(Session, ClipsShortFloatsByTheirNormInFloats) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    torch::nn::Linear half(70, 30), whole(70, 30);
    half->to(type);
    for (const auto& [short_float, own] :
         {std::pair(half->weight, whole->weight), std::pair(half->bias, whole->bias)}) {
      short_float.mutable_grad() = (2000 * torch::randn(own.sizes())).to(type);
      own.mutable_grad() = short_float.grad().to(torch::kFloat);
    }
    const double want = torch::nn::utils::clip_grad_norm_(whole->parameters(), 3.0);
    EXPECT_GT(want, 65504);  // which f16 has not
    const torch::Tensor found = clip_grad_norm_(half->parameters(), 3.0);
    EXPECT_NEAR(found.item<double>(), want, 1e-5 * want);
    EXPECT_TRUE(torch::allclose(half->weight.grad().to(torch::kFloat), whole->weight.grad(), 0.01, 1e-4));
    EXPECT_EQ(half->weight.grad().scalar_type(), type);
  }
}

TEST(Session, StepClips) {
  auto session = cpu_session();
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  const auto before = model->weight.clone(), bias = model->bias.clone();
  (1000 * model->forward(torch::ones({1, 2}))).sum().backward();
  session.step(optimizer, {.clip_norm = 0.5});
  const auto moved = torch::cat({(model->weight - before).flatten(), model->bias - bias});
  EXPECT_NEAR(moved.norm().item<double>(), 0.5, 1e-4);
}

TEST(Session, StepClipsEachElement) {
  auto session = cpu_session();
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  const auto before = model->weight.clone();
  (model->forward(torch::tensor({{1000.0F, -0.25F}}))).sum().backward();
  session.step(optimizer, {.clip_value = 0.5});
  EXPECT_TRUE(torch::allclose(model->weight - before, torch::tensor({{-0.5F, 0.25F}}), 0, 1e-6));
}

TEST(Session, AccumulateAddsUpOverBatches) {
  auto session = cpu_session();
  torch::nn::Linear model(3, 1), twin(3, 1);
  {
    torch::NoGradGuard no_grad;
    twin->weight.copy_(model->weight);
    twin->bias.copy_(model->bias);
  }
  torch::optim::SGD optimizer(model->parameters(), 0.1), other(twin->parameters(), 0.1);
  const auto x = torch::randn({8, 3});
  {
    Accumulate micro(session);
    (loss_of(model, x.slice(0, 0, 4)) / 2).backward();
    session.step(optimizer);
  }
  EXPECT_EQ(session.steps(), 0);
  (loss_of(model, x.slice(0, 4, 8)) / 2).backward();
  session.step(optimizer);
  loss_of(twin, x).backward();
  other.step();
  EXPECT_TRUE(torch::allclose(model->weight, twin->weight));
}

TEST(Session, LogsEverySoManySteps) {
  auto session = cpu_session();
  torch::nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  testing::internal::CaptureStdout();
  for (int i = 1; i <= 4; ++i) {
    loss_of(model, torch::ones({1, 1})).backward();
    session.step(optimizer);
    session.log_every(2, {{"loss", torch::full({1}, i + 0.5)}, {"lr", 0.1}});
  }
  session.print("the ", "end");
  session.finish();
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_THAT(out,
              testing::HasSubstr("| Training Device=cpu/0 Epoch=1 Step=2 loss=2.50000 lr=0.10000 Rate="));
  EXPECT_THAT(out, testing::HasSubstr("Step=4 loss=4.50000"));
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("Step=3")));
  EXPECT_THAT(out, testing::HasSubstr("the end\n"));
}

TEST(Session, AfterStepGetsHostCopies) {
  auto session = cpu_session();
  auto value = torch::ones({2});
  double seen = 0;
  session.after_step({value}, [&](std::vector<torch::Tensor> host) { seen = host[0].sum().item<double>(); });
  value.fill_(7);  // too late to be seen
  session.sync();
  EXPECT_EQ(seen, 2);
}

TEST(Start, TakesItsFlagsAndLeavesTheOthers) {
  std::string text[] = {"program", "--sluice-device=cpu", "--lr", "0.1", "--sluice-strict", "last"};
  char* argv[] = {text[0].data(), text[1].data(), text[2].data(), text[3].data(),
                  text[4].data(), text[5].data(), nullptr};
  int argc = 6;
  auto session = start(&argc, argv);
  EXPECT_EQ(session.device(), torch::Device("cpu"));
  ASSERT_EQ(argc, 4);
  EXPECT_STREQ(argv[1], "--lr");
  EXPECT_STREQ(argv[3], "last");
  EXPECT_EQ(argv[4], nullptr);
}

TEST(Start, FlagsCountMoreThanTheEnvironmentAndThatMoreThanTheDefault) {
  ::setenv("SLUICE_DEVICE", "cpu", 1);
  ::setenv("SLUICE_DEVICES", "none", 1);
  EXPECT_THROW(start(), Error) << "SLUICE_DEVICES is not a number";
  ::setenv("SLUICE_DEVICES", "1", 1);
  EXPECT_EQ(start().device(), torch::Device("cpu"));
  ::setenv("SLUICE_DEVICE", "gpu", 1);
  EXPECT_THROW(start(), Error);
  std::string text[] = {"program", "--sluice-device=cpu", "--sluice-strict=off"};
  char* argv[] = {text[0].data(), text[1].data(), text[2].data(), nullptr};
  EXPECT_EQ(start(3, argv).device(), torch::Device("cpu"));
  Options options;
  options.device = "cpu";
  EXPECT_EQ(start(options).device(), torch::Device("cpu"));
  ::unsetenv("SLUICE_DEVICE");
  ::unsetenv("SLUICE_DEVICES");
}

TEST(Start, ASwitchIsOnOrOff) {
  std::string text[] = {"program", "--sluice-device=cpu", "--sluice-eager=maybe"};
  char* argv[] = {text[0].data(), text[1].data(), text[2].data(), nullptr};
  try {
    start(3, argv);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--sluice-eager: expected on or off, found \"maybe\""));
  }
}

TEST(Start, UnknownFlagsAndDevicesAreErrors) {
  std::string text[] = {"program", "--sluice-devise=cpu"};
  char* argv[] = {text[0].data(), text[1].data(), nullptr};
  try {
    start(2, argv);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean --sluice-device"));
  }
  Options options;
  options.device = "gpu";
  EXPECT_THROW(start(options), Error);
  options.device = "cpu";
  options.xla.devices = 2;
  EXPECT_THROW(start(options), Error);
}

}  // namespace
}  // namespace sluice
