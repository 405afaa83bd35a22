#include "sluice/models/language/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sluice/base/error.h"

namespace sluice::models {
namespace {

using testing::HasSubstr;

const char* const kTiny[] = {"gpt2-tiny", "llama-tiny", "roberta-tiny"};

std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The weights' fresh values are so small that everything would look alike.
LanguageModelPtr lively(LanguageOptions options) {
  torch::manual_seed(3);
  options.initial_deviation = 0.3;
  LanguageModelPtr model = language_model(options);
  model->eval();
  return model;
}

torch::Tensor ids(int64_t batch, int64_t length) {
  return torch::randint(3, 128, {batch, length}, torch::kLong);  // above the padding tokens
}

double apart(const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(Language, LogitsHaveTheVocabularysWidth) {
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const torch::Tensor logits = model->forward(ids(2, 7));
    EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 7, 128})) << name;
    EXPECT_EQ(logits.scalar_type(), torch::kFloat) << name;
    logits.sum().backward();
    for (const auto& item : model->named_parameters())
      EXPECT_TRUE(item.value().grad().defined()) << name << " " << item.key();
  }
}

TEST(Language, OnlyRobertaSeesWhatComesLater) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const torch::Tensor first = ids(2, 9);
    torch::Tensor second = first.clone();
    second.select(1, 8).copy_(second.select(1, 8) - 1);
    for (const torch::Tensor& mask : {torch::Tensor(), torch::ones({2, 9}, torch::kBool)}) {
      const double before =
          apart(model->forward(first, mask).slice(1, 0, 8), model->forward(second, mask).slice(1, 0, 8));
      if (model->options().type == "roberta")
        EXPECT_GT(before, 1e-3) << name;
      else
        EXPECT_EQ(before, 0) << name;
    }
  }
}

TEST(Language, AMaskOfOnesChangesNothing) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const torch::Tensor tokens = ids(3, 11);
    EXPECT_LT(apart(model->forward(tokens), model->forward(tokens, torch::ones({3, 11}, torch::kBool))), 1e-4)
        << name;
  }
}

TEST(Language, WhatFillsASequenceUpHasNoInfluence) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const torch::Tensor tokens = ids(2, 6);
    torch::Tensor mask = torch::ones({2, 10}, torch::kBool);
    mask.slice(1, 6, 10).zero_();
    const torch::Tensor one = model->forward(torch::cat({tokens, ids(2, 4)}, 1), mask);
    const torch::Tensor other = model->forward(torch::cat({tokens, ids(2, 4)}, 1), mask);
    EXPECT_LT(apart(one.slice(1, 0, 6), other.slice(1, 0, 6)), 1e-5) << name;
    EXPECT_LT(apart(one.slice(1, 0, 6), model->forward(tokens)), 1e-4) << name;
  }
}

// Documents of these lengths behind each other, filled up to `length`.
LanguageInput packed(const std::vector<torch::Tensor>& documents, int64_t length) {
  std::vector<torch::Tensor> tokens, numbers, positions;
  int64_t filled = 0;
  for (const torch::Tensor& document : documents) {
    tokens.push_back(document);
    numbers.push_back(
        torch::full({1, document.size(1)}, static_cast<int64_t>(numbers.size()) + 1, torch::kLong));
    positions.push_back(torch::arange(document.size(1), torch::kLong).unsqueeze(0));
    filled += document.size(1);
  }
  tokens.push_back(ids(1, length - filled));
  numbers.push_back(torch::zeros({1, length - filled}, torch::kLong));
  positions.push_back(numbers.back());
  return {torch::cat(tokens, 1), {}, torch::cat(numbers, 1), torch::cat(positions, 1)};
}

TEST(Language, DocumentsInOneSequenceDoNotSeeEachOther) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const std::vector<torch::Tensor> first = {ids(1, 7), ids(1, 1), ids(1, 12)},
                                     second = {ids(1, 17), ids(1, 8)};
    const LanguageInput one = packed(first, 25), other = packed(second, 25);
    const LanguageInput both = {torch::cat({one.ids, other.ids}),
                                {},
                                torch::cat({one.documents, other.documents}),
                                torch::cat({one.positions, other.positions})};
    const LanguageInput narrow = {both.ids, both.documents.ne(0), both.documents.to(torch::kInt),
                                  both.positions.to(torch::kInt)};
    const torch::Tensor logits = model->forward(both);
    const torch::Tensor real = both.documents.ne(0);
    EXPECT_LT(apart(model->forward(narrow).index({real}), logits.index({real})), 1e-5) << name;
    for (const auto& [row, documents] : {std::pair{0, first}, std::pair{1, second}}) {
      int64_t begin = 0;
      for (const torch::Tensor& document : documents) {
        const int64_t end = begin + document.size(1);
        EXPECT_LT(apart(logits[row].slice(0, begin, end), model->forward(document)[0]), 1e-5)
            << name << " " << row << " " << begin;
        begin = end;
      }
    }
    // Without the numbers the second document sees the first.
    EXPECT_GT(apart(model->forward(both.ids)[0].slice(0, 8, 20), logits[0].slice(0, 8, 20)), 1e-2) << name;
  }
}

