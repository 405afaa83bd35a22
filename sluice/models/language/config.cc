// Reads and writes config.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sluice/base/error.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/models/language/names.h"
#include "sluice/models/language/options.h"

namespace sluice::models {
namespace language_detail {
namespace {

using Json = nlohmann::json;

// An object of a file, with its values by key. Null counts as missing, as in Python.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  bool is_there(const char* key) const { return object_.contains(key); }
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  template <typename T>
  T get(const char* key, T otherwise) const {
    return has(key) ? need<T>(key) : otherwise;
  }
  template <typename T>
  T need(const char* key) const {
    if (!has(key))
      throw_error(Code::kInvalidArgument, base::str(source_, ": the key \"", key, "\" is missing"));
    const Json& value = object_[key];
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) wrong(key, "true or false");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_string()) wrong(key, "a text");
    } else if constexpr (std::is_same_v<T, double>) {
      if (!value.is_number()) wrong(key, "a number");
    } else {
      if (!value.is_number_integer()) wrong(key, "a whole number");
    }
    return value.get<T>();
  }
  std::vector<double> numbers(const char* key) const {
    if (!has(key))
      throw_error(Code::kInvalidArgument, base::str(source_, ": the key \"", key, "\" is missing"));
    std::vector<double> all;
    for (const Json& number : object_[key]) {
      if (!object_[key].is_array() || !number.is_number()) wrong(key, "numbers");
      all.push_back(number.get<double>());
    }
    return all;
  }
  // Reads a token id, or a list of ids, or null for none.
  std::vector<int64_t> ids(const char* key, std::vector<int64_t> otherwise) const {
    if (!object_.contains(key)) return otherwise;
    if (object_[key].is_null()) return {};
    if (!object_[key].is_array()) return {need<int64_t>(key)};
    std::vector<int64_t> all;
    for (const Json& id : object_[key]) {
      if (!id.is_number_integer()) wrong(key, "token ids");
      all.push_back(id.get<int64_t>());
    }
    return all;
  }
  int64_t id(const char* key, int64_t otherwise) const {
    return object_.contains(key) ? get<int64_t>(key, -1) : otherwise;
  }
  Fields object(const char* key) const {
    if (!object_[key].is_object()) wrong(key, "an object");
    return {object_[key], base::str(source_, ": ", key)};
  }
  // Throws unless the key has this value or is missing: the models here support no other value.
  void only(const char* key, const Json& supported) const {
    if (!has(key) || object_[key] == supported) return;
    throw_error(Code::kUnimplemented, base::str(source_, ": \"", key, "\" is ", object_[key].dump(),
                                                "; supported is ", supported.dump()));
  }

 private:
  [[noreturn]] void wrong(const char* key, const char* expected) const {
    throw_error(Code::kInvalidArgument, base::str(source_, ": \"", key, "\" must be ", expected, ", not ",
                                                  object_[key].dump().substr(0, 60)));
  }
  const Json& object_;
  std::string source_;
};

RopeOptions read_rope(const Fields& config, int64_t positions) {
  RopeOptions rope;
  rope.theta = config.get<double>("rope_theta", rope.theta);
  const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!config.has(key)) return rope;
  const Fields fields = config.object(key);
  rope.type = fields.get<std::string>("rope_type", fields.get<std::string>("type", rope.type));
  rope.theta = fields.get<double>("rope_theta", rope.theta);
  fields.only("partial_rotary_factor", 1.0);
  if (rope.type == "linear" || rope.type == "dynamic" || rope.type == "llama3")
    rope.factor = fields.need<double>("factor");
  // config.json's own key takes precedence over the key in rope_parameters, as in transformers.
  if (rope.type == "llama3" || rope.type == "yarn" || rope.type == "longrope")
    rope.original_positions =
        config.get<int64_t>("original_max_position_embeddings",
                            fields.get<int64_t>("original_max_position_embeddings", positions));
  if (rope.type == "llama3") {
    rope.low_frequency_factor = fields.need<double>("low_freq_factor");
    rope.high_frequency_factor = fields.need<double>("high_freq_factor");
  }
  // Without the key, transformers makes no model; null stands for the ratio of the two lengths.
  if (rope.type == "yarn" && !fields.is_there("factor")) rope.factor = fields.need<double>("factor");
  if (rope.type == "yarn" || rope.type == "longrope") {
    const auto original = static_cast<double>(std::max<int64_t>(1, rope.original_positions));
    rope.factor = fields.get<double>("factor", static_cast<double>(positions) / original);
    rope.attention_factor = fields.get<double>("attention_factor", 0.0);
  }
  if (rope.type == "yarn") {
    rope.fast_turns = fields.get<double>("beta_fast", rope.fast_turns);
    rope.slow_turns = fields.get<double>("beta_slow", rope.slow_turns);
    rope.whole_turns = fields.get<bool>("truncate", rope.whole_turns);
    rope.scale = fields.get<double>("mscale", 0.0);
    rope.scale_all = fields.get<double>("mscale_all_dim", 0.0);
  }
  if (rope.type == "longrope") {
    rope.short_factors = fields.numbers("short_factor");
    rope.long_factors = fields.numbers("long_factor");
  }
  return rope;
}

