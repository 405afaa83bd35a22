#include "sluice/session/files/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/session/files/checkpoint_writer.h"
#include "sluice/session/files/save.h"
#include "sluice/session/files/weights.h"

namespace sluice::sessions {
namespace {

std::shared_ptr<torch::nn::SequentialImpl> net(int64_t width = 4) {
  return torch::nn::Sequential(torch::nn::Linear(3, width), torch::nn::BatchNorm1d(width),
                               torch::nn::Linear(width, 2))
      .ptr();
}

void train_steps(torch::nn::SequentialImpl& model, torch::optim::Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    model.forward(torch::randn({8, 3})).square().mean().backward();
    optimizer.step();
  }
}

bool same(const torch::nn::Module& a, const torch::nn::Module& b) {
  NamedTensors x = module_tensors(a), y = module_tensors(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (!at::equal(x[i].second, y[i].second)) return false;
  return x.size() == y.size();
}

base::TemporaryDirectory temporary() { return base::value_or_throw(base::TemporaryDirectory::create()); }

// A run that is saved, restored elsewhere and continued is the run that was not interrupted, bit for bit.
template <typename Optimizer, typename MakeOptions>
void check_continuation(const MakeOptions& make_options) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  torch::manual_seed(1);
  auto model = net();
  Optimizer optimizer(model->parameters(), make_options());
  train_steps(*model, optimizer, 3);
  Progress progress;
  progress.model = "net";
  progress.epoch = 2;
  progress.batch = 5;
  progress.step = 3;
  progress.monitor = "accuracy";
  progress.best = 12.5;
  progress.callbacks = {{"early stopping", "{}"}};
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last")));
  train_steps(*model, optimizer, 3);

  torch::manual_seed(99);
  auto other = net();
  Checkpoint checkpoint = base::value_or_throw(read_checkpoint(folder.path("last")));
  EXPECT_EQ(checkpoint.progress.epoch, 2);
  EXPECT_EQ(checkpoint.progress.batch, 5);
  EXPECT_EQ(checkpoint.progress.monitor, "accuracy");
  EXPECT_EQ(checkpoint.progress.best, 12.5);
  EXPECT_FALSE(checkpoint.progress.value.has_value());
  EXPECT_EQ(checkpoint.progress.callbacks, progress.callbacks);
  ASSERT_TRUE(load_module(*other, checkpoint.model, "last"));
  Optimizer resumed(other->parameters(), make_options());
  ASSERT_TRUE(load_optimizer(resumed, *other, checkpoint.state, "last"));
  restore_random(checkpoint);
  train_steps(*other, resumed, 3);
  EXPECT_TRUE(same(*model, *other));
}

TEST(Checkpoint, ContinuesSgd) {
  check_continuation<torch::optim::SGD>([] { return torch::optim::SGDOptions(0.1).momentum(0.9); });
}
TEST(Checkpoint, ContinuesAdam) {
  check_continuation<torch::optim::Adam>([] { return torch::optim::AdamOptions(0.1).amsgrad(true); });
}
TEST(Checkpoint, ContinuesAdamW) {
  check_continuation<torch::optim::AdamW>([] { return torch::optim::AdamWOptions(0.1); });
}
TEST(Checkpoint, ContinuesRmsprop) {
  check_continuation<torch::optim::RMSprop>(
      [] { return torch::optim::RMSpropOptions(0.1).momentum(0.5).centered(true); });
}
TEST(Checkpoint, ContinuesAdagrad) {
  check_continuation<torch::optim::Adagrad>([] { return torch::optim::AdagradOptions(0.1); });
}

TEST(Checkpoint, ReplacesTheOneBeforeAndLeavesNothingElse) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Progress progress;
  for (int step : {1, 2, 3}) {
    progress.step = step;
    ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last")));
  }
  EXPECT_EQ(base::value_or_throw(read_checkpoint(folder.path("last"))).progress.step, 3);
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder.path())), std::vector<std::string>{"last"});
}

std::vector<std::string> checkpoint_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : base::value_or_throw(base::list_directory(folder)))
    paths.push_back(base::join_path(folder, name));
  return paths;
}

