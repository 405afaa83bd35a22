#include "sluice/train/language/language_task.h"

#include <algorithm>
#include <optional>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/device/start/without_values.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/files/weights.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/text/set_facts.h"
#include "sluice/train/language/language_steps.h"
#include "sluice/train/language/text_classes.h"
#include "sluice/train/run/run_plan.h"

namespace sluice::train {
namespace language_task_detail {

constexpr int64_t kLongestRow = 1024;  // the default

[[noreturn]] void refuse(const std::string& what) { throw_error(Code::kInvalidArgument, what); }

bool is_path(const std::string& model) {
  return model.find('/') != std::string::npos || base::path_exists(model);
}

std::string config_path(const std::string& path) {
  return base::is_directory(path) ? base::join_path(path, "config.json") : path;
}

// Returns the id of the first name that the tokenizer knows; -1 if it knows none of them.
int64_t id_of(const text::Tokenizer& tokenizer, std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const auto id = tokenizer.id_of(name)) return *id;
  return -1;
}

// The largest length of a row by the model's table of positions; 0: any length.
int64_t positions_of(const models::LanguageOptions& options) {
  if (options.type == "gpt2") return options.positions;
  return options.type == "roberta" ? options.positions - options.padding - 1 : 0;
}

}  // namespace language_task_detail

void set_language_recipe(TrainOptions& options) {
  const bool classify = options.task == Task::kClassify;
  options.optimizer = OptimizerKind::kAdamW;
  options.betas = {0.9, classify ? 0.999 : options.task == Task::kMlm ? 0.98 : 0.95};
  options.lr = classify ? 5e-5 : 5e-4;
  options.weight_decay = 0.1;
  options.no_decay = true;
  options.clip_norm = 1;
  options.warmup_epochs = 0.1;
  options.batch_size = classify ? 32 : 8;
  options.epochs = classify ? 3 : 1;
}

void check_language(const TrainOptions& options) {
  using language_task_detail::refuse;
  const std::string task = base::str("--task ", name_of(options.task));
  const bool classify = options.task == Task::kClassify;
  const char* const data = classify ? "shards with texts" : "token files";
  if (options.fake_data || !options.mix.empty())
    refuse(base::str(task, " trains on ", data, ": give them with --train, not with --fake-data or --mix"));
  if (options.train.empty())
    refuse(classify ? "no training data: give shards with texts and their classes with --train"
                    : "no training data: give token files, as 'sluice text pack' writes them, with --train");
  if (classify && options.classes < 1) refuse("the number of classes is missing: give it with --classes");
  if (options.model.empty() && options.weights.empty())
    refuse(base::str("the model is missing: give it with --model (",
                     base::join(models::language_presets(), ", "),
                     ", or a config.json), or a folder of transformers with --weights"));
  if (!options.model.empty() && !language_task_detail::is_path(options.model))
    models::language_preset(options.model);
  if (classify && options.pack)
    refuse(
        "--pack puts several texts into a row, but --task classify reads one text a row: leave "
        "--pack out");
  if (classify && options.long_documents == LongDocument::kSplit)
    refuse(
        "--long-documents split cuts a text into several, but --task classify has one class for "
        "the whole text: use cut");
  if (!options.shapes.empty()) {
    if (options.pack || options.length > 0)
      refuse("--shapes says what rows of single documents are: leave --length and --pack out");
    if (options.global_batch_size > 0)
      refuse("--shapes says how many rows a batch has: leave --global-batch-size out");
  }
}

