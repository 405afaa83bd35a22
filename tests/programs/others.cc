// Regression, reinforcement learning, recommendation, metric learning, and autograd's own tools.
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// Without a module: parameters, gradients and updates by hand.
void polynomial(torch::Device device, Curve& curve) {
  torch::Tensor x = torch::linspace(-1, 1, 64).to(device), y = torch::sin(3 * x);
  torch::Tensor a = torch::randn({}).to(device).requires_grad_(),
                b = torch::randn({}).to(device).requires_grad_();
  torch::Tensor c = torch::randn({}).to(device).requires_grad_(),
                d = torch::randn({}).to(device).requires_grad_();
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor predicted = a + b * x + c * x.pow(2) + d * x.pow(3);
    torch::Tensor loss = (predicted - y).pow(2).sum();
    loss.backward();
    {
      torch::NoGradGuard no_grad;
      for (torch::Tensor* parameter : {&a, &b, &c, &d}) {
        *parameter -= 1e-3 * parameter->grad();
        parameter->mutable_grad().zero_();
      }
    }
    curve.add(loss);
  }
}

struct LegendreOf3 : torch::autograd::Function<LegendreOf3> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return 0.5 * (5 * x.pow(3) - 3 * x);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    torch::Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * 1.5 * (5 * x.pow(2) - 1)};
  }
};

void custom_function(torch::Device device, Curve& curve) {
  torch::Tensor x = torch::linspace(-1, 1, 64).to(device), y = torch::sin(3 * x);
  torch::Tensor weights = (0.3 * torch::randn({4})).to(device).requires_grad_();
  torch::optim::SGD optimizer({weights}, 1e-4);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor predicted = weights[0] + weights[1] * LegendreOf3::apply(weights[2] + weights[3] * x);
    torch::Tensor loss = (predicted - y).pow(2).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void deep_q_learning(torch::Device device, Curve& curve) {
  auto make = [] { return nn::Sequential(nn::Linear(4, 32), nn::ReLU(), nn::Linear(32, 2)); };
  nn::Sequential policy = make(), target = make();
  policy->to(device);
  target->to(device);
  auto follow = [&](double share) {
    torch::NoGradGuard no_grad;
    auto from = policy->parameters(), to = target->parameters();
    for (size_t i = 0; i < to.size(); ++i) to[i].copy_(share * from[i] + (1 - share) * to[i]);
  };
  follow(1);
  torch::optim::AdamW optimizer(policy->parameters(), torch::optim::AdamWOptions(1e-2).amsgrad(true));
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor state = torch::randn({16, 4}).to(device), next = torch::randn({16, 4}).to(device);
    torch::Tensor action = torch::randint(2, {16, 1}, torch::kLong).to(device),
                  reward = torch::rand({16}).to(device);
    torch::Tensor done = (torch::rand({16}) < 0.2).to(device);
    torch::Tensor value = policy->forward(state).gather(1, action);
    torch::Tensor expected;
    {
      torch::NoGradGuard no_grad;
      torch::Tensor later = std::get<0>(target->forward(next).max(1));
      expected = reward + 0.9 * later.masked_fill(done, 0);
    }
    torch::Tensor loss = F::smooth_l1_loss(value, expected.unsqueeze(1));
    optimizer.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_value_(policy->parameters(), 100);
    optimizer.step();
    follow(0.1);
    curve.add(loss);
  }
}

void policy_gradient(torch::Device device, Curve& curve) {
  nn::Sequential policy(nn::Linear(4, 16), nn::ReLU(), nn::Linear(16, 2), nn::Softmax(1));
  policy->to(device);
  torch::optim::Adam optimizer(policy->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor states = torch::randn({10, 4}).to(device), actions = labels(10, 2, device);
    torch::Tensor returns = torch::cumsum(torch::rand({10}), 0).flip(0).to(device);
    returns = (returns - returns.mean()) / (returns.std() + 1e-6);
    torch::Tensor chosen = policy->forward(states).gather(1, actions.unsqueeze(1)).squeeze(1);
    torch::Tensor loss = -(chosen.log() * returns).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void matrix_factorization(torch::Device device, Curve& curve) {
  nn::Embedding users(20, 8), items(30, 8);
  users->to(device);
  items->to(device);
  std::vector<torch::Tensor> parameters = {users->weight, items->weight};
  torch::optim::SGD optimizer(parameters, 0.5);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor user = labels(16, 20, device), item = labels(16, 30, device);
    torch::Tensor rating = torch::rand({16}).to(device);
    torch::Tensor loss = F::mse_loss((users->forward(user) * items->forward(item)).sum(1), rating);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void triplets(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor anchor = torch::randn({8, 16});
    torch::Tensor near = anchor + 0.1 * torch::randn({8, 16}), far = torch::randn({8, 16});
    auto embed = [&](const torch::Tensor& x) { return F::normalize(model->forward(x.to(device))); };
    torch::Tensor loss = F::triplet_margin_loss(embed(anchor), embed(near), embed(far));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

void moving_average(torch::Device device, Curve& curve) {
  nn::Sequential model(nn::Linear(8, 16), nn::SELU(), nn::Linear(16, 1));
  model->to(device);
  std::vector<torch::Tensor> average;
  for (const auto& parameter : model->parameters()) average.push_back(parameter.detach().clone());
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  for (int step = 0; step < kSteps; ++step) {
    torch::Tensor x = torch::randn({16, 8}).to(device);
    torch::Tensor loss = F::huber_loss(model->forward(x).squeeze(-1), x.sum(1));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < average.size(); ++i) average[i].mul_(0.9).add_(model->parameters()[i], 0.1);
    curve.add(loss + average[0].norm());
  }
}

}  // namespace

std::vector<TutorialProgram> other_programs() {
  return {{"polynomial", polynomial},
          {"custom_function", custom_function},
          {"deep_q_learning", deep_q_learning},
          {"policy_gradient", policy_gradient},
          {"matrix_factorization", matrix_factorization},
          {"triplets", triplets},
          {"moving_average", moving_average}};
}

}  // namespace sluice::tests
