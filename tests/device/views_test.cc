// Views whose places change, indices that are views, and the strides of results.
#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

int64_t programs() { return counters().programs; }

TEST(ChangingPlaces, AreOneProgramAfterTheFirstFew) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  const torch::Tensor host = ramp({50, 3, 2});
  torch::Tensor images = host.to(test_device());
  int64_t before = programs();
  for (int64_t i = 0; i < 50; ++i) expect_same(images[i], host[i], 0, c10::str("image ", i));
  EXPECT_LE(programs() - before, 6);
  before = programs();
  for (int64_t i = 0; i + 10 <= 50; ++i) expect_same(images.slice(0, i, i + 10), host.slice(0, i, i + 10), 0);
  EXPECT_LE(programs() - before, 6);
  // Parts that do not lie together: every second column of a row of planes.
  const torch::Tensor planes = ramp({40, 4, 6});
  torch::Tensor there = planes.to(test_device());
  auto part = [](const torch::Tensor& x, int64_t i) { return x.select(0, i).t().slice(0, 1, 6, 2); };
  before = programs();
  for (int64_t i = 0; i < 40; ++i) expect_same(part(there, i), part(planes, i), 0, c10::str("plane ", i));
  EXPECT_LE(programs() - before, 6);
}

TEST(ChangingPlaces, AreWrittenByOneProgram) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  torch::Tensor cache = torch::zeros({30, 4}, test_device()), expected = torch::zeros({30, 4});
  torch::Tensor columns = torch::zeros({4, 30}, test_device());
  const int64_t before = programs();
  for (int64_t i = 0; i < 30; ++i) {
    const torch::Tensor row = ramp({4}, 0.1 * static_cast<double>(i + 1));
    cache[i].copy_(row);
    columns.select(1, i).add_(row.to(test_device()));
    expected[i].copy_(row);
    sync("step");
  }
  EXPECT_LE(programs() - before, 8);
  expect_same(cache, expected, 0);
  expect_same(columns, expected.t(), 0);
}

// Replay memory: its first rows are written within one trace, the others one a step, then all again.
TEST(ChangingPlaces, AreOneProgramWhereOneTraceHadThem) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  restart();
  torch::Tensor ring = torch::zeros({24, 5}, test_device()), expected = torch::zeros({24, 5});
  auto write = [&](int64_t i) {
    const torch::Tensor row = ramp({5}, 0.1 * static_cast<double>(i + 1));
    ring[i % 24] = row.to(test_device());
    expected[i % 24] = row;
  };
  for (int64_t i = 0; i < 14; ++i) write(i);
  sync("fill");
  const int64_t before = programs();
  for (int64_t i = 14; i < 48; ++i) {
    write(i);
    sync("step");
  }
  EXPECT_LE(programs() - before, 5);
  expect_same(ring, expected, 0);
}

