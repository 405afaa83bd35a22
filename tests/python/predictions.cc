// A model's values of each sample, as the trainer writes them, for predictions_oracle.py:
//   sluice_predict SHARD WORK OUT…   samples with x.npy, three numbers; WORK: a folder
#include <sluice/sluice.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

namespace {

constexpr int64_t kRows = 4;         // of a replica's batch
constexpr int64_t kShardSize = 6;    // samples in a shard
constexpr double kUndefined = 0.25;  // above it the logarithm below is not a number

void predict(int argc, char** argv) {
  sluice::train::TrainOptions options;
  options.plugin = "cpu";
  options.devices = 1;
  options.logdir = argv[2];
  const auto set = [&] {
    return sluice::data::WebDataset(argv[1]).decode("l").to_tuple("x.npy").batch(kRows);
  };
  torch::manual_seed(5);
  torch::nn::Linear model(3, 2);
  sluice::train::Steps steps;
  steps.predict_step = [&](sluice::Batch& batch) {
    const torch::Tensor x = batch.columns[0], y = model->forward(x), first = y.select(1, 0);
    return sluice::train::NamedValues{{"y", y},
                                      {"first", first},
                                      {"log", (kUndefined - x.select(1, 0)).log()},
                                      {"best", y.argmax(1)},
                                      {"large", first.gt(0)},
                                      {"outer", x.unsqueeze(2) * y.unsqueeze(1)},
                                      {"above", y.gt(0)},
                                      {"whole", (x * 100).to(torch::kLong)},
                                      {"small", (x * 100).to(torch::kByte)},
                                      {"half", y.to(torch::kHalf)},
                                      {"brain.float", y.to(torch::kBFloat16)}};
  };
  sluice::train::Trainer trainer(options, {set(), set().pad()});
  for (int i = 3; i < argc; ++i)
    std::printf("%lld samples\n",
                static_cast<long long>(trainer.predict(*model, steps, set().pad(), argv[i], kShardSize)));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "usage: sluice_predict SHARD WORK OUT…\n");
    return 2;
  }
  predict(argc, argv);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_predict: %s\n", error.what());
  return 1;
}
