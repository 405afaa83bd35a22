// Loops in C++, rows picked at random, and lengths that vary: reinforcement learning, solvers, cells by hand,
// captions, a text that grows.
#include "sluice/device/pad.h"
#include "sluice/device/padded_layers.h"
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int kManySteps = 24;

struct ActorCriticImpl : nn::Module {
  ActorCriticImpl() {
    body = register_module("body", nn::Linear(4, 32));
    policy = register_module("policy", nn::Linear(32, 3));
    value = register_module("value", nn::Linear(32, 1));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& state) {
    const torch::Tensor hidden = torch::tanh(body->forward(state));
    return {policy->forward(hidden).log_softmax(-1), value->forward(hidden).squeeze(-1)};
  }
  nn::Linear body{nullptr}, policy{nullptr}, value{nullptr};
};
TORCH_MODULE(ActorCritic);

// Generalized advantage estimation (Schulman et al. (2016)), as it is written for one value after the other.
torch::Tensor advantages(const torch::Tensor& reward, const torch::Tensor& value,
                         const torch::Tensor& going_on) {
  const int64_t rounds = reward.size(0);
  torch::Tensor result = torch::zeros_like(reward), sum = torch::zeros({}, reward.options());
  for (int64_t i = rounds - 1; i >= 0; --i) {
    const torch::Tensor next = i + 1 < rounds ? value[i + 1] : torch::zeros({}, reward.options());
    const torch::Tensor surprise = reward[i] + 0.99 * next * going_on[i] - value[i];
    sum = surprise + 0.99 * 0.95 * going_on[i] * sum;
    result[i] = sum;
  }
  return result;
}

void proximal_policy(torch::Device device, Curve& curve) {
  ActorCritic model;
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  constexpr int64_t kRounds = 64, kRows = 16;
  for (int step = 0; step < kManySteps / 2; ++step) {
    const torch::Tensor states = torch::randn({kRounds, 4}).to(device), actions = labels(kRounds, 3, device);
    const torch::Tensor reward = (actions == states.argmax(1) % 3).to(torch::kFloat);
    const torch::Tensor going_on = (torch::rand({kRounds}) < 0.95).to(torch::kFloat).to(device);
    torch::Tensor before, advantage, target;
    {
      torch::NoGradGuard no_grad;
      const auto [policy, value] = model->forward(states);
      before = policy.gather(1, actions.unsqueeze(1)).squeeze(1);
      advantage = advantages(reward, value, going_on);
      target = advantage + value;
      advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
    }
    torch::Tensor total = torch::zeros({}, device);
    const torch::Tensor order = torch::randperm(kRounds);
    for (int64_t first = 0; first < kRounds; first += kRows) {
      const torch::Tensor rows = order.slice(0, first, first + kRows).to(device);
      const auto [policy, value] = model->forward(states.index_select(0, rows));
      const torch::Tensor now = policy.gather(1, actions.index_select(0, rows).unsqueeze(1)).squeeze(1);
      const torch::Tensor ratio = (now - before.index_select(0, rows)).exp(),
                          gain = advantage.index_select(0, rows);
      const torch::Tensor loss = -torch::min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() +
                                 0.5 * F::mse_loss(value, target.index_select(0, rows)) +
                                 0.01 * (policy.exp() * policy).sum(1).mean();
      optimizer.zero_grad();
      loss.backward();
      nn::utils::clip_grad_norm_(model->parameters(), 0.5);
      optimizer.step();
      total = total + loss.detach();
    }
    curve.add(total);
  }
}