// The values are written once for all names, and the names are independent of each other.
TEST(Checkpoint, OtherNamesAreLinksToTheSameFiles) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto snapshot_at = [&](int64_t step) {
    Progress progress;
    progress.step = step;
    Snapshot snapshot = take_snapshot(cpu, *model, {&optimizer}, progress);
    snapshot.files = {{"tokenizer.json", "{}"}};
    return snapshot;
  };
  const auto step_of = [&](const char* name) {
    return base::value_or_throw(read_checkpoint(folder.path(name))).progress.step;
  };
  const Snapshot first = snapshot_at(1);
  ASSERT_TRUE(write_checkpoints(first, {folder.path("best"), folder.path("top-1"), folder.path("last")}));
  EXPECT_EQ(checkpoint_files(folder.path("last")).size(), 4U);
  for (const std::string& path : checkpoint_files(folder.path("last"))) {
    EXPECT_EQ(std::filesystem::hard_link_count(path), 3U) << path;
    for (const char* name : {"best", "top-1"})
      EXPECT_TRUE(std::filesystem::equivalent(
          path, base::join_path(folder.path(name), std::filesystem::path(path).filename().string())));
  }
  // A new `last` changes neither of the others, and the end of one name is the end of one link.
  const at::Tensor weights = model->parameters()[0].detach().clone();
  train_steps(*model, optimizer, 1);
  ASSERT_TRUE(write_checkpoint(snapshot_at(2), folder.path("last")));
  EXPECT_EQ(step_of("last"), 2);
  EXPECT_EQ(step_of("best"), 1);
  std::filesystem::remove_all(folder.path("best"));
  const Checkpoint kept = base::value_or_throw(read_checkpoint(folder.path("top-1")));
  EXPECT_EQ(kept.progress.step, 1);
  EXPECT_TRUE(at::equal(kept.model[0].second, weights));
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder.path())),
            (std::vector<std::string>{"last", "top-1"}));
}

TEST(Checkpoint, IsCopiedWhereLinksAreRefused) {
  auto folder = temporary();
  const std::string memory = "/dev/shm";
  struct stat here {
  }, there{};
  if (stat(folder.path().c_str(), &here) != 0 || stat(memory.c_str(), &there) != 0 ||
      here.st_dev == there.st_dev || access(memory.c_str(), W_OK) != 0)
    GTEST_SKIP() << "there is no second file system";
  const std::string other = base::str(memory, "/sluice-checkpoint-test-", getpid());
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const base::Status written = write_checkpoints(take_snapshot(cpu, *model, {&optimizer}, {}),
                                                 {folder.path("best"), base::join_path(other, "last")});
  EXPECT_TRUE(written);
  for (const std::string& path : checkpoint_files(folder.path("best"))) {
    EXPECT_EQ(std::filesystem::hard_link_count(path), 1U);
    const std::string name = std::filesystem::path(path).filename().string();
    EXPECT_EQ(base::value_or_throw(base::read_file(base::join_path(base::join_path(other, "last"), name))),
              base::value_or_throw(base::read_file(path)));
  }
  std::filesystem::remove_all(other);
}

TEST(Checkpoint, AFailedSecondNameLeavesBothAsTheyWere) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Progress progress;
  progress.step = 1;
  const std::vector<std::string> both = {folder.path("best"), folder.path("last")};
  ASSERT_TRUE(write_checkpoints(take_snapshot(cpu, *model, {&optimizer}, progress), both));
  progress.step = 2;
  ASSERT_TRUE(base::write_file_atomically(folder.path("file"), "x"));
  const base::Status status = write_checkpoints(take_snapshot(cpu, *model, {&optimizer}, progress),
                                                {both[0], folder.path("file/last")});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(),
              testing::HasSubstr("cannot write the checkpoint " + folder.path("file/last")));
  for (const std::string& path : both)
    EXPECT_EQ(base::value_or_throw(read_checkpoint(path)).progress.step, 1);
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder.path())),
            (std::vector<std::string>{"best", "file", "last"}));
}

