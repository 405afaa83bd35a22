#include "sluice/generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

#include "sluice/base/error.h"
#include "sluice/generate/score.h"
#include "sluice/generate/test_model.h"

namespace sluice {
namespace {

using testing::ElementsAre, testing::HasSubstr;

std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The likeliest tokens, each with the whole text read again.
Ids slowly(models::LanguageModel& model, Ids prompt, int64_t tokens) {
  const torch::NoGradGuard no_grad;
  Ids said;
  for (int64_t i = 0; i < tokens; ++i) {
    const std::vector<int64_t> wide(prompt.begin(), prompt.end());
    const torch::Tensor logits = model.forward(torch::tensor(wide, torch::kLong).unsqueeze(0))[0][-1];
    said.push_back(static_cast<uint32_t>(logits.argmax().item<int64_t>()));
    prompt.push_back(said.back());
  }
  return said;
}

std::vector<Ids> prompts() { return {{5, 17, 99, 3}, {7}, Ids(20, 11), {64, 2, 127, 9, 31}}; }

TEST(Generate, SaysWhatReadingAllAgainSays) {
  for (const char* name : kDecoders) {
    const auto model = lively_model(name);
    const auto said = generate(*model, prompts(), {.tokens = 24, .sampling = {.greedy = true}, .end = Ids()});
    for (size_t i = 0; i < said.size(); ++i)
      EXPECT_EQ(said[i], slowly(*model, prompts()[i], 24)) << name << i;
  }
}

TEST(Generate, ASequenceEndsWithItsEnd) {
  const auto model = lively_model("llama-tiny");
  const auto whole = generate(*model, prompts(), {.tokens = 16, .sampling = {.greedy = true}, .end = Ids()});
  // The first's third token ends it, and whichever sequence else has it.
  const Ids end = {whole[0][2]};
  std::map<size_t, Ids> seen;
  const auto said =
      generate(*model, prompts(),
               {.tokens = 16,
                .sampling = {.greedy = true},
                .end = end,
                .on_token = [&](size_t sequence, uint32_t token) { seen[sequence].push_back(token); }});
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto last = std::find(whole[i].begin(), whole[i].end(), end[0]);
    EXPECT_EQ(said[i], Ids(whole[i].begin(), last == whole[i].end() ? last : last + 1)) << i;
    EXPECT_EQ(seen[i], said[i]);
  }
  EXPECT_LE(said[0].size(), 3);
}

TEST(Generate, TheModelStaysInTraining) {
  const auto model = lively_model("gpt2-tiny");
  model->train();
  generate(*model, {{1}}, {.tokens = 1});
  EXPECT_TRUE(model->is_training());
}

TEST(Generate, ASeedGivesTheSameTextAgain) {
  const auto model = lively_model("gpt2-tiny");
  const auto said = [&](uint64_t seed) {
    return generate(*model, {{1, 2}, {1, 2}}, {.tokens = 20, .sampling = {.temperature = 3}, .seed = seed});
  };
  EXPECT_EQ(said(1), said(1));
  EXPECT_NE(said(1), said(2));
  EXPECT_NE(said(1)[0], said(1)[1]);
}

TEST(Generate, AnEmptyPromptIsTheBeginToken) {
  const auto model = lively_model("gpt2-tiny");
  const GenerateOptions options = {.tokens = 8, .sampling = {.greedy = true}, .end = Ids()};
  EXPECT_EQ(generate(*model, {{}}, options), generate(*model, {{0}}, options));
  EXPECT_THAT(generate(*model, {}, options), ElementsAre());
}

TEST(Generate, WrongRequestsAreNamed) {
  const auto model = lively_model("gpt2-tiny");
  const auto error = [&](const std::vector<Ids>& prompts, const GenerateOptions& options) {
    return thrown([&] { generate(*model, prompts, options); });
  };
  EXPECT_THAT(error({Ids(60, 1)}, {.tokens = 5}),
              HasSubstr("the prompt has 60 tokens, and 5 more are asked for; the model's positions serve 64: "
                        "ask for at most 4"));
  EXPECT_THAT(error({Ids(70, 1)}, {.tokens = 5}), HasSubstr("serve 64: cut the prompt"));
  EXPECT_THAT(error({{1, 128}}, {}), HasSubstr("the prompt's token 128 at place 1 is not below the "
                                               "vocabulary's size, 128"));
  EXPECT_THAT(error({{1}}, {.sampling = {.temperature = 0}}), HasSubstr("expected a temperature above 0"));
  EXPECT_THAT(error({{1}}, {.sampling = {.top_p = 1.5}}),
              HasSubstr("expected a top-p above 0 and at most 1"));
  EXPECT_THAT(error({{1}}, {.sampling = {.top_k = -1}}), HasSubstr("expected a top-k of at least 0"));
  EXPECT_THAT(thrown([] { generate(*lively_model("roberta-tiny"), {{5}}); }),
              HasSubstr("roberta sees the whole text, so it cannot say what comes next"));
  auto options = models::language_preset("llama-tiny");
  options.begin = -1;
  const auto beginless = models::language_model(options);
  EXPECT_THAT(thrown([&] { generate(*beginless, {{}}); }), HasSubstr("the model has no begin token"));
}

TEST(Generate, LengthsAreRoundedUpToFew) {
  EXPECT_EQ(generation_length(1), 16);
  EXPECT_EQ(generation_length(16), 16);
  EXPECT_EQ(generation_length(17), 32);
  EXPECT_EQ(generation_length(256), 256);
  EXPECT_EQ(generation_length(257), 512);
  EXPECT_EQ(generation_length(1025), 1280);
}

// Which tokens may be chosen.
std::vector<int64_t> allowed(const std::vector<float>& logits, const SamplingOptions& options) {
  const torch::Tensor limited = limited_logits(torch::tensor(logits).unsqueeze(0), options);
  const torch::Tensor places = limited[0].isfinite().nonzero().squeeze(1);
  return {places.data_ptr<int64_t>(), places.data_ptr<int64_t>() + places.numel()};
}

TEST(Choose, LimitsLeaveTheLikeliest) {
  // Of probabilities 0.4, 0.3, 0.2 and 0.1, in another order.
  const std::vector<float> logits = {std::log(0.2F), std::log(0.4F), std::log(0.1F), std::log(0.3F)};
  EXPECT_THAT(allowed(logits, {}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(allowed(logits, {.top_k = 2}), ElementsAre(1, 3));
  EXPECT_THAT(allowed(logits, {.top_k = 9}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(allowed(logits, {.top_p = 0.65}), ElementsAre(1, 3));
  EXPECT_THAT(allowed(logits, {.top_p = 0.75}), ElementsAre(0, 1, 3));
  EXPECT_THAT(allowed(logits, {.top_p = 1e-9}), ElementsAre(1));
  // Of the two that are left the likelier has 4/7.
  EXPECT_THAT(allowed(logits, {.top_k = 2, .top_p = 0.5}), ElementsAre(1));
  // A low temperature makes it 0.66.
  EXPECT_THAT(allowed(logits, {.temperature = 0.5, .top_p = 0.5}), ElementsAre(1));
}

TEST(Choose, ThePenaltyMakesWhatWasSeenLessLikely) {
  const torch::Tensor logits = torch::tensor({{2.0F, -2.0F, 1.0F}}),
                      seen = torch::tensor({{true, true, false}});
  const torch::Tensor limited = limited_logits(logits, {.greedy = true, .repetition_penalty = 4}, seen);
  EXPECT_TRUE(torch::equal(limited, torch::tensor({{0.5F, -8.0F, 1.0F}})));
}

TEST(Choose, DrawsAsOftenAsIsLikely) {
  const torch::Tensor probabilities = torch::tensor({0.5, 0.25, 0.2, 0.05, 0.0});
  constexpr int64_t kDraws = 20000;
  torch::manual_seed(2);
  const torch::Tensor tokens = draw_tokens(probabilities.log().expand({kDraws, 5}).contiguous());
  const torch::Tensor found = torch::bincount(tokens, {}, 5).to(torch::kDouble) / kDraws;
  // Four standard deviations of the first.
  EXPECT_LT((found - probabilities).abs().max().item<double>(), 4 * std::sqrt(0.25 / kDraws));
  EXPECT_EQ(found[4].item<double>(), 0);
}

TEST(Score, PassagesScoreEachTokenOnce) {
  const Ids document = {10, 11, 12, 13, 14, 15, 16};
  const auto parts = [&](int64_t length, int64_t stride) {
    std::vector<std::pair<Ids, size_t>> found;
    for (const Passage& passage : passages_of(document, length, stride))
      found.emplace_back(passage.ids, passage.first);
    return found;
  };
  using Part = std::pair<Ids, size_t>;
  EXPECT_THAT(parts(8, 8), ElementsAre(Part(document, 1)));
  EXPECT_THAT(parts(3, 3), ElementsAre(Part({10, 11, 12, 13}, 1), Part({13, 14, 15, 16}, 1)));
  EXPECT_THAT(parts(3, 2),
              ElementsAre(Part({10, 11, 12, 13}, 1), Part({12, 13, 14, 15}, 2), Part({14, 15, 16}, 2)));
  EXPECT_TRUE(passages_of({1}, 3, 3).empty());
  EXPECT_THAT(thrown([&] { passages_of(document, 3, 4); }),
              HasSubstr("expected a stride from 1 to the length, 3"));
}

TEST(Score, SumsAreThoseOfTheLogits) {
  for (const char* name : kDecoders) {
    const auto model = lively_model(name);
    PassageScorer scorer(*model, 2);
    const std::vector<Passage> passages = {{Ids(prompts()[0])}, {Ids(30, 4), 7}, {{9, 8}}, {prompts()[3], 4}};
    for (const Passage& passage : passages) scorer.add(passage);
    const std::vector<double> sums = scorer.finish();
    ASSERT_EQ(sums.size(), passages.size());
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < passages.size(); ++i) {
      const std::vector<int64_t> wide(passages[i].ids.begin(), passages[i].ids.end());
      const torch::Tensor ids = torch::tensor(wide, torch::kLong);
      const torch::Tensor all = model->forward(ids.unsqueeze(0))[0].to(torch::kDouble).log_softmax(-1);
      double wanted = 0;
      for (size_t t = passages[i].first; t < passages[i].ids.size(); ++t)
        wanted += all[static_cast<int64_t>(t) - 1][wide[t]].item<double>();
      EXPECT_NEAR(sums[i], wanted, 1e-4 * std::abs(wanted)) << name << " " << i;
    }
  }
}

TEST(Score, WrongPassagesAreNamed) {
  const auto model = lively_model("gpt2-tiny");
  PassageScorer scorer(*model, 2);
  EXPECT_THAT(thrown([&] { scorer.add({{1}}); }), HasSubstr("the passage has 1 tokens"));
  EXPECT_THAT(thrown([&] { scorer.add({Ids(66, 1)}); }),
              HasSubstr("the passage has 66 tokens, the model's positions serve 64"));
  EXPECT_THAT(thrown([&] { scorer.add({{1, 200}}); }), HasSubstr("the token 200 at place 1"));
  scorer.add({Ids(65, 1)});
  EXPECT_EQ(scorer.finish().size(), 1);
  const auto roberta = lively_model("roberta-tiny");
  EXPECT_THAT(thrown([&] { PassageScorer(*roberta, 2); }), HasSubstr("roberta sees the whole text"));
}

}  // namespace
}  // namespace sluice
