// Trainings of language models: packed, accumulated and resumed against plain ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "sluice/base/text/quantity.h"
#include "sluice/data/order/length_buckets.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/train/language/language_steps.h"
#include "sluice/train/testing/language_training.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

using text::RowKind;

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

// A model over a mesh is made without values; it starts, from numbers or from weights, and is resumed as on
// one device.
TEST_P(Language, AMeshStartsAsOneDeviceDoes) {
  if (GetParam() == DeviceKind::kCpu) GTEST_SKIP() << "LibTorch's CPU has no mesh";
  const auto trained = [&](const std::string& run, const std::string& mesh, const auto& change) {
    TrainOptions given = options("llama-tiny");
    given.optimizer = OptimizerKind::kSgd;
    given.betas.clear();
    given.length = 16;
    given.max_steps = 2;
    given.mesh = Mesh::parse(mesh);
    given.devices = mesh.empty() ? 1 : 4;
    given.logdir = folder_.path(run);
    change(given);
    if (is_initialized()) shutdown();
    quietly([&] { return train(given); });
    return weights(given.logdir + "/last");
  };
  const auto same = [](TrainOptions&) {};
  EXPECT_LT(difference(trained("one", "", same), trained("four", "data=2,fsdp=2", same)), 1e-5);
  const auto from_weights = [&](TrainOptions& given) {
    given.model.clear();
    given.weights = folder_.path("one/last");
  };
  EXPECT_LT(difference(trained("one-on", "", from_weights), trained("four-on", "fsdp=4", from_weights)),
            1e-5);
  const auto resumed = [](TrainOptions& given) {
    given.resume.from_last = true;
    given.max_steps = 4;
  };
  EXPECT_LT(difference(trained("one", "", resumed), trained("four", "fsdp=4", resumed)), 1e-5);
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
