// torch::scaled_dot_product_attention with dropout: what is kept, and the gradients of exactly that. Values
// that are the identity show what is kept; LibTorch's CPU then computes the same of matrices. Also attention
// as a loop over groups of heads, which other devices than a CPU run.
#include <ATen/ops/_safe_softmax.h>

#include "sluice/device/capture/capture.h"
#include "sluice/device/recompute.h"
#include "sluice/device/sharding/shard.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/support.h"

namespace sluice::tests {
namespace {

struct Shape {
  int64_t batch = 2, heads = 4, heads_of_keys = 4, queries = 96, keys = 96, size = 32;

  std::vector<int64_t> of_queries() const { return {batch, heads, queries, size}; }
  std::vector<int64_t> of_keys() const { return {batch, heads_of_keys, keys, size}; }
};

torch::Tensor attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, double p,
                        bool causal = false, const std::optional<torch::Tensor>& mask = {}) {
  return at::scaled_dot_product_attention(q, k, v, mask, p, causal, {}, q.size(1) != k.size(1));
}

// 1 where a call after this seed keeps a probability, else 0: [batch, heads, queries, keys], on the host.
// Some columns of the identity at a time: values are as wide as keys are.
torch::Tensor kept_after(uint64_t seed, const Shape& s, double p, torch::ScalarType dtype = torch::kFloat) {
  const auto options = torch::TensorOptions(dtype);
  const torch::Tensor q = torch::zeros(s.of_queries(), options).to(test_device());
  const torch::Tensor k = torch::zeros(s.of_keys(), options).to(test_device());
  std::vector<torch::Tensor> parts;
  for (int64_t first = 0; first < s.keys; first += s.size) {
    const torch::Tensor columns =
        torch::eye(s.keys, options).narrow(1, first, std::min(s.size, s.keys - first));
    const torch::Tensor v = torch::constant_pad_nd(columns, {0, s.size - columns.size(1)});
    torch::manual_seed(seed);
    parts.push_back(attention(q, k, v.expand(s.of_keys()).contiguous().to(test_device()), p)
                        .narrow(3, 0, columns.size(1))
                        .cpu());
  }
  return torch::cat(parts, 3).ne(0).to(dtype);
}

struct Case {
  const char* name;
  Shape shape = {};
  bool causal = false;
  torch::Tensor mask = {};
  torch::ScalarType dtype = torch::kFloat;
};

std::vector<Case> cases() {
  const torch::Tensor at = torch::arange(96);
  const torch::Tensor documents = (at / 30).view({96, 1}).eq((at / 30).view({1, 96}));
  torch::Tensor few = documents.clone();
  few.narrow(0, 40, 5).fill_(false);  // these see nothing
  return {{.name = "plain"},
          {.name = "causal", .causal = true},
          {.name = "filled up", .mask = (at < 60).view({1, 1, 1, 96})},
          {.name = "documents, and queries that see nothing", .mask = few},
          {.name = "numbers", .mask = torch::randn({2, 1, 96, 96})},
          {.name = "shared keys", .shape = {.heads_of_keys = 2, .queries = 70, .keys = 150, .size = 40}},
          {.name = "f64", .shape = {.queries = 20, .keys = 30, .size = 16}, .dtype = torch::kDouble},
          {.name = "small", .shape = {.batch = 1, .heads_of_keys = 1, .queries = 5, .keys = 7, .size = 4}}};
}

// The output and the gradients of queries, keys and values, by matrices on the host.
std::vector<torch::Tensor> expected(const Case& one, const std::vector<torch::Tensor>& inputs,
                                    const torch::Tensor& weights, const torch::Tensor& kept, double p) {
  const Shape& s = one.shape;
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_());
  const auto shared = [&](const torch::Tensor& x) {
    return x.repeat_interleave(s.heads / s.heads_of_keys, /*dim=*/1);
  };
  torch::Tensor scores = leaves[0].matmul(shared(leaves[1]).mT()) / std::sqrt(static_cast<double>(s.size));
  if (one.causal)
    scores = scores.masked_fill(torch::ones({s.queries, s.keys}, torch::kBool).tril().logical_not(),
                                -std::numeric_limits<double>::infinity());
  if (one.mask.defined() && one.mask.scalar_type() == torch::kBool)
    scores = scores.masked_fill(one.mask.logical_not(), -std::numeric_limits<double>::infinity());
  else if (one.mask.defined())
    scores = scores + one.mask;
  const torch::Tensor factors = p < 1 ? kept / (1 - p) : torch::zeros_like(kept);
  const torch::Tensor output = (at::_safe_softmax(scores, -1) * factors).matmul(shared(leaves[2]));
  (output * weights).sum().backward();
  return {output.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

// A tensor [batch, heads, …] on the device: over a mesh, with the batch and the heads in parts if they
// divide.
torch::Tensor placed(const torch::Tensor& x) {
  const Layout parts({{{"data", "fsdp"}}, {{"tensor"}}, {}, {}});
  const Mesh over = mesh();
  if (over.empty() || !parts.misfit(over, x.sizes().vec()).empty()) return x.to(test_device());
  return shard(x, parts);
}

// Compares the call and its gradients with the formula; `what` names how the device computes them.
void check(const Case& one, double p, const std::string& what) {
  const Shape& s = one.shape;
  torch::manual_seed(2);
  const auto host = torch::TensorOptions(one.dtype);
  const std::vector<torch::Tensor> inputs = {
      torch::randn(s.of_queries(), host), torch::randn(s.of_keys(), host), torch::randn(s.of_keys(), host)};
  const torch::Tensor weights = torch::randn(s.of_queries(), host);
  const torch::Tensor kept = p > 0 ? kept_after(31, s, p, one.dtype) : torch::ones({}, host);
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& input : inputs) leaves.push_back(placed(input.clone()).requires_grad_());
  const std::optional<torch::Tensor> mask =
      one.mask.defined() ? std::optional(one.mask.to(test_device())) : std::nullopt;
  torch::manual_seed(31);
  const torch::Tensor output = attention(leaves[0], leaves[1], leaves[2], p, one.causal, mask);
  (output * weights.to(test_device())).sum().backward();
  expect_same({output, leaves[0].grad(), leaves[1].grad(), leaves[2].grad()},
              expected(one, inputs, weights, kept, p), one.dtype == torch::kDouble ? 1e-10 : 3e-5,
              c10::str(one.name, ", p ", p, ", ", what));
}

TEST(AttentionDropout, IsTheFormulaWithWhatIsKept) {
  torch::manual_seed(2);
  for (const bool kernels : {true, false}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    restart(options);
    for (const Case& one : cases())
      for (const double p : {0.1, 0.6, 1.0}) check(one, p, c10::str("kernels ", kernels));
  }
  restart();
}

// A device, or several that form a mesh, whose attention makes at most this number of bytes of scores at
// once, in loops.
class InGroups {
 public:
  explicit InGroups(int64_t bytes, const std::string& mesh = "") {
    ::setenv("SLUICE_ATTENTION_BYTES", std::to_string(bytes).c_str(), 1);
    if (!mesh.empty()) ::setenv("SLUICE_MESH", mesh.c_str(), 1);
    DeviceOptions options;
    options.cpu_kernels = false;
    programs_.emplace(options);
  }
  ~InGroups() {
    ::unsetenv("SLUICE_ATTENTION_BYTES");
    ::unsetenv("SLUICE_MESH");
    restart();
  }
  InGroups(const InGroups&) = delete;
  InGroups& operator=(const InGroups&) = delete;
  int64_t loops() const { return programs_->calls("\"stablehlo.while\""); }

