// An autoencoder: the trainer with custom steps. Images of 32 × 32 pixels become 64 numbers, and these become
// images again.
//
//   autoencoder TRAIN_SHARDS TEST_SHARDS LOGDIR
#include <sluice/sluice.h>
#include <torch/torch.h>

#include <exception>
#include <iostream>

struct Autoencoder : torch::nn::Module {
  Autoencoder() {
    encoder = register_module("encoder",
                              torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(3 * 32 * 32, 256),
                                                    torch::nn::ReLU(), torch::nn::Linear(256, 64)));
    decoder = register_module("decoder", torch::nn::Sequential(torch::nn::Linear(64, 256), torch::nn::ReLU(),
                                                               torch::nn::Linear(256, 3 * 32 * 32)));
  }
  torch::Tensor forward(torch::Tensor x) { return decoder->forward(encoder->forward(x)).view_as(x); }
  torch::nn::Sequential encoder{nullptr}, decoder{nullptr};
};

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: autoencoder TRAIN_SHARDS TEST_SHARDS LOGDIR\n";
    return 2;
  }
  const auto images = [](const char* shards) {
    return sluice::data::WebDataset(shards).images("jpg;png").resize(32).batch(32);
  };
  sluice::train::TrainOptions options;
  options.epochs = 2;
  options.optimizer = sluice::train::OptimizerKind::kAdam;
  options.lr = 1e-3;
  options.logdir = argv[3];

  auto model = std::make_shared<Autoencoder>();
  sluice::train::Steps steps;
  steps.training_step = [&](sluice::Batch& batch) -> sluice::train::StepOutput {
    const auto error = (model->forward(batch.image) - batch.image).square().flatten(1).mean(1);
    return {.loss = error, .logs = {{"psnr", -10 * error.detach().log10()}}};  // one for each image
  };
  steps.validation_step = steps.training_step;
  steps.predict_step = [&](sluice::Batch& batch) {
    return sluice::train::NamedValues{{"code", model->encoder->forward(batch.image)}};
  };

  sluice::train::Trainer trainer(options, {images(argv[1]).shuffle(2'000), images(argv[2]).pad()});
  const auto result = trainer.fit(model, steps);
  const auto codes = trainer.predict(*model, steps, images(argv[2]).pad(), options.logdir + "/codes.jsonl");
  std::cout << codes << " codes in " << options.logdir << "/codes.jsonl\n";
  return result.exit_status;
} catch (const std::exception& error) {
  std::cerr << "autoencoder: " << error.what() << "\n";
  return 1;
}
