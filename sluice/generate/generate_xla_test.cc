// On the device: what the CPU says, in one program for the prompts and one for all tokens.
#include <gtest/gtest.h>

#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/generate/generate.h"
#include "sluice/generate/score.h"
#include "sluice/generate/test_model.h"

namespace sluice {
namespace {

torch::Device device() {
  DeviceOptions options;
  options.cache = false;
  init(options);
  return {torch::kXLA, 0};
}

int64_t new_programs(const std::function<void()>& work) {
  const int64_t before = counters().programs;
  work();
  return counters().programs - before;
}

TEST(GenerateXla, SaysWhatTheCpuSays) {
  const torch::Device xla = device();
  const std::vector<Ids> prompts = {{5, 17, 99, 3}, {7}, {64, 2, 127, 9, 31}};
  for (const char* name : kDecoders) {
    const auto model = lively_model(name);
    const GenerateOptions options = {.tokens = 24, .sampling = {.greedy = true}};
    const auto wanted = generate(*model, prompts, options);
    model->to(xla);
    sync_and_wait();
    const int64_t fallbacks = counters().fallbacks;
    EXPECT_EQ(new_programs([&] { EXPECT_EQ(generate(*model, prompts, options), wanted) << name; }), 2)
        << name;
    // Another prompt of up to 16 tokens and another number of tokens have the same programs.
    EXPECT_EQ(new_programs([&] {
                generate(*model, {{1}, {2, 3}, Ids(12, 5)}, {.tokens = 9, .sampling = {.greedy = true}});
              }),
              0)
        << name << "\n"
        << metrics_report();
    EXPECT_EQ(counters().fallbacks, fallbacks) << metrics_report();
  }
}

TEST(GenerateXla, ChoosesOnTheDevice) {
  const torch::Device xla = device();
  const auto model = lively_model("gpt2-tiny");
  model->to(xla);
  sync_and_wait();
  const auto options = [](uint64_t seed, double temperature) {
    return GenerateOptions{
        .tokens = 20,
        .sampling = {.repetition_penalty = 1.1, .temperature = temperature, .top_k = 50, .top_p = 0.9},
        .seed = seed};
  };
  const int64_t fallbacks = counters().fallbacks, reads = counters().host_reads;
  std::vector<Ids> said;
  EXPECT_EQ(new_programs([&] {
              said = generate(*model, {{1, 2}, {1, 2}}, options(1, 2));
            }),
            2)
      << metrics_report();
  EXPECT_EQ(new_programs([&] { EXPECT_EQ(generate(*model, {{1, 2}, {1, 2}}, options(1, 2)), said); }), 0);
  // A seed and a temperature are numbers, which the programs are given.
  EXPECT_EQ(new_programs([&] { EXPECT_NE(generate(*model, {{1, 2}, {1, 2}}, options(2, 3)), said); }), 0);
  EXPECT_NE(said[0], said[1]);
  EXPECT_EQ(counters().fallbacks, fallbacks) << metrics_report();
  EXPECT_EQ(counters().host_reads, reads) << metrics_report();
}

TEST(GenerateXla, LimitsAreTheCpus) {
  const torch::Device xla = device();
  torch::manual_seed(4);
  const torch::Tensor logits = torch::randn({6, 300}) * 3;
  for (const SamplingOptions& options :
       {SamplingOptions{.top_k = 7}, SamplingOptions{.temperature = 0.7, .top_p = 0.8},
        SamplingOptions{.temperature = 1.3, .top_k = 40, .top_p = 0.6}}) {
    const torch::Tensor wanted = limited_logits(logits, options),
                        found = limited_logits(logits.to(xla), options).cpu();
    EXPECT_TRUE(torch::equal(found.isfinite(), wanted.isfinite()));
    EXPECT_TRUE(torch::allclose(found.nan_to_num(), wanted.nan_to_num()));
  }
  const torch::Tensor probabilities = torch::tensor({0.6F, 0.3F, 0.1F, 0.0F});
  constexpr int64_t kDraws = 20000;
  const torch::Tensor tokens =
      draw_tokens(probabilities.log().expand({kDraws, 4}).contiguous().to(xla)).cpu();
  const torch::Tensor often = torch::bincount(tokens, {}, 4).to(torch::kFloat) / kDraws;
  EXPECT_LT((often - probabilities).abs().max().item<double>(), 4 * std::sqrt(0.25 / kDraws));
}

TEST(GenerateXla, ScoresAreTheCpus) {
  const torch::Device xla = device();
  for (const char* name : kDecoders) {
    const auto model = lively_model(name);
    const auto scores = [&] {
      PassageScorer scorer(*model, 2);
      for (const Passage& passage :
           {Passage{{1, 2, 3}}, Passage{Ids(20, 9), 4}, Passage{{4, 5}}, Passage{{6, 7, 8, 9}, 2}})
        scorer.add(passage);
      return scorer.finish();
    };
    const auto wanted = scores();
    model->to(xla);
    sync_and_wait();
    // Two lengths.
    EXPECT_EQ(new_programs([&] {
                const auto found = scores();
                for (size_t i = 0; i < wanted.size(); ++i)
                  EXPECT_NEAR(found[i], wanted[i], 1e-4) << name << " " << i;
              }),
              2)
        << metrics_report();
  }
}

// Four devices share the model: heads and vocabulary over two, the other dimension over two.
TEST(GenerateXla, AMeshSaysWhatTheCpuSays) {
  if (is_initialized()) shutdown();
  const auto model = lively_model("llama-tiny");
  const std::vector<Ids> prompts = {{5, 17, 99, 3}, {7}};
  const GenerateOptions options = {.tokens = 8, .sampling = {.greedy = true}};
  const auto wanted = generate(*model, prompts, options);
  DeviceOptions fresh;
  fresh.cache = false;
  init(Mesh({{"fsdp", 2}, {"tensor", 2}}), fresh);
  shard(*model, {{"*.q_proj.weight", "tensor", 0, 4},
                 {"*.o_proj.weight", "tensor", 1, 4},
                 {"*.down_proj.weight", "fsdp", 0},
                 {"*.embed_tokens.weight", "tensor", 0}});
  EXPECT_EQ(generate(*model, prompts, options), wanted);
  shutdown();
}

}  // namespace
}  // namespace sluice
