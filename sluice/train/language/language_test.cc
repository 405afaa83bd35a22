// Trainings of language models: against the definition, and packed, accumulated and resumed against plain
// ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/quantity.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/text/test_tokens.h"
#include "sluice/train/language/language_steps.h"
#include "sluice/train/language/token_loss.h"
#include "sluice/train/trainer.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;
using text::RowKind;

std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

models::LanguageModelPtr tiny(const std::string& preset) {
  torch::manual_seed(3);
  return models::language_model(models::language_preset(preset));
}

class Language : public testing::TestWithParam<DeviceKind> {
 protected:
  Language() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    // Sentences of a few words, each of which is followed by few others.
    base::Random random({11});
    std::vector<std::vector<std::uint32_t>> documents(120);
    for (auto& document : documents) {
      std::uint32_t word = static_cast<std::uint32_t>(5 + random.below(20));
      for (std::uint64_t i = 2 + random.below(13); i > 0; --i) {
        document.push_back(word);
        word = 5 + (word * 7 + static_cast<std::uint32_t>(random.below(2))) % 100;
      }
    }
    text::test::token_file(folder_.path("train-0000"), documents);
    base::value_or_throw(
        base::write_file_atomically(folder_.path("train.json"), "{\"vocabulary_size\": 128}"));
    base::value_or_throw(base::write_file_atomically(folder_.path("tokenizer.json"), tokenizer()));
  }
  ~Language() override {
    if (is_initialized()) shutdown();
  }

  static std::string tokenizer() {
    nlohmann::json vocabulary, added = nlohmann::json::array();
    for (int i = 0; i < 128; ++i) vocabulary["w" + std::to_string(i)] = i;
    const char* const special[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
    for (int i = 0; i < 5; ++i) {
      vocabulary.erase("w" + std::to_string(i));
      vocabulary[special[i]] = i;
      added.push_back({{"id", i},
                       {"content", special[i]},
                       {"special", true},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
    }
    const nlohmann::json json = {{"added_tokens", added},
                                 {"model",
                                  {{"type", "WordPiece"},
                                   {"vocab", vocabulary},
                                   {"unk_token", "<unk>"},
                                   {"continuing_subword_prefix", "##"},
                                   {"max_input_chars_per_word", 100}}},
                                 {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}};
    return json.dump();
  }

  TrainOptions options(const std::string& model, Task task = Task::kClm) const {
    TrainOptions options;
    options.task = task;
    set_language_recipe(options);
    options.model = model;
    options.train = options.test = folder_.path("train-*.bin");
    options.device = GetParam();
    options.plugin = "cpu";
    options.log_steps = 1;
    options.lr = 3e-3;
    options.logdir = folder_.path("run");
    return options;
  }
  text::TokenSet set() const { return text::TokenSet::open(folder_.path("train-*.bin")); }
  static TrainResult quietly(const std::function<TrainResult()>& work, std::string* printed = nullptr) {
    testing::internal::CaptureStdout();
    try {
      const TrainResult result = work();
      const std::string text = testing::internal::GetCapturedStdout();
      if (printed != nullptr) *printed = text;
      return result;
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
  }
  static sessions::NamedTensors weights(const std::string& folder) {
    return base::value_or_throw(sessions::read_checkpoint(folder)).model;
  }
  static double difference(const sessions::NamedTensors& a, const sessions::NamedTensors& b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      largest = std::max(largest, (a[i].second - b[i].second).abs().max().item<double>());
    return largest;
  }

  base::TemporaryDirectory folder_;
};

struct Places {
  int64_t count;
  std::vector<int64_t> most;  // logits of a part
};

void compare_parts(const torch::Device& device, const std::string& preset, const Places& places) {
  const auto model = tiny(preset);
  model->to(device);
  torch::manual_seed(8);
  const torch::Tensor host = torch::randn({places.count, 32});
  torch::Tensor targets = torch::randint(0, 128, {places.count}, torch::kLong);
  targets.slice(0, 5, 9).fill_(kNoTarget);
  targets = targets.to(device);
  std::vector<std::vector<torch::Tensor>> found;
  for (const int64_t most : places.most) {
    torch::Tensor states = host.to(device).requires_grad_();
    model->zero_grad();
    const TokenLoss loss = token_loss(*model, states, targets, most);
    (2.5 * loss.sum).backward();
    std::vector<torch::Tensor> values = {loss.sum.detach(), loss.count, loss.answers, states.grad(),
                                         model->head().weight.grad()};
    if (model->head().bias.defined()) values.push_back(model->head().bias.grad());
    for (auto& value : values) value = value.cpu();
    found.push_back(values);
  }
  EXPECT_EQ(found[0][1].item<int64_t>(), places.count - 4);
  for (size_t i = 1; i < found.size(); ++i)
    for (size_t j = 0; j < found[0].size(); ++j)
      EXPECT_TRUE(torch::allclose(found[i][j], found[0][j], 1e-5, 1e-5)) << preset << " " << i << " " << j;
}

TEST_P(Language, TheLossInPartsIsThatOfAllLogits) {
  for (const bool kernels : {true, false}) {  // without them as on a TPU
    if (!kernels && GetParam() == DeviceKind::kCpu) continue;
    if (is_initialized()) shutdown();
    Options start_options;
    start_options.device = name_of(GetParam());
    start_options.xla.plugin = "cpu";
    start_options.xla.cpu_kernels = kernels;
    Session session = start(start_options);
    for (const char* const preset : {"gpt2-tiny", "llama-tiny", "roberta-tiny"})
      compare_parts(session.device(), preset, {37, {0, int64_t{5} * 128, 128, int64_t{36} * 128}});
    // 300 places in two parts: of 150 or, without kernels, of 256 and 44.
    compare_parts(session.device(), "gpt2-tiny", {300, {0, int64_t{150} * 128}});
  }
}

TEST_P(Language, ATargetThatIsNoTokenIsAnError) {
  Options start_options;
  start_options.device = name_of(GetParam());
  start_options.xla.plugin = "cpu";
  Session session = start(start_options);
  const auto model = tiny("gpt2-tiny");
  model->to(session.device());
  for (const int64_t most : {0, 128})
    for (const int64_t target : {128, -1}) {
      const torch::Tensor targets = torch::tensor({int64_t{3}, kNoTarget, target}).to(session.device());
      EXPECT_THROW(
          token_loss(*model, torch::randn({3, 32}).to(session.device()), targets, most).sum.item<float>(),
          std::exception)
          << most << " " << target;
    }
}

// The definition, by hand, of each kind of row.
TEST_P(Language, TheLossIsThatOfEachNextToken) {
  TrainOptions given = options("gpt2-tiny");
  const auto model = tiny("gpt2-tiny");
  model->eval();
  double sum = 0;
  int64_t count = 0;
  {
    torch::NoGradGuard no_grad;
    const text::TokenSet all = set();
    for (std::size_t i = 0; i < all.documents(); ++i) {
      const auto ids = all.document(i);
      const torch::Tensor row = torch::tensor(std::vector<int64_t>(ids.begin(), ids.end())).unsqueeze(0);
      const torch::Tensor logits = model->forward(row)[0].slice(0, 0, -1);
      sum += torch::nn::functional::cross_entropy(
                 logits, row[0].slice(0, 1),
                 torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                 .item<double>();
      count += row.size(1) - 1;
    }
  }
  for (const RowKind kind : {RowKind::kDocuments, RowKind::kPacked}) {
    text::TokenBatchOptions batches{.kind = kind, .shapes = {{16, 16}}, .next_token = true, .pad = true};
    if (kind == RowKind::kDocuments) batches.shapes = {{16, 16}, {32, 8}};
    if (kind == RowKind::kPacked) batches.shapes = {{4, 48}};
    if (is_initialized()) shutdown();
    Trainer trainer(given, Sets(std::make_shared<text::TokenBatches>(set(), batches),
                                std::make_shared<text::TokenBatches>(set(), batches)));
    const metrics::Values values = trainer.validate(*model, next_token_steps(model));
    EXPECT_NEAR(values["loss"], sum / static_cast<double>(count), 1e-5);
    EXPECT_EQ(values.value("loss").count, count);
    EXPECT_NEAR(values["perplexity"], std::exp(values["loss"]), 1e-9);
    model->to(torch::kCPU);
  }
}

// The definition, by hand, for what the batches hide.
TEST_P(Language, TheLossIsThatOfEachHiddenToken) {
  const auto model = tiny("roberta-tiny");
  model->eval();
  text::TokenBatchOptions batches{
      .kind = RowKind::kDocuments, .shapes = {{16, 18}}, .begin = 0, .end = 2, .padding = 1, .pad = true};
  batches.masking = text::MaskingOptions{.mask = 4, .vocabulary = 128, .never = {0, 1, 2, 3, 4}};
  double sum = 0;
  int64_t count = 0, right = 0;
  {
    torch::NoGradGuard no_grad;
    const auto numbers = [](const data::Batch& batch, size_t column) {
      const data::Array& array = batch.columns[column].array;
      return torch::from_blob(const_cast<int64_t*>(array.data<int64_t>()), array.shape(), torch::kLong);
    };
    const auto stream = text::TokenBatches(set(), batches).open({});
    while (const auto batch = stream->next()) {
      const torch::Tensor ids = numbers(*batch, 0), places = numbers(*batch, 2), targets = numbers(*batch, 3);
      const torch::Tensor logits = model->forward(ids, ids.ne(1));
      for (int64_t row = 0; row < ids.size(0); ++row)
        for (int64_t i = 0; i < targets.size(1); ++i) {
          const auto target = targets[row][i].item<int64_t>();
          if (target == kNoTarget) continue;
          const torch::Tensor scores = logits[row][places[row][i].item<int64_t>()];
          sum -= scores.log_softmax(0)[target].item<double>();
          right += scores.argmax().item<int64_t>() == target ? 1 : 0;
          ++count;
        }
    }
  }
  Trainer trainer(options("roberta-tiny", Task::kMlm),
                  Sets(std::make_shared<text::TokenBatches>(set(), batches),
                       std::make_shared<text::TokenBatches>(set(), batches)));
  const metrics::Values values = trainer.validate(*model, masked_steps(model));
  EXPECT_GT(count, 120);
  EXPECT_EQ(values.value("loss").count, count);
  EXPECT_NEAR(values["loss"], sum / static_cast<double>(count), 1e-5);
  EXPECT_NEAR(values["accuracy"], static_cast<double>(right) / static_cast<double>(count), 1e-6);
}

// Batches whose rows have other numbers of tokens.
TEST_P(Language, AccumulatedBatchesAreOneLargeBatch) {
  std::vector<sessions::NamedTensors> found;
  for (const int64_t accumulate : {1, 4}) {
    TrainOptions given = options("gpt2-tiny");
    given.optimizer = OptimizerKind::kSgd;
    given.betas.clear();
    given.momentum = 0.9;
    given.lr = 0.1;
    given.accumulate = accumulate;
    given.shapes = {{24 / accumulate, 16}};  // 120 rows: whole updates either way
    given.epochs = 2;
    given.logdir = folder_.path(std::to_string(accumulate));
    if (is_initialized()) shutdown();
    EXPECT_EQ(quietly([&] { return train(given); }).steps, 10);
    found.push_back(weights(given.logdir + "/last"));
  }
  EXPECT_LT(difference(found[0], found[1]), 1e-5);
}

TEST_P(Language, PackedRowsTrainAsUnpackedOnes) {
  std::vector<std::map<std::string, torch::Tensor>> found;
  Options start_options;
  start_options.device = name_of(GetParam());
  start_options.xla.plugin = "cpu";
  Session session = start(start_options);
  for (const RowKind kind : {RowKind::kDocuments, RowKind::kPacked}) {
    const auto model = tiny("llama-tiny");
    model->to(session.device());
    const bool packed = kind == RowKind::kPacked;
    const text::TokenBatches batches(
        set(), {.kind = kind,
                .shapes = {packed ? data::LengthShape{20, 64} : data::LengthShape{120, 16}},
                .next_token = true,
                .pad = true});
    int64_t seen = 0;
    for (Batch& batch : session.feed(batches)) {
      ++seen;
      const StepOutput output = next_token_steps(model).training_step(batch);
      output.loss.backward();
      auto& values = found.emplace_back();
      values["loss"] = output.loss.detach().cpu();
      values["weight"] = output.weight.cpu();
      for (const auto& item : model->named_parameters()) values[item.key()] = item.value().grad().cpu();
    }
    ASSERT_EQ(seen, 1);
  }
  for (const auto& [name, value] : found[0])
    EXPECT_TRUE(torch::allclose(value.to(torch::kFloat), found[1][name].to(torch::kFloat), 1e-4, 1e-6))
        << name;
}

TEST_P(Language, LearnsAndItsCheckpointIsAModelOfTransformers) {
  TrainOptions given = options("llama-tiny");
  given.length = 16;
  given.epochs = 10;
  given.lr = 1e-2;
  std::string printed;
  const TrainResult result = quietly([&] { return train(given); }, &printed);
  EXPECT_THAT(printed, HasSubstr("train: 120 documents with "));
  EXPECT_THAT(printed, HasSubstr(", Perplexity="));
  ASSERT_TRUE(result.best.has_value());
  EXPECT_LT(*result.best, 3.9);  // ln 128 is 4.85
  EXPECT_EQ(base::value_or_throw(base::read_file(given.logdir + "/best/tokenizer.json")), tokenizer());
  const auto model = load_pretrained(given.logdir + "/best");
  EXPECT_EQ(model->options().vocabulary, 128);
  EXPECT_EQ(model->options().end, std::vector<int64_t>{2});
  // Trained further from there: what it knew it still knows.
  TrainOptions further = given;
  further.model = "";
  further.weights = given.logdir + "/best";
  further.logdir = folder_.path("further");
  further.epochs = 1;
  further.lr = 1e-6;
  if (is_initialized()) shutdown();
  EXPECT_NEAR(quietly([&] { return train(further); }).best.value_or(9), *result.best, 1e-3);
}

TEST_P(Language, AResumedRunGoesOnBitForBit) {
  const bool xla = GetParam() == DeviceKind::kXla;  // where programs take their time
  for (const Task task : {Task::kMlm, Task::kClm}) {
    if (xla && task == Task::kMlm) continue;
    TrainOptions given = options(task == Task::kClm ? "gpt2-tiny" : "roberta-tiny", task);
    given.shapes = data::parse_shapes(xla ? "16x18" : "8x18,16x9");
    given.lr_schedule = LrSchedule::kConstant;
    given.epochs = 3;
    given.max_steps = 12;
    given.logdir = folder_.path(base::str(name_of(task), "-whole"));
    if (is_initialized()) shutdown();
    quietly([&] { return train(given); });
    TrainOptions parts = given;
    parts.logdir = folder_.path(base::str(name_of(task), "-parts"));
    for (const int64_t steps : {5, 12}) {
      parts.max_steps = steps;
      if (is_initialized()) shutdown();
      quietly([&] { return train(parts); });
      parts.resume.from_last = true;
    }
    EXPECT_EQ(difference(weights(given.logdir + "/last"), weights(parts.logdir + "/last")), 0)
        << name_of(task);
  }
}

// Counted in the batches themselves, in which epochs have other numbers of tokens.
TEST_P(Language, EndsWithTheUpdateThatReachesItsTokens) {
  TrainOptions given = options("gpt2-tiny");
  given.shapes = data::parse_shapes(GetParam() == DeviceKind::kXla ? "8x16" : "4x16,8x9");
  given.accumulate = 2;
  given.epochs = 4;
  given.log_steps = 100;
  text::TokenBatchOptions rows{
      .kind = RowKind::kDocuments, .shapes = given.shapes, .next_token = true, .seed = given.seed};
  std::vector<std::uint64_t> updates, epochs;  // tokens so far, behind each
  std::uint64_t seen = 0;
  for (int64_t epoch = 0; epoch < given.epochs; ++epoch) {
    const auto stream = text::TokenBatches(set(), rows).open({.epoch = epoch});
    std::uint64_t batch_tokens = 0;
    for (int64_t i = 1; const auto batch = stream->next(); ++i) {
      const data::Array& lengths = batch->columns[1].array;
      batch_tokens += std::accumulate(lengths.data<int64_t>(), lengths.data<int64_t>() + lengths.elements(),
                                      std::uint64_t{0});
      if (i % given.accumulate != 0) continue;
      updates.push_back(seen += std::exchange(batch_tokens, 0));
    }
    if (batch_tokens > 0) updates.push_back(seen += batch_tokens);  // the batches that are left
    epochs.push_back(seen);
  }
  const auto stop =
      static_cast<size_t>(std::find(updates.begin(), updates.end(), epochs[1]) - updates.begin()) + 3;
  given.max_tokens = static_cast<int64_t>(updates[stop]);
  given.logdir = folder_.path("tokens");
  std::string printed;
  EXPECT_EQ(quietly([&] { return train(given); }, &printed).steps, static_cast<int64_t>(stop) + 1);
  EXPECT_THAT(printed, HasSubstr(base::str("Epoch 1 took ", base::grouped(static_cast<int64_t>(epochs[0])),
                                           " tokens")));
  for (const std::uint64_t all : {epochs[0], epochs[1], updates[stop]})
    EXPECT_THAT(printed,
                HasSubstr(base::str("the run ", base::grouped(static_cast<int64_t>(all)), " so far.")));
  const std::string table = base::value_or_throw(base::read_file(given.logdir + "/metrics.csv"));
  EXPECT_THAT(table, HasSubstr(",tokens_seen"));
  EXPECT_THAT(table, HasSubstr(base::str(",", epochs[1], ",")));

  // As one that is told its updates, by which its schedule ends, and as one that is stopped in between.
  TrainOptions steps = given;
  steps.max_tokens = 0;
  steps.max_steps = static_cast<int64_t>(stop) + 1;
  steps.logdir = folder_.path("steps");
  if (is_initialized()) shutdown();
  quietly([&] { return train(steps); });
  EXPECT_EQ(difference(weights(given.logdir + "/last"), weights(steps.logdir + "/last")), 0);
  TrainOptions parts = given;
  parts.logdir = folder_.path("parts");
  parts.lr_schedule = given.lr_schedule = LrSchedule::kConstant;
  parts.max_tokens = static_cast<int64_t>(updates[stop - 4]) - 1;
  if (is_initialized()) shutdown();
  EXPECT_EQ(quietly([&] { return train(parts); }).steps, static_cast<int64_t>(stop) - 3);
  parts.max_tokens = given.max_tokens;
  parts.resume.from_last = true;
  if (is_initialized()) shutdown();
  EXPECT_EQ(quietly([&] { return train(parts); }, &printed).steps, static_cast<int64_t>(stop) + 1);
  EXPECT_THAT(printed, HasSubstr(base::str("the run ", base::grouped(static_cast<int64_t>(updates[stop])),
                                           " so far.")));

  given.max_tokens = static_cast<int64_t>(seen) + 1;
  if (is_initialized()) shutdown();
  EXPECT_THAT(message([&] { quietly([&] { return train(given); }); }),
              HasSubstr(base::str("the run of 4 epochs ends after ", seen, "; choose more --epochs")));

  // Warm-up and decay by tokens are those by the updates that reach them.
  TrainOptions counted = steps;
  counted.lr_schedule = LrSchedule::kWsd;
  counted.warmup_epochs = -1;
  counted.warmup_steps = 3;
  counted.decay_steps = 2;
  counted.logdir = folder_.path("counted");
  if (is_initialized()) shutdown();
  quietly([&] { return train(counted); });
  TrainOptions weighed = counted;
  weighed.warmup_steps = weighed.decay_steps = 0;
  weighed.warmup_tokens = static_cast<int64_t>(updates[1]) + 1;
  weighed.decay_tokens = static_cast<int64_t>(updates[stop] - updates[stop - 2]);
  weighed.logdir = folder_.path("weighed");
  if (is_initialized()) shutdown();
  quietly([&] { return train(weighed); });
  EXPECT_EQ(difference(weights(counted.logdir + "/last"), weights(weighed.logdir + "/last")), 0);
  EXPECT_NE(difference(weights(counted.logdir + "/last"), weights(steps.logdir + "/last")), 0);

  weighed.warmup_tokens = static_cast<int64_t>(updates[stop]) + 1;
  if (is_initialized()) shutdown();
  EXPECT_THAT(message([&] { quietly([&] { return train(weighed); }); }),
              HasSubstr(base::str("--warmup-tokens ", weighed.warmup_tokens, " is more than the ",
                                  updates[stop], " tokens of the whole run")));
  weighed.warmup_steps = 3;
  EXPECT_THAT(message([&] { train(weighed); }),
              HasSubstr("--warmup-epochs, --warmup-steps and --warmup-tokens say how long the warm-up is"));
}

TEST_P(Language, MaskedRowsOfThreeShapesHaveThreePrograms) {
  TrainOptions given = options("roberta-tiny", Task::kMlm);
  given.test.clear();
  given.shapes = {{8, 18}, {12, 12}, {16, 8}};
  given.epochs = 2;
  given.strict = GetParam() == DeviceKind::kXla ? std::optional(true) : std::nullopt;
  reset_metrics();
  const Counters before = counters();
  const TrainResult result = quietly([&] { return train(given); });
  EXPECT_LT(result.loss, 5);
  if (GetParam() == DeviceKind::kCpu) return;
  EXPECT_EQ(counters().programs - before.programs, 3) << metrics_report();
  EXPECT_EQ(counters().fallbacks - before.fallbacks, 0);
  EXPECT_THAT(metrics_report(), testing::Not(HasSubstr("recompiles after")));
}

TEST_P(Language, StepsOfAProgramOfOnesOwn) {
  TrainOptions options = this->options("");
  options.epochs = 2;
  const std::string folder = folder_.path();
  testing::internal::CaptureStdout();
  // [steps]
  const models::LanguageModelPtr model = models::language_model(models::language_preset("gpt2-tiny"));
  const text::TokenBatches train(text::TokenSet::open(folder + "/train-*.bin"),
                                 {.shapes = {{8, 32}}, .next_token = true});
  const text::TokenBatches test(text::TokenSet::open(folder + "/train-*.bin"),
                                {.shapes = {{8, 32}}, .next_token = true, .pad = true});
  Trainer trainer(options, {train, test});
  const TrainResult result = trainer.fit(*model, next_token_steps(model));
  // [end]
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(load_pretrained(options.logdir + "/last")->options().vocabulary, 128);
}

TEST_P(Language, RecomputedLayersTrainAlike) {
  std::vector<sessions::NamedTensors> found;
  for (const bool recompute : {false, true}) {
    TrainOptions given = options("gpt2-tiny");
    given.length = 16;
    given.max_steps = 3;
    given.recompute = recompute;
    given.logdir = folder_.path(recompute ? "again" : "kept");
    if (is_initialized()) shutdown();
    quietly([&] { return train(given); });
    found.push_back(weights(given.logdir + "/last"));
  }
  EXPECT_LT(difference(found[0], found[1]), 1e-5);
}

TEST_P(Language, SaysWhatIsWrong) {
  const auto error_of = [&](const std::function<void(TrainOptions&)>& change, Task task = Task::kClm) {
    TrainOptions given = options(task == Task::kClm ? "gpt2-tiny" : "roberta-tiny", task);
    change(given);
    if (is_initialized()) shutdown();
    return message([&] { quietly([&] { return train(given); }); });
  };
  EXPECT_THAT(error_of([](auto& o) { o.model = "gpt2-tny"; }), HasSubstr("did you mean \"gpt2-tiny\"?"));
  EXPECT_THAT(error_of([](auto& o) { o.model = ""; }), HasSubstr("the model is missing"));
  EXPECT_THAT(error_of([](auto& o) { o.model = "roberta-tiny"; }), HasSubstr("train it with masked_steps"));
  EXPECT_THAT(error_of([](auto& o) { o.task = Task::kImages; }), HasSubstr("gpt2-tiny is a language model"));
  EXPECT_THAT(error_of([](auto& o) {
                o.shapes = {{8, 8}};
              }),
              HasSubstr("choose a longer shape, or let long documents be split or cut"));
  EXPECT_THAT(error_of([](auto& o) {
                o.shapes = {{8, 8}};
                o.pack = true;
              }),
              HasSubstr("leave --length and --pack out"));
  EXPECT_THAT(error_of([](auto& o) { o.train = "nowhere-*.bin"; }), HasSubstr("nowhere-*.bin"));
  EXPECT_THAT(error_of([](auto& o) { o.train = ""; }), HasSubstr("no training data: give token files"));
  EXPECT_THAT(error_of([](auto& o) { o.mask_share = 0; }, Task::kMlm), HasSubstr("--mask-share"));
  const std::string config = folder_.path("config.json");
  models::LanguageOptions small = models::language_preset("gpt2-tiny");
  small.vocabulary = 60;
  base::value_or_throw(base::write_file_atomically(config, models::language_config(small)));
  EXPECT_THAT(error_of([&](auto& o) { o.model = config; }),
              HasSubstr("the model knows 60 tokens, and the data has ids up to 127"));
  base::value_or_throw(base::remove_file(folder_.path("train.json")));
  base::value_or_throw(base::remove_file(folder_.path("tokenizer.json")));
  EXPECT_THAT(error_of([&](auto& o) {
                o.model = config;
                o.length = 16;
              }),
              HasSubstr(" is not below the vocabulary's size 60"));
  EXPECT_THAT(error_of([](auto&) {}, Task::kMlm), HasSubstr("needs the tokenizer"));
}

INSTANTIATE_TEST_SUITE_P(Devices, Language, testing::Values(DeviceKind::kCpu, DeviceKind::kXla),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace sluice::train
