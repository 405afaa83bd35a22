// The rows of the options: all of them, their order, and the settings and messages that are made from them.
#include "sluice/train/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "sluice/base/text/join.h"
#include "sluice/train/hyper_parameters.h"

namespace sluice::train {
namespace {

using testing::ElementsAre;

// What hyper_parameters() lists: "lr=0.1".
std::vector<std::string> settings(const TrainOptions& options) {
  std::vector<std::string> all;
  for (const auto& [name, value] : hyper_parameters(options, 256))
    std::visit([&, key = name](const auto& one) { all.push_back(base::str(key, "=", one)); }, value);
  return all;
}

const base::Flag& row(const std::vector<base::Flag>& rows, const std::string& name) {
  for (const base::Flag& one : rows)
    if (one.name == name) return one;
  throw std::runtime_error("there is no row " + name);
}

TEST(Recipe, HasOneRowForEachFlag) {
  TrainOptions options;
  const auto rows = option_rows(options);
  std::set<std::string> names;
  for (const base::Flag& one : rows) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.help.empty()) << one.name;
  }
  size_t of_sections = 0;
  for (const auto& section : option_sections(options)) of_sections += section.size();
  EXPECT_EQ(rows.size(), of_sections);
  // --help has one heading for each group.
  std::vector<std::string> groups;
  for (const base::Flag& one : rows)
    if (groups.empty() || groups.back() != one.group) groups.emplace_back(one.group);
  EXPECT_THAT(groups, ElementsAre("Recipe", "Data", "Text", "Machine", "Output"));
}

TEST(Recipe, RowsHoldTheOptionsAndTheirDefaults) {
  TrainOptions options;
  const auto rows = option_rows(options);
  EXPECT_EQ(base::value_text(row(rows, "--batch-size")), "128");
  EXPECT_EQ(base::value_text(row(rows, "--optimizer")), "sgd");
  EXPECT_EQ(base::value_text(row(rows, "--min-lr")), "0");
  std::get<base::ParsedText>(row(rows, "--max-time").value).take("1h30m");
  EXPECT_EQ(options.max_seconds, 5400);
  std::get<base::ParsedTexts>(row(rows, "--mix").value).take({"a.tar=0.7", "b=c.tar=2"});
  ASSERT_EQ(options.mix.size(), 2U);
  EXPECT_EQ(options.mix[1].shards, "b=c.tar");
  EXPECT_EQ(options.mix[1].amount, 2);
  std::get<base::ParsedTexts>(row(rows, "--test").value).take({"t.tar", "val=v.tar"});
  EXPECT_EQ(options.test, "t.tar");
  ASSERT_EQ(options.more_tests.size(), 1U);
  EXPECT_EQ(options.more_tests[0].name, "val");
}

TEST(Recipe, AListOfIdsWinsOverANumberOfDevices) {
  for (const bool ids_first : {true, false}) {
    TrainOptions options;
    const auto rows = option_rows(options);
    const auto read = [&](const char* flag, const char* text) {
      std::get<base::ParsedText>(row(rows, flag).value).take(text);
    };
    if (ids_first) read("--device-ids", "4,5,6");
    read("--devices", "2");
    if (!ids_first) read("--device-ids", "4,5,6");
    EXPECT_EQ(options.devices, 3);
    EXPECT_THAT(options.device_ids, ElementsAre(4, 5, 6));
  }
}

TEST(Recipe, SettingsComeInTheirOrder) {
  TrainOptions options;
  options.model = "mlp";
  EXPECT_THAT(settings(options), ElementsAre("model=mlp", "global_batch_size=256", "epochs=18",
                                             "optimizer=sgd", "lr=0.1", "momentum=0.9", "weight_decay=0.0001",
                                             "no_decay=0", "lr_schedule=cosine", "precision=f32", "seed=42"));
  options.task = Task::kClm;
  set_language_recipe(options);
  options.ema = 0.5;
  options.label_smoothing = 0.1;
  options.length = 128;
  options.max_tokens = 1000;
  EXPECT_THAT(settings(options),
              ElementsAre("task=clm", "model=mlp", "global_batch_size=256", "epochs=1", "max_tokens=1000",
                          "optimizer=adamw", "lr=0.0005", "beta1=0.9", "beta2=0.95", "weight_decay=0.1",
                          "no_decay=1", "lr_schedule=cosine", "warmup_epochs=0.1", "clip_norm=1",
                          "label_smoothing=0.1", "ema=0.5", "length=128", "precision=f32", "seed=42"));
}

TEST(Recipe, FlagsWithoutEffectAreNamed) {
  TrainOptions options;
  options.train = "a.tar";
  options.optimizer = OptimizerKind::kAdam;
  const auto message = [&](const std::set<std::string>& given) {
    return base::flags_without_effect(option_rows(options), given, given);
  };
  EXPECT_EQ(message({"--train", "--lr", "--optimizer"}), "");
  EXPECT_EQ(message({"--momentum", "--patience", "--texts"}),
            "--patience has no effect: there is no test set: give it with --test\n"
            "--momentum has no effect: --optimizer adam has no momentum\n"
            "--texts has no effect: it is for --task clm, mlm and classify");
  options.fake_data = true;
  EXPECT_EQ(message({"--flip", "--patience"}), "--flip has no effect: --fake-data reads no shards");
  options.task = Task::kMlm;
  EXPECT_EQ(message({"--flip", "--mask-share"}), "--flip has no effect: --task mlm has no images");
}

}  // namespace
}  // namespace sluice::train
