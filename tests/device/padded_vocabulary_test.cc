// A vocabulary that the axis `tensor` does not divide: the devices hold more rows than it has, and nothing
// that a program does shows them.
#include <map>
#include <sstream>

#include "sluice/device/capture/capture.h"
#include "sluice/device/sharding/shard.h"
#include "tests/device/dumped_programs.h"
#include "tests/device/mesh_support.h"

namespace sluice::tests::padded_vocabulary {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace nn = torch::nn;

constexpr int64_t kWords = 13, kWidth = 8, kTokens = 7, kBatch = 4;

// A table of words that is the head, too, or a head of its own with a bias.
struct SmallDecoderImpl : nn::Module {
  nn::Embedding words{nullptr};
  nn::Linear mixer{nullptr}, head{nullptr};

  explicit SmallDecoderImpl(bool tied) {
    words = register_module("words", nn::Embedding(kWords, kWidth));
    mixer = register_module("mixer", nn::Linear(kWidth, kWidth));
    if (!tied) head = register_module("head", nn::Linear(kWidth, kWords));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor x = words(ids), h = x + torch::tanh(mixer(x)).cumsum(1) / kTokens;
    return head ? head(h) : nn::functional::linear(h, words->weight);
  }
};
TORCH_MODULE(SmallDecoder);

const std::vector<ShardRule>& vocabulary_rules(bool tied) {
  static const std::vector<ShardRule> table = {{"words.weight", "tensor", 0, 0, /*padded=*/true}};
  static const std::vector<ShardRule> both = {{"words.weight", "tensor", 0, 0, /*padded=*/true},
                                              {"head.*", "tensor", 0, 0, /*padded=*/true}};
  return tied ? table : both;
}

// The bytes on the last device.
int64_t bytes_on_last_device(const torch::Tensor& tensor) {
  sync_and_wait();
  return static_cast<int64_t>(device::LazyStorage::of(tensor)->data->buffers.back().type().bytes());
}

struct Outcome {
  std::vector<double> losses;
  std::vector<torch::Tensor> values;  // the parameters, their gradients and their moments
};

// Trains for six steps of AdamW, on the same tokens in every second step. To clip gradients, the host reads
// their norm: a step is then two programs.
Outcome train_small(const std::string& mesh, bool tied, bool clips = true, const std::string& dump = "") {
  DeviceOptions options;
  options.dump = dump;
  open_mesh(mesh, options);
  torch::manual_seed(3);
  SmallDecoder model(tied);
  shard(*model, vocabulary_rules(tied));
  // A large epsilon: Adam divides a gradient by itself, which makes rounding errors of small ones large.
  torch::optim::AdamW optimizer(model->parameters(),
                                torch::optim::AdamWOptions(1e-2).eps(1e-3).weight_decay(0.1));
  Outcome run;
  for (int step = 0; step < 6; ++step) {
    const torch::Tensor rows = torch::arange(kBatch).unsqueeze(1) * 5 + step % 2 * 3;
    const torch::Tensor ids = (rows + torch::arange(kTokens + 1) * (step % 2 + 2)).remainder(kWords);
    const torch::Tensor x = shard_batch(ids.slice(1, 0, kTokens)), y = shard_batch(ids.slice(1, 1));
    optimizer.zero_grad();
    const torch::Tensor loss = nn::functional::cross_entropy(model->forward(x).flatten(0, 1), y.flatten());
    loss.backward();
    if (clips) nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    sync();
    run.losses.push_back(loss.item<double>());
  }
  for (const torch::Tensor& parameter : model->parameters()) {
    const auto& state = static_cast<const torch::optim::AdamWParamState&>(
        *optimizer.state().at(parameter.unsafeGetTensorImpl()));
    for (const torch::Tensor& value : {parameter, parameter.grad(), state.exp_avg(), state.exp_avg_sq()}) {
      EXPECT_EQ(layout_of(value).str(), layout_of(parameter).str());
      if (mesh == "tensor=4" && value.sizes() == at::IntArrayRef({kWords, kWidth})) {
        EXPECT_EQ(bytes_on_last_device(value), 16 / 4 * kWidth * 4);
      }
      run.values.push_back(value.detach().cpu());
    }
  }
  return run;
}

class PaddedVocabulary : public MeshTest {};

TEST_F(PaddedVocabulary, TrainsAsOneDevice) {
  for (const bool tied : {true, false}) {
    const Outcome one = train_small("fsdp=1", tied);
    EXPECT_LT(one.losses[4], one.losses[0]);
    for (const char* mesh : {"tensor=4", "fsdp=2,tensor=2"}) {
      SCOPED_TRACE(testing::Message() << mesh << (tied ? ", tied" : ", a head of its own"));
      const Outcome found = train_small(mesh, tied);
      EXPECT_LT(relative_error(torch::tensor(found.losses), torch::tensor(one.losses)), 1e-5);
      ASSERT_EQ(found.values.size(), one.values.size());
      for (size_t i = 0; i < one.values.size(); ++i)
        EXPECT_LT(relative_error(found.values[i], one.values[i]), 1e-5) << "value " << i;
    }
  }
}

// The step's program has no value of 13 rows or columns: not of the table, and not of the scores. Three
// values are replaced for each parameter, in the memory of the old ones.
TEST_F(PaddedVocabulary, NoValueOfAStepIsCut) {
  const base::TemporaryDirectory folder = base::value_or_throw(base::TemporaryDirectory::create());
  train_small("tensor=4", true, /*clips=*/false, folder.path());
  std::map<std::string, std::string> steps;  // by their files' names, which are numbered
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::string text = base::value_or_throw(base::read_file(file.path()));
    if (count_of("stablehlo.dot_general", text) > 0) steps[file.path().filename()] = std::move(text);
  }
  ASSERT_FALSE(steps.empty());
  const std::string& step = steps.rbegin()->second;
  EXPECT_THAT(step, HasSubstr("tensor<16x8xf32> {tf.aliasing_output"));
  EXPECT_THAT(step, HasSubstr("tensor<28x16xf32>"));
  EXPECT_THAT(step, Not(HasSubstr("tensor<13x")));
  EXPECT_THAT(step, Not(HasSubstr("x13xf32>")));
  EXPECT_EQ(count_of("tf.aliasing_output", step), 3u * 3);
}

