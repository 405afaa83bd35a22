// How the models' parameters lie over a mesh, with the names and shapes of the models themselves. The
// expected layouts are Megatron-LM's: the first product of attention and of the feed-forward is cut along its
// outputs, the second along its inputs, and the vocabulary along its rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sluice/mesh/rules.h"
#include "sluice/models/language/language.h"
#include "sluice/models/models.h"

namespace sluice::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct LaidOut {
  std::map<std::string, std::string> layouts;  // of the parameters that lie over an axis
  std::vector<std::string> unfit;
};

template <typename Module>
LaidOut laid_out(const Module& model, const char* mesh) {
  std::vector<NamedShape> shapes;
  for (const auto& item : model.named_parameters())
    shapes.push_back({item.key(), item.value().sizes().vec()});
  const ParameterLayouts found = parameter_layouts(Mesh::parse(mesh), shapes, {}, model.shard_rules());
  LaidOut result;
  result.unfit = found.unfit;
  for (size_t i = 0; i < shapes.size(); ++i)
    if (!found.layouts[i].is_replicated(Mesh::parse(mesh)))
      result.layouts[shapes[i].name] = found.layouts[i].str();
  return result;
}

// One layer. Every matrix has more than 65,536 elements.
LanguageOptions one_layer(const char* preset) {
  LanguageOptions options = language_preset(preset);
  options.layers = 1;
  options.width = 512;
  options.heads = 8;
  options.key_value_heads = 0;
  options.feedforward = 1024;
  options.vocabulary = 1000;
  options.positions = 256;
  options.tied = true;
  return options;
}

TEST(ShardRules, Gpt2) {
  const LaidOut found = laid_out(*language_model(one_layer("gpt2-tiny")), "fsdp=2,tensor=4");
  EXPECT_THAT(found.layouts, ElementsAre(Pair("transformer.h.0.attn.c_attn.weight", "[fsdp, tensor]"),
                                         Pair("transformer.h.0.attn.c_proj.weight", "[tensor, fsdp]"),
                                         Pair("transformer.h.0.mlp.c_fc.weight", "[fsdp, tensor]"),
                                         Pair("transformer.h.0.mlp.c_proj.weight", "[tensor, fsdp]"),
                                         Pair("transformer.wpe.weight", "[-, fsdp]"),
                                         Pair("transformer.wte.weight", "[tensor, fsdp]")));
  EXPECT_THAT(found.unfit, IsEmpty());
}

TEST(ShardRules, Llama) {
  LanguageOptions options = one_layer("llama-tiny");
  options.key_value_heads = 4;
  options.tied = false;
  const LaidOut found = laid_out(*language_model(options), "fsdp=2,tensor=4");
  EXPECT_THAT(found.layouts, ElementsAre(Pair("lm_head.weight", "[tensor, fsdp]"),
                                         Pair("model.embed_tokens.weight", "[tensor, fsdp]"),
                                         Pair("model.layers.0.mlp.down_proj.weight", "[fsdp, tensor]"),
                                         Pair("model.layers.0.mlp.gate_proj.weight", "[tensor, fsdp]"),
                                         Pair("model.layers.0.mlp.up_proj.weight", "[tensor, fsdp]"),
                                         Pair("model.layers.0.self_attn.k_proj.weight", "[tensor, fsdp]"),
                                         Pair("model.layers.0.self_attn.o_proj.weight", "[fsdp, tensor]"),
                                         Pair("model.layers.0.self_attn.q_proj.weight", "[tensor, fsdp]"),
                                         Pair("model.layers.0.self_attn.v_proj.weight", "[tensor, fsdp]")));
  EXPECT_THAT(found.unfit, IsEmpty());
  // 8 devices divide the 8 heads of the queries, but not the 4 of keys and values: these stay whole there.
  const LaidOut wide = laid_out(*language_model(options), "tensor=8");
  EXPECT_EQ(wide.layouts.at("model.layers.0.self_attn.q_proj.weight"), "[tensor, -]");
  EXPECT_EQ(wide.layouts.count("model.layers.0.self_attn.k_proj.weight"), 0u);
  // 256 × 512 numbers in place of an eighth of them.
  EXPECT_THAT(wide.unfit,
              ElementsAre("model.layers.0.self_attn.k_proj.weight: tensor=8 does not divide the 4 heads "
                          "along dimension 0 of [256, 512]: each device holds 131072 numbers instead of "
                          "16384, and computes their products whole",
                          HasSubstr("model.layers.0.self_attn.v_proj.weight: tensor=8 does not divide")));
}