TEST(Checkpoint, AnotherModelIsNamedByItsFirstTensor) {
  auto model = net(4), wide = net(5);
  auto deep = torch::nn::Sequential(torch::nn::Linear(3, 4)).ptr();
  auto error = [](const base::Status& status) {
    return status ? std::string() : std::string(status.error().what());
  };
  EXPECT_THAT(error(load_module(*wide, module_tensors(*model), "x")),
              testing::HasSubstr(
                  "x is not of this model: the tensor 0.weight has shape [4, 3] there, [5, 3] in the model"));
  EXPECT_THAT(error(load_module(*model, module_tensors(*deep), "x")),
              testing::HasSubstr("the tensor 1.weight is missing"));
  EXPECT_THAT(error(load_module(*deep, module_tensors(*model), "x")),
              testing::HasSubstr("it has no tensor called 1.weight"));
}

// A limit on the size of files stands for the full disk: write() fails in the middle of the weights.
TEST(Checkpoint, AFailedWriteLeavesTheLastGoodOne) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = torch::nn::Sequential(torch::nn::Linear(300, 300)).ptr();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Progress progress;
  progress.step = 1;
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last")));
  progress.step = 2;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 100'000;
  setrlimit(RLIMIT_FSIZE, &limit);
  base::Status status =
      write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(),
              testing::HasSubstr("cannot write the checkpoint " + folder.path("last")));
  EXPECT_EQ(base::value_or_throw(read_checkpoint(folder.path("last"))).progress.step, 1);
  EXPECT_EQ(base::value_or_throw(base::list_directory(folder.path())), std::vector<std::string>{"last"});
}

TEST(Checkpoint, AStateThatSomethingElseWroteIsAnError) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("last")));
  const std::string path = folder.path("last/state.json"), good = base::value_or_throw(base::read_file(path));
  const auto read = [&](const std::string& name, const std::string& value) {
    std::string text = good;
    const size_t at = text.find("\"" + name + "\": ") + name.size() + 4;
    text.replace(at, text.find_first_of(",\n", at) - at, value);
    EXPECT_TRUE(base::write_file_atomically(path, text));
    const auto progress = read_progress(folder.path("last"));
    return progress ? std::string() : std::string(progress.error().what());
  };
  EXPECT_EQ(read("step", "7"), "");
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& value :
       {std::string("-1"), std::string("1.5"), std::string("\"1\""), std::string("null"),
        std::string("18446744073709551615"), std::string("1e300"), deep})
    for (const char* name : {"epoch", "batch", "step", "rated_epochs"})
      EXPECT_NE(read(name, value), "") << name << value.substr(0, 30);
  for (const std::string& value : {std::string("\"x\""), std::string("[]"), std::string("99"), deep})
    EXPECT_NE(read("format", value), "") << value.substr(0, 30);
}

TEST(Checkpoint, AStateLacksNothing) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("last")));
  const std::string path = folder.path("last/state.json");
  const auto whole = nlohmann::json::parse(base::value_or_throw(base::read_file(path)));
  for (const auto& [name, value] : whole.items()) {
    auto state = whole;
    state.erase(name);
    ASSERT_TRUE(base::write_file_atomically(path, state.dump()));
    const auto progress = read_progress(folder.path("last"));
    ASSERT_FALSE(progress) << name;
    EXPECT_THAT(progress.error().what(), testing::HasSubstr(name));
  }
}

// Fourier features, Fast Fourier layers and the like have such buffers.
TEST(Checkpoint, ComplexBuffersComeBack) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  const auto with_buffers = [](double scale) {
    auto model = net();
    const at::Tensor real = at::arange(12, at::kDouble).reshape({3, 2, 2}) * scale;
    model->register_buffer("c128", at::view_as_complex(real));
    model->register_buffer("c64", at::view_as_complex(real).to(at::kComplexFloat).conj());
    model->register_buffer("parameter", at::view_as_complex(real)[0]);
    return model;
  };
  auto model = with_buffers(0.3), other = with_buffers(0);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("last")));
  const auto read = base::value_or_throw(read_checkpoint(folder.path("last")));
  ASSERT_TRUE(load_module(*other, read.model, "last"));
  EXPECT_TRUE(same(*model, *other));
  EXPECT_EQ(other->named_buffers()["c64"][2][1].item<c10::complex<float>>(),
            c10::complex<float>(3.0F, -3.3F));
  // Where the model has real numbers, half of the file would be lost.
  auto real = net();
  real->register_buffer("c128", at::zeros({3, 2}));
  real->register_buffer("c64", at::zeros({3, 2}));
  real->register_buffer("parameter", at::zeros({2}));
  const auto status = load_module(*real, read.model, "last");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(),
              testing::HasSubstr("c128 has complex numbers there, real ones in the model"));
}

