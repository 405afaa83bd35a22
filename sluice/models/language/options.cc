#include "sluice/models/language/options.h"

#include <algorithm>
#include <map>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/models/language/names.h"

namespace sluice::models {
namespace language_detail {

const std::vector<std::string>& known_types() {
  static const std::vector<std::string> names = {"gpt2", "llama", "roberta"};
  return names;
}
const std::vector<std::string>& known_rope_types() {
  static const std::vector<std::string> names = {"default", "dynamic",  "linear",
                                                 "llama3",  "longrope", "yarn"};
  return names;
}
const std::vector<std::string>& known_activations() {
  static const std::vector<std::string> names = {
      "gelu",       "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh",
      "quick_gelu", "relu",      "silu",     "swish",       "tanh"};
  return names;
}

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw_error(Code::kInvalidArgument, base::str(where, ": ", what));
}

void check_known(const std::string& where, const char* what, const std::string& name,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw_error(Code::kUnimplemented, base::str(where, ": the ", what, " \"", name,
                                              "\" is not known; known are ", base::join(known, ", ")));
}

void check_rope(const LanguageOptions& options, const std::string& where) {
  const RopeOptions& rope = options.rope;
  check_known(where, "rope_type", rope.type, known_rope_types());
  const int64_t head = options.head_width > 0 ? options.head_width : options.width / options.heads;
  if (head % 2 != 0) refuse(where, base::str("rotary positions need an even width of the heads, not ", head));
  if (!(rope.theta > 0)) refuse(where, base::str("rope_theta must be above 0, not ", rope.theta));
  if (!(rope.factor > 0)) refuse(where, base::str("rope's factor must be above 0, not ", rope.factor));
  if (rope.type == "dynamic" && head < 4)
    refuse(where, "the rope_type dynamic needs heads of width 4 or more");
  if ((rope.type == "yarn" || rope.type == "longrope") && rope.original_positions < 1)
    refuse(where, base::str("the rope_type ", rope.type,
                            " needs original_max_position_embeddings of at least 1, found ",
                            rope.original_positions));
  if (rope.type == "yarn" && !(rope.fast_turns > rope.slow_turns && rope.slow_turns > 0))
    refuse(where, base::str("the rope_type yarn needs a beta_fast (", rope.fast_turns, ") above beta_slow (",
                            rope.slow_turns, ")"));
  for (const auto& [name, factors] :
       {std::pair("short_factor", rope.short_factors), std::pair("long_factor", rope.long_factors)})
    if (rope.type == "longrope" && static_cast<int64_t>(factors.size()) != head / 2)
      refuse(where, base::str("the rope_type longrope needs a ", name, " of ", head / 2,
                              " numbers, half the width of a head; found ", factors.size()));
  if (rope.type == "llama3" &&
      (rope.original_positions < 1 || !(rope.high_frequency_factor > rope.low_frequency_factor)))
    refuse(where, base::str("the rope_type llama3 needs original_max_position_embeddings (found ",
                            rope.original_positions, ") and a high_freq_factor (", rope.high_frequency_factor,
                            ") above low_freq_factor (", rope.low_frequency_factor, ")"));
}

struct Size {
  const char* key;  // in config.json
  int64_t value, least, most;
};

// Refuses sizes that no model has: such tables would only exhaust the memory.
void check_sizes(const LanguageOptions& options, const std::string& where) {
  constexpr int64_t kIds = int64_t{1} << 24, kWidths = int64_t{1} << 20, kParts = int64_t{1} << 16,
                    kPositions = int64_t{1} << 31, kParameters = int64_t{1} << 42;
  const bool is_gpt2 = options.type == "gpt2", has_table = options.type != "llama";  // of positions
  const Size sizes[] = {{"vocab_size", options.vocabulary, 1, kIds},
                        {is_gpt2 ? "n_embd" : "hidden_size", options.width, 1, kWidths},
                        {is_gpt2 ? "n_layer" : "num_hidden_layers", options.layers, 1, kParts},
                        {is_gpt2 ? "n_head" : "num_attention_heads", options.heads, 1, kParts},
                        {is_gpt2 ? "n_positions" : "max_position_embeddings", options.positions, 1,
                         has_table ? kIds : kPositions},
                        {"type_vocab_size", options.token_types, 1, kParts},
                        {"num_key_value_heads", options.key_value_heads, 0, kParts},
                        {"head_dim", options.head_width, 0, kWidths},
                        {is_gpt2 ? "n_inner" : "intermediate_size", options.feedforward, 0, kIds},
                        {"num_labels", options.classes, 0, kIds}};
  for (const auto& [key, value, least, most] : sizes)
    if (value < least || value > most)
      refuse(where, base::str("expected ", key, " from ", least, " to ", most, ", found ", value));
  // A layer has at least a square of the width, one matrix for its heads and one for its feed-forward.
  const int64_t columns = options.width + options.heads * options.head_width + options.feedforward;
  const int64_t rows = options.vocabulary + options.classes + (has_table ? options.positions : 0);
  const double parameters =
      static_cast<double>(options.width) *
      (static_cast<double>(rows) + static_cast<double>(options.layers) * static_cast<double>(columns));
  if (parameters > static_cast<double>(kParameters))
    refuse(where, base::str("these sizes make more than ", kParameters, " parameters: a vocabulary of ",
                            options.vocabulary, ", ", options.layers, " layers, a width of ", options.width,
                            ", ", options.heads, " heads of ", options.head_width, " and a feed-forward of ",
                            options.feedforward));
}

LanguageOptions gpt2(int64_t width, int64_t layers, int64_t heads) {
  LanguageOptions options;
  options.type = "gpt2";
  options.vocabulary = 50257;
  options.width = width;
  options.layers = layers;
  options.heads = heads;
  options.positions = 1024;
  options.activation = "gelu_new";
  options.tied = true;
  options.dropout = options.embedding_dropout = options.attention_dropout = 0.1;
  options.begin = 50256;
  options.end = {50256};
  return options;
}

LanguageOptions llama(int64_t width, int64_t layers, int64_t heads, int64_t key_value_heads,
                      int64_t feedforward) {
  LanguageOptions options;
  options.type = "llama";
  options.vocabulary = 128256;
  options.width = width;
  options.layers = layers;
  options.heads = heads;
  options.key_value_heads = key_value_heads;
  options.feedforward = feedforward;
  options.positions = 131072;
  options.rope = {"llama3", 500000, 8, 1, 4, 8192};
  options.begin = 128000;
  options.end = {128001};
  return options;
}

LanguageOptions roberta(int64_t width, int64_t layers, int64_t heads) {
  LanguageOptions options;
  options.type = "roberta";
  options.vocabulary = 50265;
  options.width = width;
  options.layers = layers;
  options.heads = heads;
  options.positions = 514;
  options.activation = "gelu";
  options.tied = true;
  options.dropout = options.embedding_dropout = options.attention_dropout = 0.1;
  options.padding = 1;
  options.begin = 0;
  options.end = {2};
  return options;
}

LanguageOptions tiny(LanguageOptions options) {
  options.vocabulary = 128;
  options.positions = 64;
  options.dropout = options.embedding_dropout = options.attention_dropout = 0;
  if (options.rope.type == "llama3") options.rope.original_positions = 32;
  if (options.type != "roberta") {
    options.begin = 0;
    options.end = {0};
  }
  return options;
}

// Makes options for training from scratch on a small machine.
LanguageOptions mini(LanguageOptions options, int64_t positions) {
  options.positions = positions;
  options.dropout = options.embedding_dropout = options.attention_dropout = 0;
  options.rope = {};
  return options;
}

std::map<std::string, LanguageOptions> make_presets() {
  std::map<std::string, LanguageOptions> presets = {
      {"gpt2", gpt2(768, 12, 12)},
      {"gpt2-medium", gpt2(1024, 24, 16)},
      {"gpt2-large", gpt2(1280, 36, 20)},
      {"gpt2-xl", gpt2(1600, 48, 25)},
      {"gpt2-mini", mini(gpt2(256, 4, 4), 1024)},
      {"gpt2-tiny", tiny(gpt2(32, 2, 4))},
      {"llama-3.2-1b", llama(2048, 16, 32, 8, 8192)},
      {"llama-3.1-8b", llama(4096, 32, 32, 8, 14336)},
      {"llama-mini", mini(llama(256, 4, 4, 2, 768), 1024)},
      {"llama-tiny", tiny(llama(32, 2, 4, 2, 48))},
      {"roberta-base", roberta(768, 12, 12)},
      {"roberta-large", roberta(1024, 24, 16)},
      {"roberta-tiny", tiny(roberta(32, 2, 4))},
  };
  presets["llama-3.2-1b"].rope.factor = 32;
  presets["llama-3.2-1b"].tied = presets["llama-mini"].tied = presets["llama-tiny"].tied = true;
  return presets;
}

const std::map<std::string, LanguageOptions>& presets() {
  static const std::map<std::string, LanguageOptions> all = make_presets();
  return all;
}

}  // namespace
}  // namespace language_detail

