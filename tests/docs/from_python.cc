// The code of docs/from_python.md: it compiles, and it runs on a small net and made-up images. A region
// between
// `[name]` and `[end]` is a block of that page; check_blocks.py compares them.
#include <sluice/sluice.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "sluice/base/files/file.h"
#include "sluice/data/shards/tar_writer.h"

namespace {

namespace F = torch::nn::functional;

// [module]
struct Net : torch::nn::Module {
  Net()
      : hidden(register_module("hidden", torch::nn::Linear(3 * 8 * 8, 16))),
        head(register_module("head", torch::nn::Linear(16, 10))) {}
  torch::Tensor forward(torch::Tensor x) { return head(torch::relu(hidden(x.flatten(1)))); }
  torch::nn::Linear hidden, head;
};
// [end]

using Model = std::shared_ptr<Net>;
using Dataset = sluice::data::WebDataset;

void loop(sluice::Session session, Model model, Dataset train) {
  // [loop]
  model->to(session.device());  // torch::Device("xla:0")
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : session.feed(train)) {
      optimizer.zero_grad();
      auto loss = F::cross_entropy(model->forward(batch.image), batch.label);
      loss.backward();
      session.step(optimizer);
      session.log_every(20, {{"loss", loss}});
    }
  }
  session.print("done");
  // [end]
}

torch::Tensor recompute(std::vector<torch::nn::Linear> blocks, torch::Tensor x) {
  // [recompute]
  for (auto& block : blocks)
    x = sluice::checkpoint([block](const torch::Tensor& in) mutable { return block->forward(in); }, x);
  // [end]
  return x;
}

Dataset shards(const std::string& urls) {
  // [shards]
  auto train = sluice::data::WebDataset(urls)  // "train-{0000..0639}.tar"
                   .shuffle(1'000)
                   .decode("rgb8")
                   .to_tuple("ppm;png;jpg", "cls")
                   .batched(16);
  // [end]
  return train;
}

// [dataset]
struct Images : torch::data::datasets::Dataset<Images> {
  torch::data::Example<> get(size_t index) override {
    return {torch::rand({3, 8, 8}), torch::tensor(static_cast<int64_t>(index % 10))};
  }
  torch::optional<size_t> size() const override { return 64; }
};
// [end]

void loader(sluice::Session session, Model model) {
  // [loader]
  auto loader = torch::data::make_data_loader(Images(), torch::data::DataLoaderOptions(16).workers(2));
  for (auto& batch : session.feed(*loader)) {
    auto [image, label] = batch;
    auto logits = model->forward(image);
    session.log_every(1, {{"loss", F::cross_entropy(logits, label)}});
  }
  // [end]
}

void clip(sluice::Session session, torch::optim::Optimizer& optimizer, torch::Tensor loss) {
  // [clip]
  loss.backward();
  session.step(optimizer, {.clip_norm = 1.0});
  // [end]
}

void accumulate(sluice::Session session, Model model, torch::optim::Optimizer& optimizer, Dataset train,
                int64_t epoch) {
  // [accumulate]
  const int64_t batches_per_update = 2, batches = train.batches(session.replicas(), epoch);
  optimizer.zero_grad();
  int64_t number = 0;  // of the batch in its epoch
  for (auto& batch : session.feed(train, {.epoch = epoch})) {
    const int64_t place = number++ % batches_per_update;
    // The last update of an epoch has the batches that are left, and is divided by their number.
    const int64_t together = std::min(batches_per_update, batches - (number - 1 - place));
    std::optional<sluice::Accumulate> more;
    if (place + 1 < together) more.emplace(session);
    auto loss = F::cross_entropy(model->forward(batch.image), batch.label) / together;
    loss.backward();
    session.step(optimizer);  // updates when no Accumulate lives
  }
  // [end]
}

void bf16(sluice::Session session, Model model, torch::optim::Optimizer& optimizer, sluice::Batch& batch) {
  // [bf16]
  torch::Tensor loss;
  {
    sluice::Autocast autocast(session.device());
    loss = F::cross_entropy(model->forward(batch.image), batch.label);
  }
  loss.backward();
  session.step(optimizer);
  // [end]
}

void two(sluice::Session session, torch::optim::Optimizer& generator,
         torch::optim::Optimizer& discriminator) {
  // [two]
  session.step({&generator, &discriminator});
  // [end]
}

void read(sluice::Session session, torch::Tensor loss) {
  // [read]
  session.after_step({loss}, [](std::vector<torch::Tensor> values) {
    std::printf("loss %f\n", values[0].item<double>());  // host tensors, a little later
  });
  double now = loss.item<double>();  // ends the graph here, and waits
  // [end]
  if (!std::isfinite(now)) std::exit(EXIT_FAILURE);
}

void evaluate(sluice::Session session, Model model, Dataset test) {
  // [evaluate]
  torch::NoGradGuard no_grad;
  model->eval();
  auto correct = torch::zeros({}, torch::TensorOptions(torch::kInt64).device(session.device()));
  for (auto& batch : session.feed(test.pad())) {  // every batch has the same shape
    auto hits = model->forward(batch.image).argmax(1).eq(batch.label);
    correct += hits.logical_and(batch.mask).sum();  // the mask leaves out what was filled up
  }
  session.print(correct.item<int64_t>(), " of ", test.size(), " are right");
  // [end]
}

void metrics(sluice::Session session, Model model, Dataset test) {
  torch::NoGradGuard no_grad;
  model->eval();
  // [metrics]
  namespace metrics = sluice::metrics;
  metrics::Collection sums(session, {metrics::TopK(5), metrics::F1({.classes = 10}),
                                     metrics::ConfusionMatrix(10), metrics::Mean("loss")});
  for (auto& batch : session.feed(test.pad())) {
    auto logits = model->forward(batch.image);
    sums.update(logits, batch.label, batch.mask);
    auto losses = F::cross_entropy(logits, batch.label, F::CrossEntropyFuncOptions().reduction(torch::kNone));
    sums.add("loss", losses, batch.mask);
  }
  auto values = sums.compute();
  for (const auto& [name, number, count] : values.numbers) session.print(name, " ", number, " of ", count);
  torch::Tensor matrix = values.tensor("confusion");  // int64 [10, 10] on the host
  // [end]
  if (matrix.sum().item<int64_t>() != values.value("top5").count) std::exit(EXIT_FAILURE);
}

void weights(Model model, const std::string& folder) {
  // [weights]
  sluice::save(model, folder + "/model.safetensors");
  sluice::save(model, folder + "/model.pt");  // Python: torch.load("model.pt", weights_only=True)
  sluice::load(model, folder + "/model.pt");  // or what torch.save(model.state_dict(), path) wrote
  // [end]
}

void trainer(const std::string& train, const std::string& test, const std::string& folder) {
  // [trainer]
  sluice::train::TrainOptions options;
  options.train = train;
  options.test = test;
  options.images = "ppm";
  options.classes = 10;
  options.batch_size = 16;
  options.epochs = 1;
  options.logdir = folder;
  sluice::train::Trainer trainer(options);
  auto result = trainer.fit(std::make_shared<Net>());
  // [end]
  if (result.steps == 0) std::exit(EXIT_FAILURE);
}

void by_hand(Model model, torch::Tensor image, torch::Tensor label) {
  // [by_hand]
  sluice::init();
  torch::Device device("xla:0");
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    auto loss = F::cross_entropy(model->forward(image.to(device)), label.to(device));
    loss.backward();
    optimizer.step();
    sluice::sync();
  }
  std::printf("%s", sluice::metrics_report().c_str());
  // [end]
}