TEST(Checkpoint, KeepsNoSignaturesOfAddresses) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Progress progress;
  progress.config = "train=\"https://me:hush@h/x.tar?sv=1&sig=hush\"\nepochs=3\n";
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last")));
  EXPECT_THAT(base::value_or_throw(base::read_file(folder.path("last/state.json"))),
              testing::AllOf(testing::HasSubstr("https://h/x.tar"), testing::HasSubstr("epochs=3"),
                             testing::Not(testing::HasSubstr("hush"))));
}

TEST(Checkpoint, KeepsTextsOfAnyBytes) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Progress progress;
  progress.model = "m\xff";
  progress.monitor = R"(a\xe9)";
  progress.config = "logdir=\"/tmp/caf\xe9\"\n";
  progress.callbacks = {{"c\xfe", "\x80"}, {"plain", R"({"text": "\\xff"})"}};
  progress.input = "source0.shards=d\xe9/s.tar";
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, progress), folder.path("last")));
  const Progress read = base::value_or_throw(read_progress(folder.path("last")));
  EXPECT_EQ(read.model, progress.model);
  EXPECT_EQ(read.monitor, progress.monitor);
  EXPECT_EQ(read.config, progress.config);
  EXPECT_EQ(read.callbacks, progress.callbacks);
  EXPECT_EQ(read.input, progress.input);
  EXPECT_THAT(base::value_or_throw(base::read_file(folder.path("last/state.json"))),
              testing::HasSubstr(R"(caf\\xe9)"));
}

TEST(Checkpoint, ReadsEscapesAndRefusesAnotherFormat) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("last")));
  const std::string path = folder.path("last/state.json");
  auto state = nlohmann::json::parse(base::value_or_throw(base::read_file(path)));
  state["config"] = R"(pattern="\x41")";
  state["callbacks"] = {{"a", R"(\xff)"}};
  const auto read = [&] {
    EXPECT_TRUE(base::write_file_atomically(path, state.dump()));
    return read_progress(folder.path("last"));
  };
  const Progress progress = base::value_or_throw(read());
  EXPECT_EQ(progress.config, R"(pattern="A")");
  EXPECT_EQ(progress.callbacks.at("a"), "\xff");
  state["format"] = R"(\xff)";
  EXPECT_THAT(read().error().what(), testing::HasSubstr("a checkpoint of format"));
}

TEST(Checkpoint, AMissingOneIsAnError) {
  auto folder = temporary();
  auto result = read_checkpoint(folder.path("nothing"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_EQ(find_checkpoint(folder.path("nothing")), "");
  EXPECT_EQ(base::value_or_throw(find_whole_checkpoint(folder.path("nothing"))), "");
}

TEST(Checkpoint, OneWithoutAFileIsNoFreshStart) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const std::string last = folder.path("last");
  for (const char* const file : {"model.safetensors", "state.safetensors", "state.json"}) {
    ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), last));
    EXPECT_EQ(base::value_or_throw(find_whole_checkpoint(last)), last);
    ASSERT_TRUE(base::remove_file(base::join_path(last, file)));
    for (const std::string& what : {std::string(find_whole_checkpoint(last).error().what()),
                                    std::string(read_checkpoint(last).error().what())})
      EXPECT_THAT(what, testing::AllOf(testing::HasSubstr(last + " is not a whole checkpoint: "),
                                       testing::HasSubstr(base::str(file, " is missing beside ")),
                                       testing::HasSubstr("begin again without --resume")));
  }
  // What a run writes at the moment has another name, and is none yet.
  std::filesystem::rename(last, folder.path(".last.writing-1"));
  EXPECT_EQ(base::value_or_throw(find_whole_checkpoint(last)), "");
}