TEST_F(PaddedVocabulary, EverythingThatReadsSeesTheWordsAlone) {
  open_mesh("tensor=4");
  const torch::Tensor host = ramp({kWords, kWidth});
  const torch::Tensor table = shard(host, Layout({{{"tensor"}, 0, /*padded=*/true}, {}}));
  EXPECT_EQ(layout_of(table).str(), "[tensor padded, -]");
  EXPECT_EQ(table.sizes(), host.sizes());
  EXPECT_EQ(bytes_on_last_device(table), 4 * kWidth * 4);
  EXPECT_TRUE(torch::equal(table.cpu(), host));
  EXPECT_TRUE(torch::equal(fetch(table).get().at(0), host));
  EXPECT_TRUE(torch::equal(table.t().slice(1, 11).cpu(), host.t().slice(1, 11)));
  EXPECT_EQ(table[12][2].item<float>(), host[12][2].item<float>());
  std::stringstream printed, wanted, file;
  printed << table.cpu();
  wanted << host;
  EXPECT_EQ(printed.str(), wanted.str());
  torch::save(table, file);
  torch::Tensor loaded;
  torch::load(loaded, file);
  EXPECT_TRUE(torch::equal(loaded.cpu(), host));
  // What reduces, orders or compares over the words: exp and cos make numbers of the padding's zeros.
  const auto reads = [](const torch::Tensor& t) {
    return std::vector<torch::Tensor>{t.exp().sum(),
                                      t.cos().mean(0),
                                      t.sub(10).amax(0),
                                      t.add(10).amin(0),
                                      t.add(1).prod(0),
                                      t.argmin(0),
                                      std::get<0>(t.sort(0)),
                                      t.softmax(0),
                                      t.cumsum(0),
                                      t.flip(0),
                                      torch::cat({t, t}),
                                      t.reshape({-1}),
                                      t.t().matmul(t),
                                      t.log().nan_to_num(7),
                                      t.index_select(0, torch::tensor({12, 0}).to(t.device())),
                                      t.eq(t).all(),
                                      t.norm()};
  };
  expect_same(reads(table), reads(host), 1e-5);
  // Writes keep the layout, and the padding stays 0.
  torch::Tensor changed = host.clone();
  const auto write = [](torch::Tensor& t) {
    t.mul_(2).add_(1);
    t.slice(0, 11).sub_(3);
    t.index_add_(0, torch::tensor({12, 1}).to(t.device()), torch::ones({2, kWidth}).to(t.device()));
  };
  torch::Tensor written = table;
  write(written);
  write(changed);
  EXPECT_EQ(layout_of(written).str(), "[tensor padded, -]");
  EXPECT_TRUE(torch::equal(written.cpu(), changed));
  const auto& buffers = (sync_and_wait(), device::LazyStorage::of(written)->data->buffers);
  std::vector<float> last(static_cast<size_t>(4 * kWidth));
  base::value_or_throw(buffers.back().read(last.data(), last.size() * sizeof(float)));
  EXPECT_EQ(std::vector<float>(last.begin() + kWidth, last.end()), std::vector<float>(3 * kWidth, 0));
  written.copy_(host);
  EXPECT_EQ(layout_of(written).str(), "[tensor padded, -]");
  EXPECT_TRUE(torch::equal(written.cpu(), host));
}

