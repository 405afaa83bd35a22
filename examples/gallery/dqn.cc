// Deep Q-learning (Mnih et al., 2013) with a replay memory and a target network, on a game of catch.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kRows = 7, kColumns = 7, kGames = 16, kMemory = 4'096;

// A ball falls, drifts and is to meet the paddle in the last row. Moves: 0 left, 1 stay, 2 right.
class Catch {
 public:
  Catch() { start(); }
  torch::Tensor screen() const {
    auto pixels = torch::zeros({kRows, kColumns});
    pixels[row_][ball_] = 1;
    pixels[kRows - 1][paddle_] = 1;
    return pixels.flatten();
  }
  // Returns 1 for a ball that is caught, −1 for one that is missed, 0 before; then a new game starts.
  double move(int64_t action) {
    paddle_ = std::clamp<int64_t>(paddle_ + action - 1, 0, kColumns - 1);
    ball_ = std::clamp<int64_t>(ball_ + draw(3) - 1, 0, kColumns - 1);
    if (++row_ < kRows - 1) return 0;
    const bool caught = std::abs(ball_ - paddle_) <= 1;
    start();
    return caught ? 1 : -1;
  }

 private:
  static int64_t draw(int64_t n) { return torch::randint(n, {1}).item<int64_t>(); }
  void start() { row_ = 0, ball_ = draw(kColumns), paddle_ = draw(kColumns); }
  int64_t row_ = 0, ball_ = 0, paddle_ = 0;
};

torch::Tensor screens(const std::vector<Catch>& games) {
  std::vector<torch::Tensor> all;
  for (const auto& game : games) all.push_back(game.screen());
  return torch::stack(all);
}

int main(int argc, char** argv) {
  gallery::Run run("dqn", argc, argv, 800);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto make = [] {
    return nn::Sequential(nn::Linear(kRows * kColumns, 64), nn::ReLU(), nn::Linear(64, 3));
  };
  auto network = make(), target = make();
  network->to(run.device);
  target->to(run.device);
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(1e-3));
  sluice::create_state(optimizer);  // Sluice

  auto before = torch::zeros({kMemory, kRows * kColumns}), after = torch::zeros_like(before);
  auto actions = torch::zeros({kMemory}, torch::kLong);
  auto rewards = torch::zeros({kMemory});
  std::vector<Catch> games(kGames);
  const auto best = [&] {
    torch::NoGradGuard no_grad;
    return network->forward(screens(games).to(run.device)).argmax(1).cpu();
  };

  for (int64_t step = 0; step < run.steps; ++step) {
    const double explore = std::max(0.05, 1 - 2.0 * step / run.steps);
    const auto moves =
        torch::where(torch::rand({kGames}) < explore, torch::randint(3, {kGames}, torch::kLong), best());
    const int64_t place = step * kGames % kMemory;
    before.slice(0, place, place + kGames).copy_(screens(games));
    actions.slice(0, place, place + kGames).copy_(moves);
    for (int64_t i = 0; i < kGames; ++i) rewards[place + i] = games[i].move(moves[i].item<int64_t>());
    after.slice(0, place, place + kGames).copy_(screens(games));

    const auto rows = torch::randint(std::min((step + 1) * kGames, kMemory), {64}, torch::kLong);
    const auto pick = [&](const torch::Tensor& x) { return x.index_select(0, rows).to(run.device); };
    const auto reward = pick(rewards);
    torch::Tensor wanted;
    {
      torch::NoGradGuard no_grad;
      wanted = reward + 0.95 * reward.eq(0) * std::get<0>(target->forward(pick(after)).max(1));
    }
    optimizer.zero_grad();
    const auto values = network->forward(pick(before)).gather(1, pick(actions).unsqueeze(1)).squeeze(1);
    const auto loss = F::smooth_l1_loss(values, wanted);
    loss.backward();
    optimizer.step();
    {
      torch::NoGradGuard no_grad;  // the target network follows slowly
      for (size_t i = 0; i < target->parameters().size(); ++i)
        target->parameters()[i].lerp_(network->parameters()[i], 0.02);
    }
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  double sum = 0, played = 0;
  for (int64_t time = 0; time < 20 * (kRows - 1); ++time) {
    const auto moves = best();
    for (int64_t i = 0; i < kGames; ++i) {
      const double reward = games[i].move(moves[i].item<int64_t>());
      sum += reward, played += reward != 0;
    }
  }
  return run.done("mean return", sum / played);
}
