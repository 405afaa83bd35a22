// Trainings of tiny language models on a set of 120 documents: the helpers that their tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/models/language/language.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/text/test_tokens.h"
#include "sluice/train/trainer.h"

namespace sluice::train {

inline models::LanguageModelPtr tiny(const std::string& preset) {
  torch::manual_seed(3);
  return models::language_model(models::language_preset(preset));
}

// The suite is instantiated in language_test.cc, for the CPU and for the device of XLA.
class Language : public testing::TestWithParam<DeviceKind> {
 protected:
  Language() : folder_(base::value_or_throw(base::TemporaryDirectory::create())) {
    if (is_initialized()) shutdown();
    // Sentences of a few words; only few others follow a word.
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
  static std::string message(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
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

}  // namespace sluice::train