// Reads the classes of a classifier: its labels by number, or only their count.
void read_classes(const Json& json, const Fields& config, const std::string& source,
                  LanguageOptions& options) {
  if (!json.contains("architectures") || !json["architectures"].is_array()) return;
  const Json& names = json["architectures"];
  if (std::none_of(names.begin(), names.end(), [](const Json& name) {
        return name.is_string() && base::ends_with(name.get<std::string>(), "ForSequenceClassification");
      }))
    return;
  options.classes = config.get<int64_t>("num_labels", 2);
  options.classifier_dropout = config.get<double>("classifier_dropout", -1.0);
  if (!config.has("id2label")) return;
  const Json& labels = json["id2label"];
  if (!labels.is_object())
    throw_error(Code::kInvalidArgument, base::str(source, ": \"id2label\" must be an object"));
  options.classes = static_cast<int64_t>(labels.size());
  for (int64_t i = 0; i < options.classes; ++i) {
    const std::string key = base::str(i);
    if (!labels.contains(key) || !labels[key].is_string())
      throw_error(Code::kInvalidArgument, base::str(source, ": \"id2label\" has ", options.classes,
                                                    " labels; expected one called \"", key, "\""));
    options.labels.push_back(labels[key].get<std::string>());
  }
}

void write_classes(const LanguageOptions& options, const char* architecture, Json& json) {
  json["architectures"] = {architecture};
  if (options.classifier_dropout >= 0) json["classifier_dropout"] = options.classifier_dropout;
  for (int64_t i = 0; i < options.classes; ++i) {
    const std::string label =
        options.labels.empty() ? base::str("LABEL_", i) : options.labels[static_cast<size_t>(i)];
    json["id2label"][base::str(i)] = label;
    json["label2id"][label] = i;
  }
}

// A missing key has transformers' own default.
void read_llama(const Fields& config, LanguageOptions& options) {
  options.vocabulary = config.get<int64_t>("vocab_size", 32000);
  options.width = config.get<int64_t>("hidden_size", 4096);
  options.layers = config.get<int64_t>("num_hidden_layers", 32);
  options.heads = config.get<int64_t>("num_attention_heads", 32);
  options.key_value_heads = config.get<int64_t>("num_key_value_heads", 0);
  options.head_width = config.get<int64_t>("head_dim", 0);
  options.feedforward = config.get<int64_t>("intermediate_size", 11008);
  options.positions = config.get<int64_t>("max_position_embeddings", 2048);
  options.activation = config.get<std::string>("hidden_act", "silu");
  options.norm_epsilon = config.get<double>("rms_norm_eps", 1e-6);
  options.tied = config.get<bool>("tie_word_embeddings", false);
  options.attention_bias = config.get<bool>("attention_bias", false);
  options.feedforward_bias = config.get<bool>("mlp_bias", false);
  options.attention_dropout = config.get<double>("attention_dropout", 0.0);
  options.rope = read_rope(config, options.positions);
  options.padding = config.id("pad_token_id", -1);
  options.begin = config.id("bos_token_id", 1);
  options.end = config.ids("eos_token_id", {2});
  config.only("partial_rotary_factor", 1.0);
}

