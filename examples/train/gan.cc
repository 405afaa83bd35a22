// A GAN: two optimizers that take turns in each step.
//
//   gan SHARDS LOGDIR
#include <sluice/sluice.h>
#include <torch/torch.h>

#include <exception>
#include <iostream>

struct Gan : torch::nn::Module {
  Gan() {
    generator = register_module(
        "generator", torch::nn::Sequential(torch::nn::Linear(64, 256), torch::nn::LeakyReLU(),
                                           torch::nn::Linear(256, 3 * 32 * 32), torch::nn::Tanh()));
    discriminator = register_module(
        "discriminator", torch::nn::Sequential(torch::nn::Linear(3 * 32 * 32, 256), torch::nn::LeakyReLU(),
                                               torch::nn::Linear(256, 1)));
  }
  // The discriminator's loss if all of these images are real, or generated.
  torch::Tensor loss(const torch::Tensor& images, bool real) {
    const auto score = discriminator->forward(images);
    return torch::binary_cross_entropy_with_logits(score, torch::full_like(score, real ? 1.0 : 0.0));
  }
  torch::nn::Sequential generator{nullptr}, discriminator{nullptr};
};

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: gan SHARDS LOGDIR\n";
    return 2;
  }
  sluice::train::TrainOptions options;
  options.epochs = 2;
  options.lr_schedule = sluice::train::LrSchedule::kConstant;
  options.logdir = argv[2];
  auto model = std::make_shared<Gan>();
  sluice::train::Steps steps;
  steps.configure_optimizers = [&] {
    const auto adam = [](torch::nn::Sequential& part) {
      return std::make_shared<torch::optim::Adam>(part->parameters(),
                                                  torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
    };
    return std::vector<sluice::train::OptimizerSetup>{{adam(model->generator)}, {adam(model->discriminator)}};
  };
  steps.updating_step = [&](sluice::Batch& batch, sluice::train::Updates& updates) {
    const auto real = batch.image.flatten(1) * 2 - 1;
    const auto made = model->generator->forward(torch::randn({real.size(0), 64}, real.options()));
    const auto detecting = model->loss(real, true) + model->loss(made.detach(), false);
    updates.update(1, detecting);
    const auto deceiving = model->loss(made, true);  // by the discriminator that was just updated
    updates.update(0, deceiving);
    return sluice::train::StepOutput{
        .logs = {{"generator", deceiving.detach()}, {"discriminator", detecting.detach()}}};
  };
  auto train = sluice::data::WebDataset(argv[1]).shuffle(2'000).images("jpg;png").resize(32).batch(32);
  return sluice::train::Trainer(options, train).fit(model, steps).exit_status;
} catch (const std::exception& error) {
  std::cerr << "gan: " << error.what() << "\n";
  return 1;
}
