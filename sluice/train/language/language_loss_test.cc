// The loss of language models against its definition, and computed in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/train/language/language_steps.h"
#include "sluice/train/language/token_loss.h"
#include "sluice/train/testing/language_training.h"

namespace sluice::train {
namespace {

using testing::HasSubstr;

using text::RowKind;

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

}  // namespace
}  // namespace sluice::train