TEST(ShardRules, Roberta) {
  LanguageOptions options = one_layer("roberta-tiny");
  options.tied = false;
  const LaidOut found = laid_out(*language_model(options), "fsdp=2,tensor=4");
  const std::string layer = "roberta.encoder.layer.0.";
  EXPECT_THAT(found.layouts, ElementsAre(Pair("lm_head.decoder.weight", "[tensor, fsdp]"),
                                         Pair("lm_head.dense.weight", "[fsdp, -]"),
                                         Pair("roberta.embeddings.position_embeddings.weight", "[-, fsdp]"),
                                         Pair("roberta.embeddings.word_embeddings.weight", "[tensor, fsdp]"),
                                         Pair(layer + "attention.output.dense.weight", "[fsdp, tensor]"),
                                         Pair(layer + "attention.self.key.weight", "[tensor, fsdp]"),
                                         Pair(layer + "attention.self.query.weight", "[tensor, fsdp]"),
                                         Pair(layer + "attention.self.value.weight", "[tensor, fsdp]"),
                                         Pair(layer + "intermediate.dense.weight", "[tensor, fsdp]"),
                                         Pair(layer + "output.dense.weight", "[fsdp, tensor]")));
  EXPECT_THAT(found.unfit, IsEmpty());
}

TEST(ShardRules, Transformer) {
  TransformerOptions options;
  options.layers = 1;
  options.width = 512;
  options.heads = 8;
  options.feedforward = 1024;
  options.vocabulary = 1000;
  const LaidOut found = laid_out(*transformer(options), "fsdp=2,tensor=4");
  const std::string layer = "encoder.layers.0.";
  EXPECT_THAT(found.layouts, ElementsAre(Pair("embedding.weight", "[tensor, fsdp]"),
                                         Pair(layer + "linear1.weight", "[tensor, fsdp]"),
                                         Pair(layer + "linear2.weight", "[fsdp, tensor]"),
                                         Pair(layer + "self_attn.in_proj_weight", "[tensor, fsdp]"),
                                         Pair(layer + "self_attn.out_proj.weight", "[fsdp, tensor]"),
                                         Pair("position", "[-, -, fsdp]")));
  EXPECT_THAT(found.unfit, IsEmpty());
}

// 50,257 rows: over fsdp the table lies along its width, and over `tensor` it is padded.
TEST(ShardRules, AVocabularyThatNothingDivides) {
  LanguageOptions options = one_layer("gpt2-tiny");
  options.vocabulary = 50257;
  const LanguageModelPtr model = language_model(options);
  EXPECT_EQ(laid_out(*model, "fsdp=8").layouts.at("transformer.wte.weight"), "[-, fsdp]");
  const LaidOut found = laid_out(*model, "fsdp=4,tensor=2");
  EXPECT_EQ(found.layouts.at("transformer.wte.weight"), "[tensor padded, fsdp]");
  EXPECT_THAT(found.unfit, IsEmpty());
}

// The tiny presets have no parameter that is worth an exchange.
TEST(ShardRules, SmallParametersStayWhole) {
  for (const char* name : {"gpt2-tiny", "llama-tiny", "roberta-tiny"})
    EXPECT_THAT(laid_out(*language_model(language_preset(name)), "fsdp=2,tensor=2").layouts, IsEmpty())
        << name;
  EXPECT_THAT(laid_out(*lenet(), "fsdp=2,tensor=2").layouts, IsEmpty());
}

}  // namespace
}  // namespace sluice::models