// Images of 8 × 8 whose brightness is their class.
std::string write_shard(const std::string& folder) {
  const std::string path = folder + "/images.tar";
  auto writer = sluice::base::value_or_throw(sluice::data::TarWriter::create(path));
  for (int i = 0; i < 64; ++i) {
    const std::string pixels(3 * 8 * 8, static_cast<char>(i % 10 * 25));
    const std::string key = std::to_string(1000 + i);
    sluice::base::value_or_throw(writer.add(key + ".ppm", "P6\n8 8\n255\n" + pixels));
    sluice::base::value_or_throw(writer.add(key + ".cls", std::to_string(i % 10)));
  }
  sluice::base::value_or_throw(writer.finish());
  return path;
}

void run(int argc, char** argv) {
  auto folder = sluice::base::value_or_throw(sluice::base::TemporaryDirectory::create());
  const std::string shard = write_shard(folder.path());
  // [start]
  auto session =
      sluice::start(argc, argv);  // takes --sluice-device=…, --sluice-plugin=…, and the environment
  // [end]
  auto model = std::make_shared<Net>();
  auto train = shards(shard);
  loop(session, model, train);
  loader(session, model);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::Tensor loss;
  for (auto& batch : session.feed(train)) {
    const auto logits = recompute({model->hidden, model->head}, batch.image.flatten(1));
    clip(session, optimizer, F::cross_entropy(logits, batch.label));
    bf16(session, model, optimizer, batch);
    loss = F::cross_entropy(model->forward(batch.image), batch.label);
    loss.backward();
    two(session, optimizer, optimizer);
    read(session, loss);
  }
  // An odd number of batches: each epoch ends with an update of one.
  auto odd = train;
  odd.batch(12);  // five of them in 64 samples
  if (odd.batches(session.replicas(), 0) % 2 == 0)
    throw std::runtime_error("expected an odd number of batches");
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const int64_t before = session.steps(), updates = (odd.batches(session.replicas(), epoch) + 1) / 2;
    accumulate(session, model, optimizer, odd, epoch);
    if (session.steps() - before != updates) throw std::runtime_error("an epoch has left gradients behind");
  }
  evaluate(session, model, train);
  metrics(session, model, train);
  weights(model, folder.path());
  session.finish();
  trainer(shard, shard, folder.path() + "/run");
  by_hand(std::make_shared<Net>(), torch::rand({4, 3, 8, 8}), torch::arange(4));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "from_python: %s\n", error.what());
    return 1;
  }
}