void check(const LanguageOptions& options, const std::string& where) {
  using language_detail::refuse;
  language_detail::check_known(where, "model_type", options.type, language_detail::known_types());
  language_detail::check_sizes(options, where);
  if (options.width % options.heads != 0 && (options.type != "llama" || options.head_width == 0))
    refuse(where, base::str("the width (", options.width, ") must be a multiple of the heads (",
                            options.heads, ")"));
  if (options.key_value_heads > 0 && options.heads % options.key_value_heads != 0)
    refuse(where, base::str("the heads (", options.heads, ") must be a multiple of the key-value heads (",
                            options.key_value_heads, ")"));
  if (options.padding >= options.vocabulary)
    refuse(where, base::str("the padding token ", options.padding, " must be below the vocabulary's size, ",
                            options.vocabulary));
  if (options.type == "roberta" && (options.padding < 0 || options.padding + 1 >= options.positions))
    refuse(where, base::str("positions are counted from the padding token + 1: expected a pad_token_id "
                            "from 0 to ",
                            options.positions - 2, ", found ", options.padding));
  if (!options.labels.empty() && static_cast<int64_t>(options.labels.size()) != options.classes)
    refuse(where, base::str("expected a label for each of the ", options.classes, " classes, found ",
                            options.labels.size()));
  if (!(options.classifier_dropout < 1))
    refuse(where, base::str("the classifier's dropout must be below 1, not ", options.classifier_dropout));
  for (const double p : {options.dropout, options.embedding_dropout, options.attention_dropout})
    if (!(p >= 0 && p < 1)) refuse(where, base::str("dropout must be from 0 to below 1, not ", p));
  language_detail::check_known(where, "activation", options.activation, language_detail::known_activations());
  if (options.type == "llama") language_detail::check_rope(options, where);
}

LanguageOptions language_preset(const std::string& name) {
  const auto& presets = language_detail::presets();
  if (auto found = presets.find(name); found != presets.end()) return found->second;
  const std::string near = base::nearest(name, language_presets());
  throw_error(Code::kNotFound,
              base::str("there is no language model \"", name, "\"",
                        near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?"),
                        " Known are ", base::join(language_presets(), ", ")));
}

std::vector<std::string> language_presets() {
  std::vector<std::string> names;
  for (const auto& [name, options] : language_detail::presets()) names.push_back(name);
  return names;
}

}  // namespace sluice::models
