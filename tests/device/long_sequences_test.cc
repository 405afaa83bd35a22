// Attention over a mesh whose axis `sequence` has several devices, against LibTorch's CPU, and trainings of
// decoders over it against one device.
#include "sluice/device/sharding/shard.h"
#include "sluice/models/language/language.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests {
namespace {

using testing::HasSubstr;
using torch::Tensor;

// A mesh whose attention gathers all keys, or passes them on in a ring, with at most this number of bytes of
// scores at once.
class OverSequence {
 public:
  OverSequence(const std::string& mesh, bool ring, int64_t bytes = 0) {
    ::setenv("SLUICE_MESH", mesh.c_str(), 1);
    ::setenv("SLUICE_GATHER_BYTES", ring ? "0" : "1000000000", 1);
    ::setenv("SLUICE_ATTENTION_BYTES", std::to_string(bytes).c_str(), 1);
    DeviceOptions options;
    options.cpu_kernels = false;
    programs_.emplace(options);
  }
  ~OverSequence() {
    for (const char* name : {"SLUICE_MESH", "SLUICE_GATHER_BYTES", "SLUICE_ATTENTION_BYTES"})
      ::unsetenv(name);
  }
  OverSequence(const OverSequence&) = delete;
  OverSequence& operator=(const OverSequence&) = delete;
  int64_t count(const std::string& part) const { return programs_->calls(part); }

 private:
  std::optional<DumpedPrograms> programs_;
};

struct Case {
  const char* name;
  int64_t queries = 32, keys = 32, batch = 2, heads = 4, heads_of_keys = 4, size = 8;
  bool causal = false;
  // Makes a mask of tensors on a device.
  std::function<Tensor(const torch::Device&)> mask = {};
  bool dense = false;  // the mask cannot be computed block by block
};

Tensor places(int64_t count, const torch::Device& device) {
  return torch::arange(count, torch::TensorOptions(torch::kLong).device(device));
}

// Documents of 9, 14 and 9 tokens, and in the second row of 20 and 7, with padding at its end.
Tensor documents(const torch::Device& device) {
  const Tensor all = torch::zeros({2, 32}, torch::kLong);
  const auto fill = [&](int64_t row, int64_t first, int64_t end, int64_t number) {
    all.slice(0, row, row + 1).slice(1, first, end).fill_(number);
  };
  fill(0, 0, 9, 1);
  fill(0, 9, 23, 2);
  fill(0, 23, 32, 3);
  fill(1, 0, 20, 1);
  fill(1, 20, 27, 2);
  return all.to(device);
}
Tensor of_one_document(const torch::Device& device) {
  const Tensor document = documents(device).unsqueeze(1);
  return document.unsqueeze(3).eq(document.unsqueeze(2));
}
// As models make it: every place sees itself.
Tensor causal_documents(const torch::Device& device) {
  const Tensor query = places(32, device).unsqueeze(1), key = places(32, device).unsqueeze(0);
  return of_one_document(device).logical_and(key.lt(query)).logical_or(key.eq(query));
}

std::vector<Case> cases() {
  return {{.name = "plain"},
          {.name = "causal", .causal = true},
          {.name = "causal, an odd number for each device", .queries = 12, .keys = 12, .causal = true},
          {.name = "shared keys", .heads_of_keys = 2, .causal = true},
          {.name = "one head of keys, more keys", .queries = 16, .keys = 40, .heads_of_keys = 1},
          {.name = "causal, fewer keys", .queries = 40, .keys = 16, .causal = true},
          {.name = "documents", .mask = of_one_document},
          {.name = "causal documents", .heads_of_keys = 2, .mask = causal_documents},
          {.name = "filled up",
           .mask =
               [](const torch::Device& d) {
                 return places(32, d).lt(19).view({1, 1, 1, 32});
               }},
          {.name = "queries that see nothing",
           .mask =
               [](const torch::Device& d) {
                 return places(32, d)
                     .lt(9)
                     .view({1, 1, 32, 1})
                     .logical_and(places(32, d).ge(4).view({1, 1, 1, 32}));
               }},
          {.name = "a triangle",
           .mask =
               [](const torch::Device& d) {
                 return torch::ones({32, 32}, torch::TensorOptions(torch::kBool).device(d)).tril();
               }},
          {.name = "numbers",
           .mask =
               [](const torch::Device& d) {
                 return torch::sin(torch::arange(2 * 4 * 32 * 32, torch::kFloat)).view({2, 4, 32, 32}).to(d);
               },
           .dense = true},
          {.name = "a mask from elsewhere",
           .mask =
               [](const torch::Device& d) {
                 return torch::sin(torch::arange(32 * 32, torch::kFloat)).view({1, 1, 32, 32}).lt(0.5).to(d);
               },
           .dense = true}};
}

// The result and the gradients of queries, keys and values.
std::vector<Tensor> computed(const Case& one, const torch::Device& device, double dropout = 0) {
  const bool on_mesh = device.is_xla();
  const auto leaf = [&](int64_t heads, int64_t length, double phase) {
    const Tensor x =
        torch::sin(torch::arange(one.batch * heads * length * one.size, torch::kFloat) * 0.7 + phase)
            .view({one.batch, heads, length, one.size});
    return x.to(device).requires_grad_();
  };
  std::vector<Tensor> leaves = {leaf(one.heads, one.queries, 0), leaf(one.heads_of_keys, one.keys, 1),
                                leaf(one.heads_of_keys, one.keys, 2)};
  const auto mask = one.mask ? std::optional(one.mask(device)) : std::nullopt;
  torch::manual_seed(31);
  const Tensor output = at::scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], mask, dropout,
                                                         one.causal, {}, one.heads != one.heads_of_keys);
  const Tensor weights = torch::cos(torch::arange(output.numel(), torch::kFloat)).view(output.sizes());
  (output * weights.to(device)).sum().backward();
  if (on_mesh) sync();
  return {output.detach().cpu(), leaves[0].grad().cpu(), leaves[1].grad().cpu(), leaves[2].grad().cpu()};
}