LanguageTask::LanguageTask(const TrainOptions& options, int64_t rows) : options_(options) {
  const bool classify = options.task == Task::kClassify;
  find_tokenizer();
  if (!classify) learn_vocabulary(text::TokenSet::open(options.train));
  make_model();
  const auto add = [&](const std::string& name, const std::string& files, int64_t of_batch) {
    try {
      classify ? open_classes(name, files, of_batch) : open_tokens(name, files, of_batch);
    } catch (const Error& error) {
      throw_error(error.code(), base::str(sets_.empty() ? "--train " : "--test ", files, ": ", error.what()));
    }
  };
  add("train", options.train, rows);
  const int64_t test_rows =
      options.test_batch_size > 0 ? rows_of_part("--test-batch-size", options.test_batch_size) : rows;
  if (!options.test.empty()) add("test", options.test, test_rows);
  for (const auto& [name, files] : options.more_tests) add(name, files, test_rows);
}

// Finds the tokenizer that --tokenizer names, else the one next to the weights.
void LanguageTask::find_tokenizer() {
  tokenizer_path_ = options_.tokenizer.empty() ? "" : text::tokenizer_file(options_.tokenizer);
  if (tokenizer_path_.empty() && !options_.weights.empty() && base::is_directory(options_.weights)) {
    const std::string beside = text::tokenizer_file(options_.weights);
    if (base::path_exists(beside)) tokenizer_path_ = beside;
  }
  if (options_.task == Task::kClassify && tokenizer_path_.empty())
    language_task_detail::refuse("--task classify needs the tokenizer: give it with --tokenizer");
  if (!tokenizer_path_.empty()) tokenizer_ = text::Tokenizer::load(tokenizer_path_);
  if (tokenizer_) vocabulary_ = static_cast<int64_t>(tokenizer_->vocabulary_size());
}

// The files' own tokenizer takes precedence over the tokenizer of the weights.
void LanguageTask::learn_vocabulary(const text::TokenSet& set) {
  if (options_.tokenizer.empty())
    if (const std::string beside = text::tokenizer_beside(set); !beside.empty()) {
      tokenizer_path_ = beside;
      tokenizer_ = text::Tokenizer::load(beside);
      vocabulary_ = static_cast<int64_t>(tokenizer_->vocabulary_size());
    }
  const auto facts = base::value_or_throw(text::set_facts(set));
  if (facts && tokenizer_ && !facts->tokenizer.empty() && facts->tokenizer != tokenizer_->fingerprint())
    language_task_detail::refuse(base::str("the token files ", set.files().front().name(),
                                           ".bin … were made with another tokenizer than ", tokenizer_path_));
  if (facts) vocabulary_ = std::max(vocabulary_, static_cast<int64_t>(facts->vocabulary_size));
}

// The options of a new model: a preset gets the vocabulary and the special tokens of the data, and positions
// for its rows.
models::LanguageOptions LanguageTask::model_options() const {
  namespace detail = language_task_detail;
  if (detail::is_path(options_.model)) {
    const std::string path = detail::config_path(options_.model);
    models::LanguageOptions model =
        models::parse_language_config(base::value_or_throw(base::read_file(path)), path);
    model.classes = options_.task == Task::kClassify ? options_.classes : 0;
    model.recompute = options_.recompute.value_or(false);
    return model;
  }
  models::LanguageOptions model = models::language_preset(options_.model);
  model.recompute = options_.recompute.value_or(false);
  if (options_.task == Task::kClassify) model.classes = options_.classes;
  if (vocabulary_ > 0) {
    if (vocabulary_ != model.vocabulary || tokenizer_) {
      model.begin = model.padding = -1;
      model.end.clear();
    }
    model.vocabulary = vocabulary_;
    if (tokenizer_) {
      model.begin = detail::id_of(*tokenizer_, {"<s>", "<|begin_of_text|>", "[CLS]", "<|endoftext|>"});
      model.padding = detail::id_of(*tokenizer_, {"<pad>", "[PAD]"});
      const int64_t end = detail::id_of(*tokenizer_, {"</s>", "<|end_of_text|>", "[SEP]", "<|endoftext|>"});
      if (end >= 0) model.end = {end};
    }
    if (model.type == "roberta" && (model.begin < 0 || model.end.empty() || model.padding < 0))
      detail::refuse(base::str(
          "roberta needs the tokens <s>, </s> and <pad>, which ",
          tokenizer_ ? tokenizer_path_ + " does not have" : std::string("no tokenizer says"),
          ": make them with 'sluice text tokenizer --special-token', and give the file with --tokenizer"));
  }
  int64_t longest = options_.length;
  for (const auto& shape : options_.shapes) longest = std::max(longest, shape.length);
  if (const int64_t have = detail::positions_of(model); have > 0 && longest > have)
    model.positions += longest - have;
  return model;
}

