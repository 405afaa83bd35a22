// The options of a language model, as in Hugging Face's config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"

SLUICE_API_BEGIN
namespace sluice::models {

// Rotary positions. `type`: "default", "linear" (angles divided by `factor`), "llama3" and "yarn" (low
// frequencies divided by `factor`, medium ones blended), "dynamic" (a larger theta for sequences above
// `positions`), "longrope" (each frequency divided by a factor of its own, with other factors for sequences
// above `original_positions`).
struct RopeOptions {
  std::string type = "default";
  double theta = 10000;
  double factor = 1;
  double low_frequency_factor = 1;   // llama3
  double high_frequency_factor = 4;  // llama3
  int64_t original_positions = 0;    // llama3, yarn, longrope: the length of the first training
  // yarn, longrope: the factor of sines and cosines; 0: derived from `factor`
  double attention_factor = 0;
  double fast_turns = 32, slow_turns = 1;  // yarn: frequencies with more turns stay, with fewer are divided
  bool whole_turns = true;                 // yarn: the borders between them are rounded
  double scale = 0, scale_all = 0;         // yarn: mscale and mscale_all_dim
  std::vector<double> short_factors = {}, long_factors = {};  // longrope: one for each half of a head's width
};

struct LanguageOptions {
  std::string type = "llama";  // "gpt2", "llama" or "roberta"
  int64_t vocabulary = 32000;
  int64_t width = 512;
  int64_t layers = 4;
  int64_t heads = 8;
  int64_t key_value_heads = 0;  // llama: fewer than heads share keys and values; 0: one for each head
  int64_t head_width = 0;       // llama; 0: width / heads
  int64_t feedforward = 0;      // 0: 4 × width
  int64_t positions = 1024;     // gpt2, roberta: the rows of the table; llama: the limit for "dynamic"
  int64_t token_types = 1;      // roberta: all tokens have the first one
  std::string activation = "silu";
  double norm_epsilon = 1e-5;
  bool tied = false;  // the head is the table of words
  // Above 0: the number of classes of a classifier (transformers' …ForSequenceClassification), which has no
  // head of words.
  int64_t classes = 0;
  std::vector<std::string> labels;  // the classes' names; empty: LABEL_0, LABEL_1, …
  double classifier_dropout = -1;   // roberta's; below 0: `dropout`
  bool attention_bias = false;      // llama
  bool feedforward_bias = false;    // llama
  bool scaled_attention = true;     // gpt2: scores divided by the root of the head's width
  bool scaled_by_layer = false;     // gpt2: scores also divided by the layer's number, from 1
  RopeOptions rope;                 // llama
  double dropout = 0;               // of the values added to the residual stream
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool recompute = false;           // layers are computed again in the backward pass (device/recompute.h)
  double initial_deviation = 0.02;  // of fresh weights
  int64_t padding = -1;             // token ids; -1: none. roberta counts positions from padding + 1.
  int64_t begin = -1;
  std::vector<int64_t> end;
};

// Parses config.json's text; `source` names it in errors. Understands the files of transformers 4
// (rope_theta, rope_scaling) and 5 (rope_parameters). Throws sluice::Error for an unsupported model: an
// unknown model_type, rope_type or activation, or sizes that do not fit each other.
LanguageOptions parse_language_config(const std::string& json, const std::string& source = "config.json");
// Returns the text of a config.json from which transformers 4 and 5 make the same model.
std::string language_config(const LanguageOptions& options);
// Throws sluice::Error, with `where` in front, for invalid options.
void check(const LanguageOptions& options, const std::string& where = "language model");

// Returns whether a place sees only itself and the places before it: the model then predicts the next token.
inline bool is_decoder(const LanguageOptions& options) { return options.type != "roberta"; }

// Returns the options of "gpt2" and its larger variants, "roberta-base", "llama-3.2-1b", …; "gpt2-mini" and
// "llama-mini" for training from scratch on a small machine; and for tests "gpt2-tiny", "llama-tiny",
// "roberta-tiny". Throws sluice::Error (kNotFound) that proposes the nearest known name.
LanguageOptions language_preset(const std::string& name);
std::vector<std::string> language_presets();

}  // namespace sluice::models
SLUICE_API_END
