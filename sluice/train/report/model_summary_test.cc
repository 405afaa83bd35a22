#include "sluice/train/report/model_summary.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::train {
namespace {

struct SummarizedBlockImpl : torch::nn::Module {
  SummarizedBlockImpl() {
    register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)));
    register_module("norm", torch::nn::BatchNorm2d(8));
  }
};
TORCH_MODULE(SummarizedBlock);

struct Summarized : torch::nn::Module {
  Summarized() {
    register_module("block", SummarizedBlock());
    register_module("table", torch::nn::Linear(8, 10));
    register_module("activation", torch::nn::ReLU());
    register_parameter("scale", torch::ones({5}), /*requires_grad=*/false);
  }
};

// The numbers of a table's row; the first cell tells which.
std::vector<std::string> row(const std::string& table, const std::string& first) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(first + " ")) continue;
    std::istringstream words(line.substr(first.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}
using Words = std::vector<std::string>;

TEST(ModelSummary, CountsWhatEachModuleHas) {
  const Summarized net;
  const std::string one = model_summary(net), two = model_summary(net, 2);
  EXPECT_EQ(row(one, "layer"), (Words{"type", "parameters", "trained", "memory"}));
  EXPECT_EQ(row(one, "block"), (Words{"SummarizedBlock", "240", "240", "960", "B"}));
  EXPECT_EQ(row(one, "block.conv"), Words());
  EXPECT_EQ(row(two, "block.conv"), (Words{"Conv2d", "224", "224", "896", "B"}));
  EXPECT_EQ(row(two, "block.norm"), (Words{"BatchNorm2d", "16", "16", "64", "B"}));
  EXPECT_EQ(row(one, "activation"), (Words{"ReLU", "0", "0", "0", "B"}));
  EXPECT_EQ(row(one, "(the model's own)"), (Words{"5", "0", "20", "B"}));
  EXPECT_EQ(row(one, "total"), (Words{"335", "330", "1.31", "KiB"}));
  EXPECT_EQ(row(model_summary(net, 0), "total"), row(one, "total"));
}

// Work stands by the longest name that fits; what belongs to no module, in a row of its own.
TEST(ModelSummary, SaysWhatEachModuleComputes) {
  const auto work = [](double forward, double backward, int64_t bytes) {
    return stablehlo::LayerWork{{.f32 = forward}, {.f32 = backward}, bytes};
  };
  stablehlo::Work all;
  all.layers = {{"block.conv", work(2e6, 4e6, 2048)},
                {"block.norm", work(0, 0, 1024)},
                {"blocks", work(1, 0, 0)},
                {"table", work(3e3, 6e3, 512)},
                {"", work(0, 0, 256)}};
  const std::string one = model_summary(Summarized(), 1, all), two = model_summary(Summarized(), 2, all);
  EXPECT_EQ(row(one, "layer"),
            (Words{"type", "parameters", "trained", "memory", "forward", "backward", "values"}));
  EXPECT_EQ(row(one, "block"),
            (Words{"SummarizedBlock", "240", "240", "960", "B", "2", "MFLOP", "4", "MFLOP", "3", "KiB"}));
  EXPECT_EQ(row(two, "block.norm"),
            (Words{"BatchNorm2d", "16", "16", "64", "B", "0", "FLOP", "0", "FLOP", "1", "KiB"}));
  EXPECT_EQ(row(one, "table"),
            (Words{"Linear", "90", "90", "360", "B", "3", "kFLOP", "6", "kFLOP", "512", "B"}));
  EXPECT_EQ(row(one, "(no layer)"), (Words{"1", "FLOP", "0", "FLOP", "256", "B"}));
  EXPECT_EQ(row(one, "total"),
            (Words{"335", "330", "1.31", "KiB", "2", "MFLOP", "4.01", "MFLOP", "3.75", "KiB"}));
  all.layers["table"].forward.loops = 1;
  EXPECT_EQ(row(model_summary(Summarized(), 1, all), "table")[5], ">");
}

// A head that is tied to a table counts once.
TEST(ModelSummary, CountsSharedParametersOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      const auto weight = torch::ones({10, 8}, torch::requires_grad());
      auto table = std::make_shared<torch::nn::Module>("Table"),
           head = std::make_shared<torch::nn::Module>("Head");
      table->register_parameter("weight", weight);
      head->register_parameter("weight", weight);
      register_module("table", table);
      register_module("head", head);
    }
  };
  const std::string table = model_summary(Tied());
  EXPECT_EQ(row(table, "table"), (Words{"Table", "80", "80", "320", "B"}));
  EXPECT_EQ(row(table, "head"), (Words{"Head", "0", "0", "0", "B"}));
  EXPECT_EQ(row(table, "total"), (Words{"80", "80", "320", "B"}));
}

}  // namespace
}  // namespace sluice::train