// The number of classes of a new head on the weights' body; 0: the folder's own head is used.
int64_t LanguageTask::fresh_classes() const {
  if (options_.task != Task::kClassify) return 0;
  return read_language_config(options_.weights).classes == options_.classes ? 0 : options_.classes;
}

// Loads a folder that says itself what the model is.
void LanguageTask::load_folder(bool over_mesh) {
  if (!options_.model.empty())
    language_task_detail::refuse(
        base::str(options_.weights, " says itself what the model is: leave --model out"));
  const PretrainedOptions how{.new_classes = fresh_classes(),
                              .recompute = options_.recompute.value_or(false)};
  model_ =
      over_mesh ? load_pretrained_over_mesh(options_.weights, how) : load_pretrained(options_.weights, how);
}

// Makes the model of --model, with the weights of --weights if they are given.
void LanguageTask::make_new(bool over_mesh) {
  if (options_.model.empty())
    language_task_detail::refuse(base::str("--weights ", options_.weights,
                                           " does not say what the model is (no config.json): give it with "
                                           "--model"));
  {
    std::optional<WithoutValues> scope;
    if (over_mesh) scope.emplace(StartNumbers::kHost);
    model_ = models::language_model(model_options());
  }
  if (options_.weights.empty()) return;
  const models::LanguageOptions& model = model_->options();
  if (over_mesh) {
    const auto renamed = [&](std::vector<std::string> names) {
      return models::own_names(model, std::move(names));
    };
    return base::value_or_throw(sessions::load_over_mesh(*model_, options_.weights, renamed));
  }
  base::value_or_throw(sessions::load_module(
      *model_, models::with_own_names(model, base::value_or_throw(sessions::read_weights(options_.weights))),
      options_.weights));
}

void LanguageTask::make_model() {
  namespace detail = language_task_detail;
  const bool over_mesh = options_.device == DeviceKind::kXla && starts_without_values();
  const bool is_folder = !options_.weights.empty() &&
                         (options_.model.empty() || base::is_directory(options_.weights)) &&
                         has_language_config(options_.weights);
  torch::manual_seed(options_.seed);
  is_folder ? load_folder(over_mesh) : make_new(over_mesh);
  const auto& model = model_->options();
  if (vocabulary_ > model.vocabulary)
    detail::refuse(base::str("the model knows ", model.vocabulary, " tokens, and the data has ids up to ",
                             vocabulary_ - 1, ": was it made with another tokenizer?"));
}

void LanguageTask::add_masking(text::TokenBatchOptions& batches) const {
  using language_task_detail::refuse;
  if (!tokenizer_) refuse("--task mlm needs the tokenizer, for its mask token: give it with --tokenizer");
  const int64_t mask = language_task_detail::id_of(*tokenizer_, {"<mask>", "[MASK]"});
  if (mask < 0)
    refuse(base::str(tokenizer_path_,
                     " has no token <mask> or [MASK]: make it with 'sluice text tokenizer --special-token "
                     "\"<mask>\"'"));
  text::MaskingOptions masking{.share = options_.mask_share,
                               .mask = static_cast<std::uint32_t>(mask),
                               .vocabulary = tokenizer_->vocabulary_size()};
  for (std::uint32_t id = 0; id < tokenizer_->vocabulary_size(); ++id)
    if (tokenizer_->is_special(id)) masking.never.push_back(id);
  batches.masking = std::move(masking);
}