void read_gpt2(const Fields& config, LanguageOptions& options) {
  options.vocabulary = config.get<int64_t>("vocab_size", 50257);
  options.width = config.get<int64_t>("n_embd", 768);
  options.layers = config.get<int64_t>("n_layer", 12);
  options.heads = config.get<int64_t>("n_head", 12);
  options.feedforward = config.get<int64_t>("n_inner", 0);
  options.positions = config.get<int64_t>("n_positions", 1024);
  options.activation = config.get<std::string>("activation_function", "gelu_new");
  options.norm_epsilon = config.get<double>("layer_norm_epsilon", 1e-5);
  options.tied = config.get<bool>("tie_word_embeddings", true);
  options.scaled_attention = config.get<bool>("scale_attn_weights", true);
  options.scaled_by_layer = config.get<bool>("scale_attn_by_inverse_layer_idx", false);
  options.dropout = config.get<double>("resid_pdrop", 0.1);
  options.embedding_dropout = config.get<double>("embd_pdrop", 0.1);
  options.attention_dropout = config.get<double>("attn_pdrop", 0.1);
  options.padding = config.id("pad_token_id", -1);
  options.begin = config.id("bos_token_id", 50256);
  options.end = config.ids("eos_token_id", {50256});
  config.only("add_cross_attention", false);
}

void read_roberta(const Fields& config, LanguageOptions& options) {
  options.vocabulary = config.get<int64_t>("vocab_size", 50265);
  options.width = config.get<int64_t>("hidden_size", 768);
  options.layers = config.get<int64_t>("num_hidden_layers", 12);
  options.heads = config.get<int64_t>("num_attention_heads", 12);
  options.feedforward = config.get<int64_t>("intermediate_size", 3072);
  options.positions = config.get<int64_t>("max_position_embeddings", 512);
  options.token_types = config.get<int64_t>("type_vocab_size", 2);
  options.activation = config.get<std::string>("hidden_act", "gelu");
  options.norm_epsilon = config.get<double>("layer_norm_eps", 1e-12);
  options.tied = config.get<bool>("tie_word_embeddings", true);
  options.dropout = options.embedding_dropout = config.get<double>("hidden_dropout_prob", 0.1);
  options.attention_dropout = config.get<double>("attention_probs_dropout_prob", 0.1);
  options.padding = config.id("pad_token_id", 1);
  options.begin = config.id("bos_token_id", 0);
  options.end = config.ids("eos_token_id", {2});
  config.only("is_decoder", false);
  config.only("add_cross_attention", false);
  config.only("position_embedding_type", "absolute");
}

Json id_or_null(int64_t id) { return id < 0 ? Json() : Json(id); }

Json ids_or_null(const std::vector<int64_t>& ids) {
  if (ids.empty()) return {};
  return ids.size() == 1 ? Json(ids[0]) : Json(ids);
}

void write_stretched_rope(const RopeOptions& options, Json& rope) {
  if (options.type != "yarn" && options.type != "longrope") return;
  rope["original_max_position_embeddings"] = options.original_positions;
  if (options.attention_factor > 0) rope["attention_factor"] = options.attention_factor;
  if (options.type == "longrope") {
    rope["short_factor"] = options.short_factors;
    rope["long_factor"] = options.long_factors;
    return;
  }
  rope["beta_fast"] = options.fast_turns;
  rope["beta_slow"] = options.slow_turns;
  rope["truncate"] = options.whole_turns;
  if (options.scale > 0) rope["mscale"] = options.scale;
  if (options.scale_all > 0) rope["mscale_all_dim"] = options.scale_all;
}

void write_llama(const LanguageOptions& options, Json& json) {
  Json rope = {{"rope_type", options.rope.type}, {"rope_theta", options.rope.theta}};
  if (options.rope.type != "default") rope["factor"] = options.rope.factor;
  if (options.rope.type == "llama3") {
    rope["low_freq_factor"] = options.rope.low_frequency_factor;
    rope["high_freq_factor"] = options.rope.high_frequency_factor;
    rope["original_max_position_embeddings"] = options.rope.original_positions;
  }
  write_stretched_rope(options.rope, rope);
  json.update({{"architectures", Json::array({"LlamaForCausalLM"})},
               {"hidden_size", options.width},
               {"num_hidden_layers", options.layers},
               {"num_attention_heads", options.heads},
               {"num_key_value_heads", options.key_value_heads > 0 ? options.key_value_heads : options.heads},
               {"head_dim", options.head_width > 0 ? options.head_width : options.width / options.heads},
               {"intermediate_size", options.feedforward > 0 ? options.feedforward : 4 * options.width},
               {"max_position_embeddings", options.positions},
               {"hidden_act", options.activation},
               {"rms_norm_eps", options.norm_epsilon},
               {"attention_bias", options.attention_bias},
               {"mlp_bias", options.feedforward_bias},
               {"attention_dropout", options.attention_dropout},
               {"rope_parameters", rope},
               {"rope_theta", options.rope.theta}});
  if (options.rope.type != "default") json["rope_scaling"] = rope;
}

