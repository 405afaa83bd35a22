// How the parameters of the language models lie over a mesh.
#include "sluice/models/language/language.h"

namespace sluice::models {
namespace language_detail {
namespace {

constexpr char kTensor[] = "tensor";
// Few axes divide a vocabulary: 50,257 words are 29 × 1,733.
constexpr bool kPadded = true;

// The weights of GPT-2's layers are [inputs, outputs].
std::vector<ShardRule> gpt2_rules(const LanguageOptions& options) {
  const int64_t heads = options.heads;
  return {{"transformer.wte.weight", kTensor, 0, 0, kPadded},
          {"transformer.wpe.weight", "fsdp", 1},
          {"*.attn.c_attn.weight", kTensor, 1, heads},
          {"*.attn.c_proj.weight", kTensor, 0, heads},
          {"*.mlp.c_fc.weight", kTensor, 1},
          {"*.mlp.c_proj.weight", kTensor, 0}};
}

std::vector<ShardRule> llama_rules(const LanguageOptions& options) {
  const int64_t heads = options.heads;
  const int64_t key_value_heads = options.key_value_heads > 0 ? options.key_value_heads : heads;
  return {{"model.embed_tokens.weight", kTensor, 0, 0, kPadded},
          {"*.self_attn.q_proj.weight", kTensor, 0, heads},
          {"*.self_attn.k_proj.weight", kTensor, 0, key_value_heads},
          {"*.self_attn.v_proj.weight", kTensor, 0, key_value_heads},
          {"*.self_attn.o_proj.weight", kTensor, 1, heads},
          {"*.mlp.gate_proj.weight", kTensor, 0},
          {"*.mlp.up_proj.weight", kTensor, 0},
          {"*.mlp.down_proj.weight", kTensor, 1}};
}

std::vector<ShardRule> roberta_rules(const LanguageOptions& options) {
  const int64_t heads = options.heads;
  return {{"roberta.embeddings.word_embeddings.weight", kTensor, 0, 0, kPadded},
          {"roberta.embeddings.position_embeddings.weight", "fsdp", 1},
          {"*.attention.self.query.weight", kTensor, 0, heads},
          {"*.attention.self.key.weight", kTensor, 0, heads},
          {"*.attention.self.value.weight", kTensor, 0, heads},
          {"*.attention.output.dense.weight", kTensor, 1, heads},
          {"*.intermediate.dense.weight", kTensor, 0},
          {"*.output.dense.weight", kTensor, 1},  // of the feed-forward: attention's has matched above
          {"lm_head.bias"}};
}

}  // namespace
}  // namespace language_detail

std::vector<ShardRule> language_shard_rules(const LanguageOptions& options) {
  namespace detail = language_detail;
  std::vector<ShardRule> rules = options.type == "gpt2"      ? detail::gpt2_rules(options)
                                 : options.type == "roberta" ? detail::roberta_rules(options)
                                                             : detail::llama_rules(options);
  // The head of words, where it is not the table of words.
  const char* const head = is_decoder(options) ? "lm_head.weight" : "lm_head.decoder.weight";
  rules.push_back({head, detail::kTensor, 0, 0, detail::kPadded});
  return rules;
}

}  // namespace sluice::models