void advantage_actor_critic(torch::Device device, Curve& curve) {
  ActorCritic model;
  model->to(device);
  torch::optim::RMSprop optimizer(model->parameters(), 3e-3);
  for (int step = 0; step < kManySteps; ++step) {
    torch::Tensor state = torch::randn({8, 4}).to(device), reward_later = torch::zeros({8}, device);
    std::vector<torch::Tensor> chosen, values, rewards, returns;
    for (int round = 0; round < 5; ++round) {
      const torch::Tensor action = labels(8, 3, device);
      const auto [policy, value] = model->forward(state);
      chosen.push_back(policy.gather(1, action.unsqueeze(1)).squeeze(1));
      values.push_back(value);
      rewards.push_back(torch::cos(state.sum(1) + action));
      state = 0.9 * state + 0.1 * action.unsqueeze(1);
    }
    for (int round = 4; round >= 0; --round) {
      reward_later = rewards[static_cast<size_t>(round)] + 0.9 * reward_later;
      returns.insert(returns.begin(), reward_later);
    }
    const torch::Tensor gain = torch::stack(returns).detach() - torch::stack(values);
    const torch::Tensor loss = -(torch::stack(chosen) * gain.detach()).mean() + 0.5 * gain.pow(2).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// The replay memory lies on the device; rows are written in turn and read at random.
void deep_q_replay(torch::Device device, Curve& curve) {
  nn::Sequential policy(nn::Linear(4, 32), nn::ReLU(), nn::Linear(32, 2));
  policy->to(device);
  torch::optim::Adam optimizer(policy->parameters(), 5e-3);
  torch::Tensor states = torch::zeros({12, 4}, device), rewards = torch::zeros({12}, device);
  torch::Tensor actions = torch::zeros({12}, torch::TensorOptions(torch::kLong).device(device));
  for (int step = 0; step < kManySteps; ++step) {
    const int64_t place = step % 12;
    states[place] = torch::randn({4}).to(device);
    actions[place] = labels(1, 2, device)[0];
    rewards[place] = states[place].sum() * (1 - 2 * actions[place]);
    std::vector<torch::Tensor> state, action, reward;
    for (int i = 0; i < 4; ++i) {
      const int64_t row = torch::randint(std::min(step + 1, 12), {1}).item<int64_t>();
      state.push_back(states[row]);
      action.push_back(actions[row]);
      reward.push_back(rewards[row]);
    }
    const torch::Tensor value =
        policy->forward(torch::stack(state)).gather(1, torch::stack(action).unsqueeze(1)).squeeze(1);
    const torch::Tensor loss = F::smooth_l1_loss(value, torch::stack(reward));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// A neural differential equation, by the classical Runge-Kutta method with the steps in C++.
void differential_equation(torch::Device device, Curve& curve) {
  nn::Sequential field(nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 2));
  field->to(device);
  torch::optim::Adam optimizer(field->parameters(), 1e-2);
  constexpr int kRounds = 12;
  const double h = 1.0 / kRounds;
  for (int step = 0; step < kManySteps / 2; ++step) {
    const torch::Tensor start = torch::randn({8, 2}).to(device);
    torch::Tensor x = start;
    for (int round = 0; round < kRounds; ++round) {
      const torch::Tensor a = field->forward(x), b = field->forward(x + 0.5 * h * a);
      const torch::Tensor c = field->forward(x + 0.5 * h * b), d = field->forward(x + h * c);
      x = x + h / 6 * (a + 2 * b + 2 * c + d);
    }
    const torch::Tensor loss = F::mse_loss(x, torch::stack({start.select(1, 1), -start.select(1, 0)}, 1));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// Cho et al. (2014), by hand: the sum of each sequence so far.
void gated_unit_by_hand(torch::Device device, Curve& curve) {
  const auto parameter = [&](at::IntArrayRef sizes) {
    return (0.3 * torch::randn(sizes)).to(device).requires_grad_();
  };
  const torch::Tensor in = parameter({3, 48}), back = parameter({16, 48}), bias = parameter({48}),
                      out = parameter({16, 1});
  torch::optim::Adam optimizer(std::vector<torch::Tensor>{in, back, bias, out}, 1e-2);
  for (int step = 0; step < kManySteps / 2; ++step) {
    const torch::Tensor x = torch::randn({20, 8, 3}).to(device);
    torch::Tensor hidden = torch::zeros({8, 16}, device), loss = torch::zeros({}, device),
                  wanted = torch::zeros({8}, device);
    for (int64_t i = 0; i < x.size(0); ++i) {
      const auto from_x = (x[i].mm(in) + bias).chunk(3, 1), from_hidden = hidden.mm(back).chunk(3, 1);
      const torch::Tensor reset = torch::sigmoid(from_x[0] + from_hidden[0]);
      const torch::Tensor keep = torch::sigmoid(from_x[1] + from_hidden[1]);
      const torch::Tensor fresh = torch::tanh(from_x[2] + reset * from_hidden[2]);
      hidden = keep * hidden + (1 - keep) * fresh;
      wanted = wanted + 0.1 * x[i].sum(1);
      loss = loss + F::mse_loss(hidden.mm(out).squeeze(1), wanted);
    }
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// A caption for each image, of its own length.
void captions(torch::Device device, Curve& curve) {
  nn::Conv2d eye(nn::Conv2dOptions(1, 8, 3).stride(2));
  nn::Embedding words(12, 8);
  nn::LSTM speaker(nn::LSTMOptions(8, 8).batch_first(true));
  nn::Linear head(8, 12);
  std::vector<torch::Tensor> parameters;
  const auto add = [&](auto& module) {
    module->to(device);
    for (const torch::Tensor& one : module->parameters()) parameters.push_back(one);
  };
  add(eye), add(words), add(speaker), add(head);
  torch::optim::Adam optimizer(parameters, 1e-2);
  for (int step = 0; step < kManySteps; ++step) {
    std::vector<torch::Tensor> sentences;
    for (int i = 0; i < 3; ++i) {
      const int64_t length = 2 + torch::randint(14, {1}).item<int64_t>();
      sentences.push_back(torch::arange(length) % 5 + 1);
    }
    const auto [text, there] = pad_to(sentences, {8, 16});
    const torch::Tensor image = images(3, 1, 9, device), ids = text.to(device), mask = there.to(device);
    const torch::Tensor seen = torch::relu(eye->forward(image)).mean({2, 3});
    const torch::Tensor inputs = words->forward(ids.slice(1, 0, -1)) + seen.unsqueeze(1);
    const torch::Tensor scores = head->forward(std::get<0>(speaker->forward(inputs)));
    const torch::Tensor each = F::cross_entropy(scores.transpose(1, 2), ids.slice(1, 1),
                                                F::CrossEntropyFuncOptions().reduction(torch::kNone));
    const torch::Tensor real = mask.slice(1, 1).to(torch::kFloat);
    const torch::Tensor loss = (each * real).sum() / real.sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// Which word a sentence has most often, read from both ends.
void sentence_classes(torch::Device device, Curve& curve) {
  nn::Embedding words(6, 8);
  nn::LSTM reader(nn::LSTMOptions(8, 8).bidirectional(true));
  nn::Linear head(16, 6);
  std::vector<torch::Tensor> parameters;
  const auto add = [&](auto& module) {
    module->to(device);
    for (const torch::Tensor& one : module->parameters()) parameters.push_back(one);
  };
  add(words), add(reader), add(head);
  torch::optim::Adam optimizer(parameters, 1e-2);
  for (int step = 0; step < kManySteps; ++step) {
    std::vector<torch::Tensor> sentences;
    for (int i = 0; i < 4; ++i)
      sentences.push_back(labels(1 + labels(1, 15, torch::kCPU).item<int64_t>(), 6, torch::kCPU));
    std::vector<torch::Tensor> most;
    for (const torch::Tensor& one : sentences) most.push_back(std::get<0>(one.mode()));
    const auto [ids, there] = pad_to(sentences, {8, 16});
    const torch::Tensor text = words->forward(ids.to(device));
    const auto [output, state] = forward_padded(reader, {text, there.to(device)});
    const torch::Tensor last = std::get<0>(state).transpose(0, 1).flatten(1);
    const torch::Tensor loss =
        F::cross_entropy(head->forward(last), torch::stack(most).to(device)) + 0.01 * output.pow(2).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

// Token by token, without a cache: the text grows, its padded length seldom does.
void growing_text(torch::Device device, Curve& curve) {
  nn::Embedding words(16, 8);
  nn::Linear mix(8, 8), head(8, 16);
  words->to(device);
  mix->to(device);
  head->to(device);
  torch::NoGradGuard no_grad;
  torch::Tensor text = torch::tensor({3}, torch::kLong);
  for (int step = 0; step < kManySteps; ++step) {
    const auto [ids, there] = pad_to(text, {8, 16, 32});
    const torch::Tensor embedded = words->forward(ids.to(device)), mask = there.to(device).unsqueeze(1);
    const torch::Tensor last = torch::tensor({text.size(0) - 1}, torch::kLong).to(device);
    const torch::Tensor asked = mix->forward(embedded.index_select(0, last));
    const torch::Tensor weights = embedded.mm(asked.t()).masked_fill(~mask, -INFINITY).softmax(0);
    const torch::Tensor scores = head->forward((weights * embedded).sum(0) + asked[0]);
    text = torch::cat({text, scores.argmax().cpu().reshape({1})});
    curve.add(scores.logsumexp(0) + 0.01 * text.size(0));
  }
}

}  // namespace

std::vector<TutorialProgram> varying_programs() {
  return {{"proximal_policy", proximal_policy},
          {"advantage_actor_critic", advantage_actor_critic},
          {"deep_q_replay", deep_q_replay, 2e-3, 2},
          {"differential_equation", differential_equation},
          {"gated_unit_by_hand", gated_unit_by_hand},
          {"captions", captions, 2e-3, 1},
          {"sentence_classes", sentence_classes, 2e-3, 1},
          {"growing_text", growing_text, 2e-3, 2}};
}

}  // namespace sluice::tests