TEST_F(PaddedVocabulary, CapturedSteps) {
  open_mesh("tensor=4");
  const torch::Tensor host = ramp({kWords, kWidth});
  const torch::Tensor table = shard(host, Layout({{{"tensor"}, 0, /*padded=*/true}, {}}));
  auto step = capture([&](torch::Tensor ids) {
    table.mul_(0.5);
    return table.index_select(0, ids).sum();
  });
  torch::Tensor wanted = host.clone();
  for (int i = 0; i < 6; ++i) {
    const torch::Tensor ids = torch::tensor({12, i, 3, 7});
    const torch::Tensor sum = step(shard_batch(ids));
    wanted.mul_(0.5);
    EXPECT_NEAR(sum.item<double>(), wanted.index_select(0, ids).sum().item<double>(), 1e-5);
  }
  EXPECT_GT(step.captured().replays(), 0);
  EXPECT_TRUE(torch::equal(table.cpu(), wanted));
}

TEST_F(PaddedVocabulary, WhatIsNotPaddedIsRefused) {
  open_mesh("tensor=4");
  EXPECT_THAT(
      thrown([] {
        shard(torch::ones({kWords, kWidth}), Layout::along(2, 0, {"tensor"}));
      }),
      HasSubstr("dimension 0 of [13, 8] has 13 elements, which the 4 devices along tensor do not divide: "
                "lay out another dimension, or pad this one (LayoutDim::padded)"));
  EXPECT_THAT(thrown([] {
                shard(torch::ones({0, kWidth}), Layout({{{"tensor"}, 0, /*padded=*/true}, {}}));
              }),
              HasSubstr("has 0 elements"));
  SmallDecoder model(true);
  EXPECT_THAT(thrown([&] {
                shard(*model, {{"words.weight", "tensor", 0}});
              }),
              HasSubstr("tensor=4 does not divide the 13 elements along dimension 0 of [13, 8]"));
}

}  // namespace
}  // namespace sluice::tests::padded_vocabulary
