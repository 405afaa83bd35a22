// Autoencoders, adversarial networks, dense prediction.
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

void autoencoder(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Linear(64, 16), nn::ReLU(), nn::Linear(16, 4), nn::Linear(4, 16), nn::ReLU(),
                       nn::Linear(16, 64), nn::Sigmoid());
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2).weight_decay(1e-5));
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = images(8, 1, 8, device).flatten(1);
    torch::Tensor loss = F::mse_loss(model->forward(x), x);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

struct VaeImpl : nn::Module {
  VaeImpl()
      : fc1(register_module("fc1", nn::Linear(64, 32))),
        mean(register_module("mean", nn::Linear(32, 4))),
        log_variance(register_module("log_variance", nn::Linear(32, 4))),
        fc2(register_module("fc2", nn::Linear(4, 32))),
        fc3(register_module("fc3", nn::Linear(32, 64))) {}
  std::vector<torch::Tensor> forward(torch::Tensor x, torch::Tensor noise) {
    torch::Tensor h = torch::relu(fc1->forward(x));
    torch::Tensor mu = mean->forward(h), log_var = log_variance->forward(h);
    torch::Tensor z = mu + noise * (0.5 * log_var).exp();
    return {torch::sigmoid(fc3->forward(torch::relu(fc2->forward(z)))), mu, log_var};
  }
  nn::Linear fc1, mean, log_variance, fc2, fc3;
};
TORCH_MODULE(Vae);

void variational_autoencoder(torch::Device device, Curve& curve) {
  Vae model;
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = images(8, 1, 8, device).view({8, 64});
    auto out = model->forward(x, torch::randn({8, 4}).to(device));
    torch::Tensor reconstruction =
        F::binary_cross_entropy(out[0], x, F::BinaryCrossEntropyFuncOptions().reduction(torch::kSum));
    torch::Tensor divergence = -0.5 * torch::sum(1 + out[2] - out[1].pow(2) - out[2].exp());
    torch::Tensor loss = reconstruction + divergence;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void dcgan(torch::Device device, Curve& curve) {
  nn::Sequential generator(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(6, 8, 4).bias(false)), nn::BatchNorm2d(8), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1).bias(false)), nn::Tanh());
  nn::Sequential discriminator(nn::Conv2d(nn::Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
                               nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                               nn::Conv2d(nn::Conv2dOptions(8, 1, 4).bias(false)), nn::Sigmoid());
  generator->to(device);
  discriminator->to(device);
  torch::optim::Adam of_generator(generator->parameters(),
                                  torch::optim::AdamOptions(2e-3).betas({0.5, 0.999}));
  torch::optim::Adam of_discriminator(discriminator->parameters(),
                                      torch::optim::AdamOptions(2e-3).betas({0.5, 0.999}));
  for (int step = 0; step < kSteps; ++step) {
    discriminator->zero_grad();
    torch::Tensor real = images(8, 1, 8, device) * 2 - 1;
    torch::Tensor real_output = discriminator->forward(real).reshape(-1);
    torch::Tensor real_loss = torch::binary_cross_entropy(real_output, torch::full({8}, 0.9, device));
    real_loss.backward();
    torch::Tensor fake = generator->forward(torch::randn({8, 6, 1, 1}).to(device));
    torch::Tensor fake_output = discriminator->forward(fake.detach()).reshape(-1);
    torch::Tensor fake_loss = torch::binary_cross_entropy(fake_output, torch::zeros({8}, device));
    fake_loss.backward();
    of_discriminator.step();
    generator->zero_grad();
    torch::Tensor judged = discriminator->forward(fake).reshape(-1);
    torch::Tensor loss = torch::binary_cross_entropy(judged, torch::ones({8}, device));
    loss.backward();
    of_generator.step();
    curve.add(real_loss + fake_loss + loss);
  }
}