TEST(Language, TheHeadsLayerMakesTheLogits) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    for (const bool tied : {false, true}) {
      LanguageOptions options = language_preset(name);
      options.tied = tied;
      const LanguageModelPtr model = lively(options);
      const LanguageInput input = {ids(2, 5)};
      const torch::Tensor states = model->states(input);
      EXPECT_EQ(states.sizes(), (std::vector<int64_t>{2, 5, 32})) << name;
      const auto [weight, bias] = model->head();
      torch::Tensor logits = model->before_head(states).matmul(weight.t());
      if (bias.defined()) logits = logits + bias;
      EXPECT_EQ(bias.defined(), options.type == "roberta");
      EXPECT_LT(apart(model->forward(input), logits), 1e-4) << name;
      EXPECT_LT(apart(model->logits(states[1]), logits[1]), 1e-4) << name;
    }
  }
}

LanguageOptions classifier(const char* name) {
  LanguageOptions options = language_preset(name);
  options.classes = 3;
  if (options.padding < 0) options.padding = 2;
  return options;
}

TEST(Language, AClassifierLooksAtOneToken) {
  torch::NoGradGuard no_grad;
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(classifier(name));
    const int64_t padding = model->options().padding;
    const torch::Tensor tokens = ids(2, 6), filler = torch::full({2, 3}, padding, torch::kLong);
    const torch::Tensor classes = model->classify({tokens}), filled = torch::cat({tokens, filler}, 1);
    EXPECT_EQ(classes.sizes(), (std::vector<int64_t>{2, 3})) << name;
    EXPECT_EQ(classes.scalar_type(), torch::kFloat) << name;
    EXPECT_LT(apart(model->classify({filled, filled.ne(padding)}), classes), 1e-5) << name;
    // Decoders find their last token without a mask too.
    if (is_decoder(model->options())) {
      EXPECT_LT(apart(model->classify({filled}), classes), 1e-5) << name;
    }
    torch::Tensor other = tokens.clone();
    other.select(1, 0) -= 1;
    EXPECT_GT(apart(model->classify({other}), classes), 1e-3) << name;
  }
}

TEST(Language, HeadsAreNotTakenForEachOther) {
  for (const char* name : kTiny) {
    const LanguageModelPtr words = language_model(language_preset(name)),
                           classes = language_model(classifier(name));
    EXPECT_THAT(thrown([&] { words->classify({ids(1, 3)}); }), HasSubstr("is not a classifier")) << name;
    EXPECT_THAT(thrown([&] { classes->forward(ids(1, 3)); }),
                HasSubstr("is a classifier of 3 classes: it has no head of words; call classify"))
        << name;
    EXPECT_THAT(thrown([&] {
                  classes->classify({ids(1, 3), {}, ids(1, 3), ids(1, 3)});
                }),
                HasSubstr("a sequence with several documents has no one class"))
        << name;
    LanguageOptions named = classifier(name);
    named.labels = {"a", "b", "c"};
    const LanguageOptions again = parse_language_config(language_config(named));
    EXPECT_EQ(again.classes, 3) << name;
    EXPECT_EQ(again.labels, named.labels) << name;
    named.labels.pop_back();
    EXPECT_THAT(thrown([&] { check(named); }),
                HasSubstr("expected a label for each of the 3 classes, found 2"));
  }
}

TEST(Language, ASequenceOfNothingButPaddingHasNumbersAndGradients) {
  for (const char* name : kTiny) {
    const LanguageModelPtr model = lively(language_preset(name));
    const torch::Tensor mask = torch::zeros({2, 5}, torch::kBool);
    const torch::Tensor logits = model->forward(ids(2, 5), mask);
    EXPECT_TRUE(logits.isfinite().all().item<bool>()) << name;
    logits.square().sum().backward();
    for (const auto& item : model->named_parameters())
      EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << name << " " << item.key();
  }
}

TEST(Language, PresetsHaveTheirPublishedSizes) {
  const auto parameters = [](const char* name) {
    int64_t count = 0;
    for (const torch::Tensor& parameter : language_model(language_preset(name))->parameters())
      count += parameter.numel();
    return count;
  };
  EXPECT_EQ(parameters("gpt2"), 124'439'808);
  EXPECT_EQ(parameters("roberta-base"), 124'697'433);
  for (const std::string& name : language_presets()) {
    const LanguageOptions options = language_preset(name);
    EXPECT_EQ(language_config(parse_language_config(language_config(options))), language_config(options))
        << name;
  }
}

TEST(Language, ReadsRopeAsTransformers4And5WriteIt) {
  const LanguageOptions four = parse_language_config(
      R"({"model_type": "llama", "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.5}})");
  const LanguageOptions five = parse_language_config(
      R"({"model_type": "llama",
          "rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 500000}})");
  EXPECT_EQ(four.rope.type, "linear");
  EXPECT_EQ(four.rope.theta, 5e5);
  EXPECT_EQ(four.rope.factor, 2.5);
  EXPECT_EQ(language_config(four), language_config(five));
}