void write_gpt2(const LanguageOptions& options, Json& json) {
  json.update({{"architectures", Json::array({"GPT2LMHeadModel"})},
               {"n_embd", options.width},
               {"n_layer", options.layers},
               {"n_head", options.heads},
               {"n_inner", options.feedforward > 0 ? Json(options.feedforward) : Json()},
               {"n_positions", options.positions},
               {"activation_function", options.activation},
               {"layer_norm_epsilon", options.norm_epsilon},
               {"scale_attn_weights", options.scaled_attention},
               {"scale_attn_by_inverse_layer_idx", options.scaled_by_layer},
               {"resid_pdrop", options.dropout},
               {"embd_pdrop", options.embedding_dropout},
               {"attn_pdrop", options.attention_dropout}});
}

void write_roberta(const LanguageOptions& options, Json& json) {
  json.update({{"architectures", Json::array({"RobertaForMaskedLM"})},
               {"hidden_size", options.width},
               {"num_hidden_layers", options.layers},
               {"num_attention_heads", options.heads},
               {"intermediate_size", options.feedforward > 0 ? options.feedforward : 4 * options.width},
               {"max_position_embeddings", options.positions},
               {"type_vocab_size", options.token_types},
               {"hidden_act", options.activation},
               {"layer_norm_eps", options.norm_epsilon},
               {"hidden_dropout_prob", options.dropout},
               {"attention_probs_dropout_prob", options.attention_dropout}});
}

struct Kind {
  const char* classifier;  // its architecture
  void (*read)(const Fields&, LanguageOptions&);
  void (*write)(const LanguageOptions&, Json&);
};
Kind kind_of(const std::string& type) {
  if (type == "gpt2") return {"GPT2ForSequenceClassification", read_gpt2, write_gpt2};
  if (type == "roberta") return {"RobertaForSequenceClassification", read_roberta, write_roberta};
  return {"LlamaForSequenceClassification", read_llama, write_llama};
}

}  // namespace
}  // namespace language_detail

LanguageOptions parse_language_config(const std::string& text, const std::string& source) {
  namespace detail = language_detail;
  const detail::Json json = base::parse_json(text);
  if (!json.is_object())
    throw_error(Code::kInvalidArgument, base::str(source, ": expected a JSON object, as in a config.json"));
  const detail::Fields config(json, source);
  LanguageOptions options;
  options.type = config.need<std::string>("model_type");
  const auto& types = detail::known_types();
  if (std::find(types.begin(), types.end(), options.type) == types.end())
    throw_error(Code::kUnimplemented, base::str(source, ": the model_type \"", options.type,
                                                "\" is not known; known are ", base::join(types, ", ")));
  detail::kind_of(options.type).read(config, options);
  options.initial_deviation = config.get<double>("initializer_range", 0.02);
  detail::read_classes(json, config, source, options);
  check(options, source);
  return options;
}

std::string language_config(const LanguageOptions& options) {
  check(options);
  nlohmann::json json = {{"model_type", options.type},
                         {"vocab_size", options.vocabulary},
                         {"tie_word_embeddings", options.tied},
                         {"initializer_range", options.initial_deviation},
                         {"pad_token_id", language_detail::id_or_null(options.padding)},
                         {"bos_token_id", language_detail::id_or_null(options.begin)},
                         {"eos_token_id", language_detail::ids_or_null(options.end)},
                         {"torch_dtype", "float32"}};
  const language_detail::Kind kind = language_detail::kind_of(options.type);
  kind.write(options, json);
  if (options.classes > 0) language_detail::write_classes(options, kind.classifier, json);
  return json.dump(2) + "\n";
}

}  // namespace sluice::models