void gradient_penalty(torch::Device device, Curve& curve) {
  nn::Sequential critic(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 1));
  nn::Linear generator(4, 8);
  critic->to(device);
  generator->to(device);
  torch::optim::RMSprop of_critic(critic->parameters(), 1e-3), of_generator(generator->parameters(), 1e-3);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor real = torch::randn({8, 8}).to(device) + 1;
    torch::Tensor fake = generator->forward(torch::randn({8, 4}).to(device));
    torch::Tensor share = torch::rand({8, 1}).to(device);
    torch::Tensor between = (share * real + (1 - share) * fake.detach()).requires_grad_();
    torch::Tensor score = critic->forward(between);
    torch::Tensor slope = torch::autograd::grad({score}, {between}, {torch::ones_like(score)},
                                                /*retain_graph=*/true, /*create_graph=*/true)[0];
    torch::Tensor penalty = (slope.norm(2, 1) - 1).pow(2).mean();
    torch::Tensor loss = critic->forward(fake.detach()).mean() - critic->forward(real).mean() + 10 * penalty;
    of_critic.zero_grad();
    loss.backward();
    of_critic.step();
    of_generator.zero_grad();
    (-critic->forward(fake).mean()).backward();
    of_generator.step();
    curve.add(loss);
  }
}

void super_resolution(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(1, 8, 5).padding(2)), nn::PReLU(),
                       nn::Conv2d(nn::Conv2dOptions(8, 4, 3).padding(1)), nn::PixelShuffle(2));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor large = images(4, 1, 12, device);
    torch::Tensor small = F::interpolate(large, F::InterpolateFuncOptions()
                                                    .size(std::vector<int64_t>{6, 6})
                                                    .mode(torch::kBilinear)
                                                    .align_corners(false));
    torch::Tensor loss = F::l1_loss(model->forward(small), large);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

struct UNetImpl : nn::Module {
  UNetImpl() {
    down = register_module("down", nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)));
    middle = register_module("middle", nn::Conv2d(nn::Conv2dOptions(4, 8, 3).padding(1)));
    up = register_module("up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 4, 2).stride(2)));
    norm = register_module("norm", nn::InstanceNorm2d(nn::InstanceNorm2dOptions(8).affine(true)));
    out = register_module("out", nn::Conv2d(8, 3, 1));
  }
  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor fine = torch::relu(down->forward(x));
    torch::Tensor coarse = torch::relu(middle->forward(torch::max_pool2d(fine, 2)));
    return out->forward(norm->forward(torch::cat({fine, up->forward(coarse)}, 1)));
  }
  nn::Conv2d down{nullptr}, middle{nullptr}, out{nullptr};
  nn::ConvTranspose2d up{nullptr};
  nn::InstanceNorm2d norm{nullptr};
};
TORCH_MODULE(UNet);

void segmentation(torch::Device device, Curve& curve) {
  UNet model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor target = torch::randint(3, {2, 8, 8}, torch::kLong).to(device);
    torch::Tensor loss = F::cross_entropy(model->forward(images(2, 1, 8, device)), target,
                                          F::CrossEntropyFuncOptions().ignore_index(2));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

torch::Tensor gram(const torch::Tensor& features) {
  torch::Tensor flat = features.view({features.size(0) * features.size(1), -1});
  return torch::mm(flat, flat.t()).div(features.numel());
}

void style_transfer(torch::Device device, Curve& curve) {
  nn::Sequential network(nn::Conv2d(3, 8, 3), nn::ReLU(), nn::Conv2d(8, 8, 3));
  network->to(device);
  for (auto& parameter : network->parameters()) parameter.requires_grad_(false);
  torch::Tensor content = network->forward(images(1, 3, 12, device));
  torch::Tensor style = gram(network->forward(images(1, 3, 12, device)));
  torch::Tensor image = images(1, 3, 12, device).requires_grad_();
  torch::optim::Adam optimizer({image}, 0.05);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor features = network->forward(image);
    torch::Tensor loss = F::mse_loss(features, content) + 100 * F::mse_loss(gram(features), style);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    {
      torch::NoGradGuard no_grad;
      image.clamp_(0, 1);
    }
    curve.add(loss);
  }
}

}  // namespace

std::vector<TutorialProgram> generative_programs() {
  return {{"autoencoder", autoencoder},
          {"variational_autoencoder", variational_autoencoder},
          {"dcgan", dcgan},
          {"gradient_penalty", gradient_penalty},
          {"super_resolution", super_resolution},
          {"segmentation", segmentation},
          {"style_transfer", style_transfer}};
}

}  // namespace sluice::tests