TEST(Language, UnknownThingsInAConfigAreNamed) {
  const auto error = [](const char* text) { return thrown([&] { parse_language_config(text, "c.json"); }); };
  EXPECT_THAT(error(R"({"model_type": "mamba"})"),
              HasSubstr("c.json: the model_type \"mamba\" is not known; known are gpt2, llama, roberta"));
  EXPECT_THAT(error(R"({"model_type": "llama", "rope_scaling": {"rope_type": "spiral", "factor": 4}})"),
              HasSubstr("c.json: the rope_type \"spiral\" is not known; known are default, dynamic, linear"));
  EXPECT_THAT(
      error(R"({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4,
                        "rope_scaling": {"rope_type": "longrope", "short_factor": [1, 2, 3, 4], "long_factor": [1]}})"),
      HasSubstr("c.json: the rope_type longrope needs a long_factor of 4 numbers, half the width of a "
                "head; found 1"));
  EXPECT_THAT(error(R"({"model_type": "llama", "rope_scaling": {"rope_type": "linear"}})"),
              HasSubstr("c.json: rope_scaling: the key \"factor\" is missing"));
  EXPECT_THAT(error(R"({"model_type": "gpt2", "activation_function": "xielu"})"),
              HasSubstr("c.json: the activation \"xielu\" is not known; known are gelu,"));
  EXPECT_THAT(error(R"({"model_type": "gpt2", "n_embd": "wide"})"),
              HasSubstr("c.json: \"n_embd\" must be a whole number, not \"wide\""));
  EXPECT_THAT(error(R"({"model_type": "gpt2", "n_embd": 30, "n_head": 4})"),
              HasSubstr("c.json: the width (30) must be a multiple of the heads (4)"));
  EXPECT_THAT(error(R"({"model_type": "llama", "num_attention_heads": 8, "num_key_value_heads": 3})"),
              HasSubstr("must be a multiple of the key-value heads (3)"));
  EXPECT_THAT(error(R"({"model_type": "roberta", "is_decoder": true})"),
              HasSubstr("c.json: \"is_decoder\" is true; supported is false"));
  EXPECT_THAT(error("[]"), HasSubstr("c.json: expected a JSON object"));
  EXPECT_THAT(thrown([] { language_preset("gtp2"); }), HasSubstr("did you mean \"gpt2\"?"));
}

TEST(Language, WrongInputIsNamed) {
  const LanguageModelPtr gpt2 = language_model(language_preset("gpt2-tiny")),
                         roberta = language_model(language_preset("roberta-tiny"));
  EXPECT_THAT(thrown([&] { gpt2->forward(ids(1, 65)); }),
              HasSubstr("the sequences have 65 tokens, the model's positions serve 64"));
  EXPECT_THAT(thrown([&] { roberta->forward(ids(1, 63)); }), HasSubstr("the model's positions serve 62"));
  EXPECT_THAT(thrown([&] {
                gpt2->forward(torch::zeros({2, 3}));
              }),
              HasSubstr("expected ids Long [batch, length], found Float [2, 3]"));
  EXPECT_THAT(thrown([&] {
                gpt2->forward(ids(2, 3), torch::ones({2, 4}, torch::kBool));
              }),
              HasSubstr("expected a mask Bool [2, 3], found Bool [2, 4]"));
  EXPECT_THAT(thrown([&] {
                gpt2->forward(LanguageInput{ids(2, 3), {}, ids(2, 3)});
              }),
              HasSubstr("expected documents and positions, or none of them; the positions are missing"));
  EXPECT_THAT(thrown([&] {
                gpt2->forward(LanguageInput{ids(2, 3), {}, ids(2, 3), torch::zeros({2, 3})});
              }),
              HasSubstr("expected positions Long or Int [2, 3], found Float [2, 3]"));
}

TEST(Language, TensorsOfTheHubGetTheModelsNames) {
  const auto names = [](const char* preset, std::vector<std::string> given) {
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (const std::string& name : given) tensors.emplace_back(name, torch::Tensor());
    std::vector<std::string> result;
    for (const auto& [name, tensor] : with_own_names(language_preset(preset), tensors))
      result.push_back(name);
    return result;
  };
  using testing::ElementsAre;
  EXPECT_THAT(names("gpt2", {"wte.weight", "h.0.attn.bias", "h.0.attn.c_attn.bias"}),
              ElementsAre("transformer.wte.weight", "transformer.h.0.attn.c_attn.bias"));
  EXPECT_THAT(names("gpt2", {"transformer.wte.weight", "lm_head.weight", "other"}),
              ElementsAre("transformer.wte.weight", "other"));
  EXPECT_THAT(names("llama-3.1-8b", {"model.layers.0.self_attn.rotary_emb.inv_freq", "lm_head.weight"}),
              ElementsAre("lm_head.weight"));
  EXPECT_THAT(
      names("roberta-base", {"roberta.pooler.dense.weight", "lm_head.decoder.weight", "lm_head.bias"}),
      ElementsAre("lm_head.bias"));
}

}  // namespace
}  // namespace sluice::models
