// REINFORCE (Williams, 1992) balances a pole on a cart. The physics is C++; episodes have varying lengths.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include <array>

#include "gallery.h"

namespace nn = torch::nn;

constexpr int64_t kCarts = 16, kLongest = 200;
const std::vector<int64_t> kLengths = {50, 100, kLongest};

// The cart and pole of Barto, Sutton and Anderson (1983): place, speed, angle and its speed, in SI units.
struct CartPole {
  std::array<double, 4> state;
  bool fallen = false;

  CartPole() {
    for (double& value : state) value = 0.1 * torch::rand({1}).item<double>() - 0.05;
  }
  void push(bool right) {
    constexpr double kGravity = 9.8, kMass = 1.1, kPole = 0.1, kHalfLength = 0.5, kSeconds = 0.02;
    auto& [x, v, angle, spin] = state;
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const double pull = ((right ? 10.0 : -10.0) + kPole * kHalfLength * spin * spin * sine) / kMass;
    const double turning =
        (kGravity * sine - cosine * pull) / (kHalfLength * (4.0 / 3 - kPole * cosine * cosine / kMass));
    const double speeding = pull - kPole * kHalfLength * turning * cosine / kMass;
    x += kSeconds * v, v += kSeconds * speeding;
    angle += kSeconds * spin, spin += kSeconds * turning;
    fallen = std::abs(x) > 2.4 || std::abs(angle) > 12 * M_PI / 180;
  }
};

// The states of one episode, each [4], and whether the cart was then pushed to the right.
struct Episode {
  std::vector<torch::Tensor> states;
  std::vector<int64_t> pushes;

  // The discounted sum of what follows each state, [length].
  torch::Tensor returns() const {
    std::vector<float> values(pushes.size());
    float later = 0;
    for (size_t i = values.size(); i-- > 0;) values[i] = later = 1 + 0.98F * later;
    return torch::tensor(values);
  }
};

// Plays kCarts episodes at once. Each move waits for the policy, because the physics is on the host.
std::vector<Episode> play(nn::Sequential& policy, torch::Device device) {
  torch::NoGradGuard no_grad;
  std::vector<CartPole> carts(kCarts);
  std::vector<Episode> episodes(kCarts);
  for (int64_t time = 0; time < kLongest; ++time) {
    std::vector<float> values;
    for (const auto& cart : carts) values.insert(values.end(), cart.state.begin(), cart.state.end());
    const auto states = torch::tensor(values).view({kCarts, 4});
    const auto right = policy->forward(states.to(device)).sigmoid().cpu().squeeze(1) > torch::rand({kCarts});
    bool playing = false;
    for (int64_t i = 0; i < kCarts; ++i) {
      if (carts[i].fallen) continue;
      const bool push = right[i].item<bool>();
      episodes[i].states.push_back(states[i]);
      episodes[i].pushes.push_back(push);
      carts[i].push(push);
      playing = playing || !carts[i].fallen;
    }
    if (!playing) break;
  }
  return episodes;
}

int main(int argc, char** argv) {
  gallery::Run run("reinforce", argc, argv, 60);
  if (run.device.is_xla()) sluice::init();  // Sluice

  nn::Sequential policy(nn::Linear(4, 32), nn::Tanh(), nn::Linear(32, 1));
  policy->to(run.device);
  torch::optim::Adam optimizer(policy->parameters(), torch::optim::AdamOptions(1e-2));
  sluice::create_state(optimizer);  // Sluice
  double length = 0;

  for (int64_t step = 0; step < run.steps; ++step) {
    std::vector<torch::Tensor> states, pushes, returns;
    for (const auto& episode : play(policy, run.device)) {
      states.push_back(torch::stack(episode.states));
      pushes.push_back(torch::tensor(episode.pushes).to(torch::kFloat));
      returns.push_back(episode.returns());
    }
    const auto all = torch::cat(returns);
    length = static_cast<double>(all.size(0)) / kCarts;
    for (auto& one : returns) one = (one - all.mean()) / (all.std() + 1e-6);

    const auto x = sluice::pad_to(states, kLengths).values;       // Sluice
    const auto push = sluice::pad_to(pushes, kLengths).values;    // Sluice
    const auto worth = sluice::pad_to(returns, kLengths).values;  // Sluice
    optimizer.zero_grad();
    const auto scores = policy->forward(x.to(run.device)).squeeze(2);
    const auto surprise = nn::functional::binary_cross_entropy_with_logits(
        scores, push.to(run.device),
        nn::functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone));
    const auto loss = (surprise * worth.to(run.device)).sum() / kCarts;
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }
  return run.done("mean return", length);
}