class LongSequences : public MeshTest, public testing::WithParamInterface<const char*> {};

TEST_P(LongSequences, AttentionIsLibTorchs) {
  for (const bool ring : {false, true}) {
    const OverSequence device(GetParam(), ring);
    for (const Case& one : cases()) {
      SCOPED_TRACE(c10::str(one.name, ring ? ", ring" : ", gathered"));
      expect_same(computed(one, torch::Device("xla:0")), computed(one, torch::kCPU), 2e-5, one.name);
    }
    EXPECT_GT(device.count("sdy.manual_computation"), 0);
  }
}

// A loop over groups of heads inside each round.
TEST_P(LongSequences, AttentionInGroupsIsLibTorchs) {
  for (const bool ring : {false, true}) {
    const OverSequence device(GetParam(), ring, 300);
    for (const Case& one : cases())
      expect_same(computed(one, torch::Device("xla:0")), computed(one, torch::kCPU), 2e-5, one.name);
  }
}

TEST_P(LongSequences, DropoutKeepsWhatOneDeviceKeeps) {
  for (const bool causal : {false, true}) {
    const Case one{.name = "dropout", .heads_of_keys = 2, .causal = causal};
    std::vector<Tensor> wanted;
    {
      DeviceOptions options;
      options.cpu_kernels = false;
      restart(options);
      wanted = computed(one, torch::Device("xla:0"), 0.3);
    }
    for (const bool ring : {false, true}) {
      const OverSequence device(GetParam(), ring);
      expect_same(computed(one, torch::Device("xla:0"), 0.3), wanted, 2e-5, c10::str("ring ", ring));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, LongSequences,
                         testing::Values("sequence=2", "sequence=4", "fsdp=2,sequence=2",
                                         "sequence=2,tensor=2"));

// No device has a mask of all queries and keys.
TEST_F(MeshTest, AMaskOfDocumentsIsMadeInBlocks) {
  const Case one{.name = "causal documents", .mask = causal_documents};
  for (const bool ring : {false, true}) {
    const OverSequence device("sequence=4", ring);
    (void)computed(one, torch::Device("xla:0"));
    // The rows of a device's queries, whole or as halves, for all keys.
    EXPECT_EQ(device.count("2x1x8x32xi1") + device.count("2x1x4x32xi1"), 0) << ring;
    EXPECT_GT(device.count("2x1x4x4xi1"), 0) << ring;
  }
}

TEST_F(MeshTest, ALengthThatSequenceDoesNotDivide) {
  const OverSequence device("sequence=4", true);
  const Case one{.name = "30", .queries = 30, .keys = 30};
  EXPECT_THAT(
      thrown([&] { (void)computed(one, torch::Device("xla:0")); }),
      HasSubstr("attention of 30 queries: sequence=4 of the mesh does not divide them; choose a length "
                "of 28 or 32"));
  shutdown();  // what is pending has no program
}

TEST_F(MeshTest, ABatchLiesAlongTheSequence) {
  const OverSequence device("fsdp=2,sequence=2", true);
  EXPECT_EQ(layout_of(shard_batch(torch::zeros({4, 32}, torch::kLong))).str(), "[fsdp, sequence]");
  EXPECT_EQ(layout_of(shard_batch(torch::zeros({4, 33}, torch::kLong))).str(), "[fsdp, -]");
  EXPECT_EQ(layout_of(shard_batch(torch::zeros({4, 32, 8}))).str(), "[fsdp, sequence, -]");
  EXPECT_EQ(layout_of(shard_batch(torch::zeros({4, 2, 8, 8}))).str(), "[fsdp, -, -, -]");
}

struct Training {
  std::vector<double> losses;
  std::map<std::string, Tensor> weights;
};

// Predicts the next token of rows of two documents.
Tensor loss_of(models::LanguageModel& model, int step, int64_t length) {
  const int64_t words = model.options().vocabulary;
  const Tensor row = torch::arange(2).unsqueeze(1), place = torch::arange(length).unsqueeze(0);
  const Tensor ids = (row * 31 + step * 17 + place * (step % 5 + 3)).remainder(words);
  const Tensor first = row * 5 + step % 7 + 9;  // the second document's first token
  const Tensor document = place.ge(first).to(torch::kLong) + 1, at = place - first * place.ge(first);
  const Tensor x = shard_batch(ids), documents = shard_batch(document);
  const auto next = [](const Tensor& all) { return all.slice(1, 1); };
  const Tensor same = next(documents).eq(documents.slice(1, 0, -1));
  const Tensor targets =
      torch::constant_pad_nd(torch::where(same, next(x), torch::full_like(next(x), -100)), {0, 1}, -100);
  const Tensor logits = model.forward({.ids = x, .documents = documents, .positions = shard_batch(at)});
  return torch::nn::functional::cross_entropy(
      logits.flatten(0, 1), targets.flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-100));
}

Training train(const char* preset, int steps, int64_t length) {
  models::LanguageOptions options = models::language_preset(preset);
  options.attention_dropout = 0.1;
  options.vocabulary = 64;
  torch::manual_seed(5);
  const models::LanguageModelPtr model = models::language_model(options);
  shard(*model);
  // A large epsilon: AdamW divides a gradient by itself, which makes rounding errors of small ones large.
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3).eps(1e-3));
  Training run;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(*model, step, length);
    loss.backward();
    optimizer.step();
    sync();
    run.losses.push_back(loss.item<double>());
  }
  for (const auto& item : model->named_parameters()) run.weights[item.key()] = item.value().detach().cpu();
  return run;
}

TEST_F(MeshTest, FiftyStepsOfDecodersEqualOneDevice) {
  for (const char* preset : {"llama-tiny", "gpt2-tiny"}) {
    DeviceOptions options;
    options.cpu_kernels = false;
    restart(options);
    const Training one = train(preset, 50, 32);
    EXPECT_LT(one.losses.back(), one.losses.front());
    for (const auto& [mesh, ring] : {std::pair("sequence=4", true), std::pair("fsdp=2,sequence=2", false)}) {
      SCOPED_TRACE(c10::str(preset, ", ", mesh));
      const OverSequence device(mesh, ring);
      const Training run = train(preset, 50, 32);
      EXPECT_LT(relative_error(torch::tensor(run.losses, torch::kDouble),
                               torch::tensor(one.losses, torch::kDouble)),
                1e-5);
      for (const auto& [name, weight] : one.weights)
        EXPECT_LT(relative_error(run.weights.at(name), weight, 1e-3), 1e-5) << name;
    }
  }
}

}  // namespace
}  // namespace sluice::tests