// The shapes of one replica's batches.
std::vector<data::LengthShape> LanguageTask::shapes(int64_t rows) const {
  namespace detail = language_task_detail;
  const int64_t positions = detail::positions_of(model_->options());
  const int64_t length = options_.length > 0 ? options_.length
                         : positions > 0     ? std::min(positions, detail::kLongestRow)
                                             : detail::kLongestRow;
  std::vector<data::LengthShape> shapes = {{rows, length}};
  if (!options_.shapes.empty()) shapes = options_.shapes;
  for (const auto& shape : shapes)
    if (positions > 0 && shape.length > positions)
      detail::refuse(base::str("rows of ", shape.length, " tokens: the model has positions for ", positions));
  return shapes;
}

text::TokenBatchOptions LanguageTask::batch_options(bool training, int64_t rows) const {
  const auto& model = model_->options();
  text::TokenBatchOptions batches;
  batches.shapes = shapes(rows);
  if (options_.pack) batches.kind = text::RowKind::kPacked;
  if (!options_.shapes.empty()) batches.kind = text::RowKind::kDocuments;
  batches.long_document = options_.long_documents;
  batches.next_token = options_.task == Task::kClm;
  batches.padding = static_cast<std::uint32_t>(std::max<int64_t>(model.padding, 0));
  batches.vocabulary = static_cast<std::uint64_t>(model.vocabulary);
  batches.shuffle = training;
  batches.seed = options_.seed;
  batches.pad = !training;
  if (options_.task == Task::kMlm) {
    if (model.begin >= 0) batches.begin = static_cast<std::uint32_t>(model.begin);
    if (!model.end.empty()) batches.end = static_cast<std::uint32_t>(model.end.front());
    add_masking(batches);
  }
  return batches;
}

void LanguageTask::open_tokens(const std::string& name, const std::string& files, int64_t rows) {
  const bool training = sets_.empty();
  auto set = std::make_shared<text::TokenBatches>(text::TokenSet::open(files), batch_options(training, rows));
  token_sets_.emplace_back(name, set);
  sets_.emplace_back(name, std::move(set));
}

void LanguageTask::open_classes(const std::string& name, const std::string& shards, int64_t rows) {
  const std::vector<data::LengthShape> all = shapes(rows);
  int64_t longest = 0;
  for (const auto& shape : all) longest = std::max(longest, shape.length);
  const models::LanguageOptions& model = model_->options();
  const TextEncoder encoder(*tokenizer_, model, longest, options_.long_documents == LongDocument::kCut);
  sets_.emplace_back(name, text_classes(options_, shards, /*training=*/sets_.empty(), encoder, all,
                                        std::max<int64_t>(model.padding, 0)));
}

Sets LanguageTask::sets() const {
  Sets sets(sets_.front().second);
  for (size_t i = 1; i < sets_.size(); ++i) {
    const auto& [name, set] = sets_[i];
    if (i == 1)
      sets.test = set;
    else
      sets.more_tests.emplace_back(name, set);
  }
  return sets;
}

std::vector<std::pair<std::string, text::TokenBatchFacts>> LanguageTask::facts(int64_t replicas) const {
  std::vector<std::pair<std::string, text::TokenBatchFacts>> all;
  for (const auto& [name, set] : token_sets_) all.emplace_back(name, set->facts(replicas));
  return all;
}

Steps LanguageTask::steps() const {
  Steps steps = options_.task == Task::kClassify ? text_classification(options_, model_)
                : options_.task == Task::kMlm    ? masked_steps(model_)
                                                 : next_token_steps(model_);
  if (!tokenizer_path_.empty())
    steps.files.emplace_back("tokenizer.json", base::value_or_throw(base::read_file(tokenizer_path_)));
  return steps;
}

}  // namespace sluice::train