 private:
  std::optional<DumpedPrograms> programs_;
};

// The scores of one head of most cases have 36,864 bytes, and four heads are usual. So the numbers are for
// one sequence of the batch, where seven heads need a second group that overlaps the first; for two heads;
// for one; and for 24 queries of a head. Of the seven short sequences, groups of four overlap.
TEST(AttentionInGroups, IsTheFormula) {
  if (on_cpu()) GTEST_SKIP();
  std::vector<Case> all = cases();
  all.push_back({.name = "seven heads", .shape = {.heads = 7, .heads_of_keys = 7}, .causal = true});
  all.push_back({.name = "seven sequences",
                 .shape = {.batch = 7, .heads = 2, .heads_of_keys = 1, .queries = 30, .keys = 50},
                 .mask = torch::randn({7, 1, 1, 50}).lt(1)});
  for (const int64_t bytes : {190'000, 80'000, 40'000, 10'000}) {
    const InGroups device(bytes);
    for (const Case& one : all)
      for (const double p : {0.0, 0.3}) check(one, p, c10::str(bytes, " bytes"));
    EXPECT_GT(device.loops(), 0) << bytes;
  }
}

// Each device has four sequences with two heads of keys, or all sequences, or a part of the heads. The
// numbers of bytes are for two sequences of a device, for one head, and for some queries of a head.
TEST(AttentionInGroups, IsTheFormulaOverAMesh) {
  if (on_cpu()) GTEST_SKIP();
  const torch::Tensor at = torch::arange(40);
  const std::vector<Case> all = {
      {.name = "causal", .shape = {.batch = 8, .queries = 40, .keys = 40, .size = 8}, .causal = true},
      {.name = "documents",
       .shape = {.batch = 8, .queries = 40, .keys = 40, .size = 8},
       .mask = (at / 15).view({40, 1}).eq((at / 15).view({1, 40}))},
      {.name = "shared keys, filled up",
       .shape = {.batch = 8, .heads = 8, .queries = 24, .keys = 40, .size = 8},
       .mask = torch::randn({8, 1, 1, 40}).lt(1)},
      {.name = "three sequences", .shape = {.batch = 3, .queries = 40, .keys = 40, .size = 8}}};
  for (const std::string mesh : {"data=2,tensor=2", "fsdp=2", "tensor=4"})
    for (const int64_t bytes : {26'000, 6'400, 2'000}) {
      const InGroups device(bytes, mesh);
      for (const Case& one : all)
        check(one, bytes == 6'400 ? 0.3 : 0.0, c10::str(mesh, ", ", bytes, " bytes"));
      EXPECT_GT(device.loops(), 0) << mesh << ' ' << bytes;
    }
}

TEST(AttentionInGroups, KeepsWhatAllAtOnceKeep) {
  if (on_cpu()) GTEST_SKIP();
  const Shape s{.heads_of_keys = 2, .queries = 70, .keys = 150, .size = 40};
  std::vector<torch::Tensor> kept;
  for (const int64_t bytes : {0, 100'000, 10'000}) {
    const InGroups device(bytes);
    kept.push_back(kept_after(5, s, 0.37));
    EXPECT_EQ(device.loops() > 0, bytes > 0) << bytes;
  }
  EXPECT_TRUE(torch::equal(kept[0], kept[1]));
  EXPECT_TRUE(torch::equal(kept[0], kept[2]));
}

// Long causal queries are blocks, each with the keys that it sees. The numbers of bytes are for a loop over
// parts of a block's queries, for a loop over sequences, and for no loop.
TEST(AttentionInGroups, LongCausalQueriesInBlocks) {
  if (on_cpu()) GTEST_SKIP();
  const Case more_keys = {
      .name = "more keys",
      .shape = {.batch = 1, .heads = 2, .heads_of_keys = 1, .queries = 2100, .keys = 2300, .size = 8},
      .causal = true};
  const Case more_queries = {
      .name = "more queries",
      .shape = {.batch = 2, .heads = 1, .heads_of_keys = 1, .queries = 2300, .keys = 2100, .size = 8},
      .causal = true};
  const auto results = [](const Case& one, double p) {
    const Shape& s = one.shape;
    torch::manual_seed(3);
    std::vector<torch::Tensor> leaves;
    for (const auto& sizes : {s.of_queries(), s.of_keys(), s.of_keys()})
      leaves.push_back(torch::randn(sizes).to(test_device()).requires_grad_());
    const torch::Tensor weights = torch::randn(s.of_queries()).to(test_device());
    torch::manual_seed(31);
    const torch::Tensor output = attention(leaves[0], leaves[1], leaves[2], p, /*causal=*/true);
    (output * weights).sum().backward();
    return std::vector<torch::Tensor>{output.cpu(), leaves[0].grad().cpu(), leaves[1].grad().cpu(),
                                      leaves[2].grad().cpu()};
  };
  const auto expect = [&](const Case& one, const std::vector<int64_t>& numbers) {
    // IsTheFormulaWithWhatIsKept compares dropout without groups.
    std::vector<torch::Tensor> at_once;
    {
      const InGroups device(0);
      at_once = results(one, 0.3);
    }
    for (const int64_t bytes : numbers) {
      const InGroups device(bytes);
      const std::string what = c10::str(bytes, " bytes");
      check(one, 0, what);
      expect_same(results(one, 0.3), at_once, 3e-5, c10::str(one.name, ", dropout, ", what));
    }
  };
  expect(more_keys, {3'000'000});
  expect(more_queries, {13'000'000, 1'000'000'000});
}

// The kernel and the operation's definition, which other devices run, decide alike.
TEST(AttentionDropout, KernelsKeepWhatTheDefinitionKeeps) {
  if (on_cpu()) GTEST_SKIP();
  const Shape s{.heads_of_keys = 2, .queries = 70, .keys = 150, .size = 40};
  std::vector<torch::Tensor> kept;
  for (const bool kernels : {true, false}) {
    DeviceOptions options;
    options.cpu_kernels = kernels;
    const DumpedPrograms programs(options);
    kept.push_back(kept_after(5, s, 0.37));
    EXPECT_EQ(programs.calls("\"sluice_attention\"") > 0, kernels);
  }
  EXPECT_TRUE(torch::equal(kept[0], kept[1]));
  restart();
}

TEST(AttentionDropout, IsOneCallAndItsGradientAnother) {
  if (on_cpu()) GTEST_SKIP();
  const DumpedPrograms programs;
  const Shape s;
  const torch::Tensor packed =
      torch::randn({s.batch, s.queries, 3 * s.heads * s.size}).to(test_device()).requires_grad_();
  std::vector<torch::Tensor> heads = packed.chunk(3, -1);
  for (torch::Tensor& x : heads) x = x.view({s.batch, s.queries, s.heads, s.size}).transpose(1, 2);
  attention(heads[0], heads[1], heads[2], 0.2).square().sum().backward();
  cut();
  EXPECT_EQ(programs.calls("\"sluice_attention\""), 1);
  EXPECT_EQ(programs.calls("\"sluice_attention_gradient\""), 1);
  restart();
}

// How many standard deviations a mean of coins, each 1 with probability p, lies from p.
double distance(const torch::Tensor& coins, double p) {
  const double deviation = std::sqrt(p * (1 - p) / static_cast<double>(coins.numel()));
  return std::abs(coins.to(torch::kDouble).mean().item<double>() - p) / deviation;
}

TEST(AttentionDropout, KeepsByChance) {
  const Shape s{.batch = 4};
  for (const double p : {0.1, 0.5}) {
    const torch::Tensor kept = kept_after(3, s, p), other = kept_after(4, s, p);
    EXPECT_LT(distance(kept, 1 - p), 5) << p;
    for (int64_t head = 0; head < s.heads; ++head) EXPECT_LT(distance(kept.select(1, head), 1 - p), 5) << p;
    for (int64_t key = 0; key < s.keys; ++key) EXPECT_LT(distance(kept.select(3, key), 1 - p), 5) << p;
    // Nothing is kept twice more often than it should be: of heads, batches, queries, keys and calls.
    const auto expect_independent = [&](const torch::Tensor& a, const torch::Tensor& b, const char* what) {
      EXPECT_LT(distance(a * b, (1 - p) * (1 - p)), 5) << what << ", p " << p;
    };
    expect_independent(kept, other, "calls");
    for (int64_t dim = 0; dim < 4; ++dim) {
      const int64_t half = kept.size(dim) / 2;
      expect_independent(kept.narrow(dim, 0, half), kept.narrow(dim, half, half), "halves");
    }
  }
}

TEST(AttentionDropout, SameSeedSameNumbersWhateverTheCuts) {
  const Shape s;
  EXPECT_TRUE(torch::equal(kept_after(9, s, 0.4), kept_after(9, s, 0.4)));
  // The gradient of values that are the identity, for results that are each of its own query, is what is
  // kept.
  const Shape square{.queries = 64, .keys = 64, .size = 64};
  const torch::Tensor q = torch::randn(square.of_queries()).to(test_device());
  const torch::Tensor identity = torch::eye(64).expand(square.of_keys()).contiguous().to(test_device());
  const auto run = [&](bool cuts) {
    const torch::Tensor v = identity.clone().requires_grad_();
    torch::manual_seed(17);
    std::vector<torch::Tensor> outputs;
    for (int i = 0; i < 2; ++i) {
      outputs.push_back(attention(q, q, v, 0.3));
      if (cuts) cut();
    }
    EXPECT_NE(differs(outputs[0].ne(0), outputs[1].ne(0), 0), "") << "the second call draws others";
    (outputs[1] * identity).sum().backward();
    EXPECT_TRUE(torch::allclose(v.grad().cpu(), outputs[1].detach().cpu().mT(), 1e-5, 1e-7)) << cuts;
    return outputs[1].detach().cpu();
  };
  EXPECT_TRUE(torch::equal(run(false), run(true)));
}

TEST(AttentionDropout, AReplayDrawsOtherNumbersForBothPasses) {
  const Shape s{.queries = 64, .keys = 64, .size = 64};
  const torch::Tensor q = torch::randn(s.of_queries()).to(test_device());
  const torch::Tensor identity = torch::eye(64).expand(s.of_keys()).contiguous().to(test_device());
  torch::Tensor v = identity.clone().requires_grad_();
  auto step = capture([&](const torch::Tensor& in) {
    const torch::Tensor output = attention(in, in, v, 0.3);
    (output * identity).sum().backward();
    const torch::Tensor both = torch::stack({output.detach(), v.grad().mT()});
    v.mutable_grad().reset();
    return both;
  });
  std::vector<torch::Tensor> found;
  for (int i = 0; i < 8; ++i) found.push_back(step(q).cpu());
  if (!on_cpu()) {
    EXPECT_GT(step.captured().replays(), 3) << step.captured().reason();
  }
  for (size_t i = 0; i < found.size(); ++i) {
    expect_same(found[i][1], found[i][0], 1e-5, c10::str("step ", i));
    EXPECT_LT(distance(found[i][0].ne(0), 0.7), 5);
    if (i > 0) {
      EXPECT_LT(distance(found[i][0].ne(0).logical_and(found[i - 1][0].ne(0)), 0.49), 5);
    }
  }
}

TEST(AttentionDropout, RecomputedHasTheSameGradients) {
  const Shape s;
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn(s.of_queries());
  const auto gradient = [&](bool recomputed) {
    torch::Tensor q = x.clone().to(test_device()).requires_grad_();
    torch::manual_seed(8);
    const auto part = [](const torch::Tensor& in) { return attention(in, in, in.square(), 0.4, true); };
    (recomputed ? checkpoint(part, q) : part(q)).square().sum().backward();
    return q.grad().cpu();
  };
  expect_same(gradient(true), gradient(false), 1e-6);
}

TEST(AttentionDropout, RunsInBf16UnderAutocast) {
  const Shape s{.queries = 64, .keys = 64, .size = 64};
  const torch::Tensor kept = kept_after(6, s, 0.25, torch::kBFloat16).to(torch::kFloat);
  const torch::Tensor q = (torch::randn(s.of_queries()) * 0.1).to(test_device());
  const torch::Tensor identity = torch::eye(64).expand(s.of_keys()).contiguous().to(test_device());
  const torch::Tensor v = identity.clone().requires_grad_();
  torch::manual_seed(6);
  torch::Tensor output;
  {
    const Autocast autocast(test_device(), true);
    output = attention(q, q, v, 0.25);
  }
  EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
  (output.to(torch::kFloat) * identity).sum().backward();
  expect_same(output.ne(0).to(torch::kFloat), kept, 0);
  expect_same(v.grad().mT(), output.to(torch::kFloat), 1e-2);
}

TEST(AttentionDropout, RefusesWhatItCannotDo) {
  if (on_cpu()) GTEST_SKIP();
  const Shape s;
  const torch::Tensor q = torch::randn(s.of_queries()).to(test_device()).requires_grad_();
  EXPECT_THAT(thrown([&] { (void)attention(q, q, q, 1.5); }), testing::HasSubstr("dropout_p in [0, 1]"));
  const torch::Tensor output = attention(q, q, q, 0.5).sum();
  EXPECT_THAT(
      thrown([&] { (void)torch::autograd::grad({output}, {q}, {}, std::nullopt, /*create_graph=*/true); }),
      testing::HasSubstr("setSDPUseFlash(false)"));
  at::globalContext().setSDPUseFlash(false);
  const torch::Tensor apart = attention(q, q, q, 0.5).sum();
  const auto first = torch::autograd::grad({apart}, {q}, {}, std::nullopt, /*create_graph=*/true)[0];
  first.square().sum().backward();
  EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
  at::globalContext().setSDPUseFlash(true);
}

}  // namespace
}  // namespace sluice::tests