TEST(Strides, OfResultsAreLibTorchsOwn) {
  const std::pair<const char*, std::function<torch::Tensor(torch::Tensor)>> cases[] = {
      {"add", [](auto x) { return x + 1; }},
      {"relu", [](auto x) { return torch::relu(x); }},
      {"flip", [](auto x) { return x.flip(0); }},
      {"sigmoid", [](auto x) { return torch::sigmoid(x); }},
      {"binary", [](auto x) { return x * x.clone(); }},
      {"broadcast", [](auto x) { return x + torch::ones({x.size(-1)}, x.options()); }},
      {"clone", [](auto x) { return x.clone(); }},
      {"contiguous", [](auto x) { return x.contiguous(); }},
      {"zeros_like", [](auto x) { return torch::zeros_like(x); }},
      {"where", [](auto x) { return torch::where(x > 0, x, -x); }},
      {"sum", [](auto x) { return x.sum(0, true); }},
  };
  const torch::Tensor x = ramp({4, 6}),
                      image = ramp({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
  const std::vector<torch::Tensor> inputs = {x.t(), x.slice(1, 0, 6, 2),
                                             x.view({4, 3, 2}).permute({2, 0, 1})};
  for (const auto& [name, call] : cases) {
    for (const torch::Tensor& input : inputs) {
      const torch::Tensor there =
          x.to(test_device()).as_strided(input.sizes(), input.strides(), input.storage_offset());
      const torch::Tensor expected = call(input), found = call(there);
      EXPECT_EQ(found.strides(), expected.strides()) << name << " of strides " << input.strides();
      expect_same(found, expected, 1e-6, name);
    }
  }
  // Convolution, normalization and pooling keep the order of an image's channels.
  const torch::Tensor there = image.to(test_device());
  EXPECT_TRUE(there.is_contiguous(torch::MemoryFormat::ChannelsLast));
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(3, 4, 3));
  torch::nn::BatchNorm2d norm(4);
  auto network = [&](const torch::Tensor& input) {
    return torch::max_pool2d(torch::relu(norm->forward(convolution->forward(input))), 2);
  };
  const torch::Tensor expected = network(image);
  convolution->to(test_device());
  norm = torch::nn::BatchNorm2d(4);
  norm->to(test_device());
  const torch::Tensor found = network(there);
  EXPECT_EQ(found.strides(), expected.strides());
  expect_same(found, expected, 1e-4);
}

TEST(Strides, OfCopiesToTheDeviceAreKept) {
  const torch::Tensor x = ramp({4, 6}).t(), there = x.to(test_device());
  EXPECT_EQ(there.device(), test_device());
  EXPECT_EQ(there.strides(), x.strides());
  expect_same(there, x, 0);
  EXPECT_EQ(there.to(torch::kDouble).strides(), x.strides());
  EXPECT_EQ(there.cpu().strides(), x.strides());
}

TEST(Strides, DecideWhatAWriteThroughAViewChanges) {
  auto run = [](torch::Device device) {
    torch::Tensor a = ramp({3, 4}).to(device);
    torch::Tensor flipped = a.t().flip(0);
    flipped.flatten().zero_();  // a copy, for the flipped tensor keeps the strides of a transpose
    return flipped;
  };
  expect_same(run(test_device()), run(torch::kCPU), 0);
}

TEST(ElementTypes, OfViewsMayBeOthers) {
  const torch::ScalarType types[] = {torch::kInt,  torch::kByte,   torch::kShort,       torch::kHalf,
                                     torch::kLong, torch::kDouble, torch::kComplexFloat};
  // Sums keep the strides of a transpose, so they are stored as one.
  const torch::Tensor x = ramp({6, 4}).t() + 1, there = ramp({6, 4}).to(test_device()).t() + 1;
  for (const torch::ScalarType type : types) {
    expect_same(there.t().view(type), x.t().view(type), 0, c10::toString(type));
    expect_same(there.t().slice(0, 1, 5, 2).view(type), x.t().slice(0, 1, 5, 2).view(type), 0);
  }
  const torch::Tensor mask = ramp({8}) > 0;
  expect_same(mask.to(test_device()).view(torch::kByte), mask.view(torch::kByte), 0);
  expect_same(mask.view(torch::kByte).to(test_device()).view(torch::kBool), mask, 0);
  // A write through the view is seen by the tensor: the sign bit of each number is cleared.
  auto absolute = [](const torch::Tensor& numbers) {
    numbers.view(torch::kInt).bitwise_and_(0x7fffffff);
    return numbers;
  };
  expect_same(absolute(ramp({3, 4}).to(test_device())), ramp({3, 4}).abs(), 0);
  torch::Tensor bytes = torch::zeros({16}, torch::kByte), bytes_there = bytes.to(test_device());
  for (torch::Tensor& b : {std::ref(bytes), std::ref(bytes_there)})
    b.slice(0, 4, 12).view(torch::kFloat).fill_(1.5);
  expect_same(bytes_there, bytes, 0);
  EXPECT_THAT(thrown([&] { (void)torch::zeros({3}, test_device()).view(torch::kDouble); }),
              testing::HasSubstr("must be divisible by"));
}

TEST(Overlap, WritesThatLibTorchRefusesAreRefused) {
  auto expect_refused = [](const char* words, const std::function<void(torch::Tensor)>& call) {
    EXPECT_THAT(thrown([&] { call(ramp({4, 4})); }), testing::HasSubstr(words));
    EXPECT_THAT(thrown([&] { call(ramp({4, 4}).to(test_device())); }), testing::HasSubstr(words));
  };
  const char* one_place = "more than one element of the written-to tensor refers to a single memory location";
  const char* partly =
      "some elements of the input tensor and the written-to tensor refer to a single memory location";
  expect_refused(one_place, [](torch::Tensor x) { x.select(0, 0).expand({3, 4}).add_(1); });
  expect_refused(one_place, [](torch::Tensor x) { x.select(0, 0).expand({3, 4}).copy_(ramp({3, 4})); });
  expect_refused(partly, [](torch::Tensor x) { x.copy_(x.t()); });
  expect_refused(partly, [](torch::Tensor x) { x.add_(x.t()); });
  expect_refused(partly, [](torch::Tensor x) { x.slice(0, 1).copy_(x.slice(0, 0, 3)); });
  auto allowed = [](torch::Device device) {
    torch::Tensor x = ramp({4, 4}).to(device);
    x.add_(x);
    x.slice(0, 0, 2).copy_(x.slice(0, 2));
    x.select(1, 0).mul_(x.select(1, 2));
    return x;
  };
  expect_same(allowed(test_device()), allowed(torch::kCPU), 0);
}

// Places of rows [4, 5] in x [4, 6, 3], some of them twice, broadcast to their elements.
torch::Tensor places_of_rows(torch::Device device, bool repeated) {
  const torch::Tensor rows = torch::arange(20, torch::kLong).mul(7).remainder(4).view({4, 5, 1}).to(device);
  return repeated ? rows.repeat({1, 1, 3}) : rows.expand({4, 5, 3});
}

// What gathers and scatters of whole rows, and their gradients, give.
std::vector<torch::Tensor> of_rows(torch::Device device, bool repeated) {
  const torch::Tensor index = places_of_rows(device, repeated), wide = ramp({4, 5, 4}, 1.5).to(device);
  torch::Tensor x = ramp({4, 6, 3}, 0.25).to(device).requires_grad_();
  torch::Tensor source = ramp({4, 5, 3}, 0.75).to(device).requires_grad_();
  std::vector<torch::Tensor> made = {
      x.gather(1, index), x.scatter_add(1, index, source), x.scatter_add(1, index, wide),
      x.scatter_reduce(1, index, source, "amax"),
      x.scatter_reduce(1, index, source, "mean", /*include_self=*/false),
      x.scatter(1, index.slice(1, 0, 3), 2.5), x.scatter(1, index.slice(1, 0, 3), source.detach()),
      x.detach().scatter(1, index, source.detach(), "multiply"),
      // The same places for each of the first dimension, and for shorter rows.
      x.gather(1, index.slice(0, 1, 2).expand({4, 5, 3})), x.gather(1, index.slice(0, 0, 2).slice(2, 0, 2))};
  torch::Tensor sum = torch::zeros({}, device);
  for (const torch::Tensor& y : made)
    if (y.requires_grad()) sum = sum + (y * y.detach()).sum();
  sum.backward();
  made.insert(made.end(), {x.grad(), source.grad()});
  return made;
}

TEST(BroadcastIndex, IsOnePlaceForEachRow) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  for (const bool repeated : {false, true}) {
    const DumpedPrograms programs;
    const std::vector<torch::Tensor> found = of_rows(test_device(), repeated);
    sync_and_wait();
    expect_same(found, of_rows(torch::kCPU, repeated), 1e-5, repeated ? "repeated" : "expanded");
    EXPECT_GE(programs.calls("slice_sizes = array<i64: 1, 1, 3>"), 3) << "x.gather and gradients of scatters";
    EXPECT_EQ(programs.calls("slice_sizes = array<i64: 4, 1, 3>"), 1);
    EXPECT_EQ(programs.calls("slice_sizes = array<i64: 1, 1, 2>"), 1);
    EXPECT_EQ(programs.calls("slice_sizes = array<i64: 1, 1, 1>"), 0) << "single elements";
    EXPECT_EQ(programs.calls("inserted_window_dims = [0, 1, 2]"), 0) << "single elements";
  }
  restart();
}

TEST(BroadcastIndex, OutsideIsReportedAndReadsTheNearestRow) {
  if (on_cpu()) GTEST_SKIP() << "needs the device";
  const auto read = [](int64_t place) {
    const torch::Tensor index = torch::tensor({place}, torch::kLong).to(test_device()).view({1, 1, 1});
    return ramp({2, 4, 3}).to(test_device()).gather(1, index.expand({2, 1, 3}));
  };
  EXPECT_THAT(thrown([&] { (void)read(4).cpu(); }),
              testing::AllOf(testing::HasSubstr("aten::gather"),
                             testing::HasSubstr("index holds 4, expected values from 0 to 3")));
  DeviceOptions options;
  options.check = false;
  restart(options);
  expect_same(read(9), ramp({2, 4, 3}).slice(1, 3, 4), 0);
  expect_same(read(-2), ramp({2, 4, 3}).slice(1, 0, 1), 0);
  restart();
}

}  // namespace
}  // namespace sluice::tests