TEST(Checkpoint, TheStateOfAnotherOptimizerIsNamed) {
  auto model = net();
  const auto state_of = [&](auto optimizer) {
    train_steps(*model, optimizer, 1);
    return optimizer_tensors(optimizer, *model);
  };
  const auto parameters = model->parameters();
  const NamedTensors sgd =
                         state_of(torch::optim::SGD(parameters, torch::optim::SGDOptions(0.1).momentum(0.9))),
                     adam = state_of(torch::optim::Adam(parameters, 0.1)),
                     rms = state_of(torch::optim::RMSprop(parameters, 0.1)),
                     ada = state_of(torch::optim::Adagrad(parameters, 0.1));
  const auto error = [&](auto optimizer, const NamedTensors& state) {
    const base::Status status = load_optimizer(optimizer, *model, state, "run/last");
    return status ? std::string() : std::string(status.error().what());
  };
  EXPECT_EQ(
      error(torch::optim::Adam(parameters, 0.1), sgd),
      "run/last holds the state of sgd, the run has adam: give --optimizer sgd, or begin again from its "
      "weights, without --resume: --weights run/last");
  EXPECT_THAT(
      error(torch::optim::SGD(parameters, 0.1), adam),
      testing::HasSubstr("holds the state of adam or adamw, the run has sgd: give --optimizer adam or"));
  EXPECT_THAT(error(torch::optim::RMSprop(parameters, 0.1), ada),
              testing::HasSubstr("the state of adagrad, the run has rmsprop"));
  EXPECT_THAT(error(torch::optim::Adagrad(parameters, 0.1), rms),
              testing::HasSubstr("the state of rmsprop, the run has adagrad"));
  EXPECT_THAT(error(torch::optim::RMSprop(parameters, torch::optim::RMSpropOptions(0.1).momentum(0.5)), rms),
              testing::HasSubstr("rmsprop without momentum_buffer, which the run's rmsprop has"));
  EXPECT_EQ(error(torch::optim::AdamW(parameters, 0.1), adam), "");  // they have the same fields
}

TEST(Weights, OfALogFolderAreInItsCheckpoints) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto message = [&] { return std::string(read_weights(folder.path()).error().what()); };
  EXPECT_THAT(message(), testing::HasSubstr("(expected model.safetensors"));
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("last")));
  EXPECT_EQ(message(), "there is no checkpoint in " + folder.path() + " itself, but in " +
                           folder.path("last") + ": give that");
  ASSERT_TRUE(write_checkpoint(take_snapshot(cpu, *model, {&optimizer}, {}), folder.path("best")));
  EXPECT_THAT(message(),
              testing::HasSubstr(folder.path("best") + " and " + folder.path("last") + ": give one of them"));
}

TEST(Checkpoint, WriterTellsTheErrorOfTheOneBefore) {
  auto folder = temporary();
  const Backend cpu("cpu", {}, {});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  ASSERT_TRUE(base::write_file_atomically(folder.path("file"), "x"));
  CheckpointWriter writer;
  ASSERT_TRUE(writer.write(take_snapshot(cpu, *model, {&optimizer}, {}), {folder.path("file/last")}));
  EXPECT_FALSE(writer.wait());
  ASSERT_TRUE(
      writer.write(take_snapshot(cpu, *model, {&optimizer}, {}), {folder.path("last"), folder.path("best")}));
  EXPECT_TRUE(writer.wait());
  EXPECT_NE(find_checkpoint(folder.path("best")), "");
}

TEST(Save, BothKindsOfFilesAndHolders) {
  auto folder = temporary();
  torch::nn::Linear a(3, 2), b(3, 2);
  for (const char* name : {"a.safetensors", "a.pt"}) {
    torch::nn::init::normal_(a->weight);
    save(a, folder.path(name));
    EXPECT_FALSE(at::equal(a->weight, b->weight));
    load(b, folder.path(name));
    EXPECT_TRUE(at::equal(a->weight, b->weight));
  }
  EXPECT_THROW(load(b, folder.path("missing.pt")), Error);
}

}  // namespace
}  // namespace sluice::sessions
