// Graph convolutions (Kipf and Welling, 2017) find the groups of a network from a few labelled nodes.
#include <sluice/sluice.h>
#include <torch/torch.h>

#include "gallery.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kNodes = 240, kGroups = 4, kLabelled = 16, kFeatures = 16;

// Symmetric links [kNodes, kNodes]: frequent within a group, rare between groups.
torch::Tensor links_of(const torch::Tensor& group) {
  const auto same = group.unsqueeze(0).eq(group.unsqueeze(1));
  const auto chance = torch::where(same, torch::full({}, 0.08), torch::full({}, 0.01));
  const auto above = (torch::rand({kNodes, kNodes}) < chance).triu(1).to(torch::kFloat);
  return above + above.t();
}

// Links with one from each node to itself, divided by the square roots of both degrees.
torch::Tensor normalized(const torch::Tensor& links) {
  const auto with_self = links + torch::eye(kNodes);
  const auto scale = with_self.sum(1).rsqrt();
  return scale.unsqueeze(1) * with_self * scale.unsqueeze(0);
}

struct GraphNetImpl : nn::Module {
  GraphNetImpl() {
    first = register_module("first", nn::Linear(kFeatures, 32));
    second = register_module("second", nn::Linear(32, 32));
    third = register_module("third", nn::Linear(32, kGroups));
  }
  torch::Tensor forward(const torch::Tensor& links, torch::Tensor x) {
    x = torch::relu(torch::mm(links, first(x)));
    x = torch::relu(torch::mm(links, second(x)));
    return torch::mm(links, third(x));
  }
  nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};
TORCH_MODULE(GraphNet);

int main(int argc, char** argv) {
  gallery::Run run("graph_convolution", argc, argv, 200);
  if (run.device.is_xla()) sluice::init();  // Sluice

  const auto group = torch::arange(kNodes) % kGroups;
  const auto links = normalized(links_of(group)).to(run.device);
  // Features say little: noise, and a hint of the group in one of four columns.
  const auto hint = F::pad(F::one_hot(group, kGroups), F::PadFuncOptions({0, kFeatures - kGroups}));
  const auto features = (torch::randn({kNodes, kFeatures}) + hint).to(run.device);
  const auto known = (torch::arange(kNodes) < kLabelled).to(run.device);
  const auto labels = group.to(run.device);
  const auto targets = torch::where(known, labels, torch::full_like(labels, -100));  // -100 is ignored

  GraphNet model;
  model->to(run.device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2).weight_decay(5e-3));
  sluice::create_state(optimizer);  // Sluice
  sluice::sync();                   // Sluice

  for (int64_t step = 0; step < run.steps; ++step) {
    optimizer.zero_grad();
    const auto loss = F::cross_entropy(model->forward(links, features), targets);
    loss.backward();
    optimizer.step();
    sluice::sync();  // Sluice
    run.log(step, loss);
  }

  torch::NoGradGuard no_grad;
  const auto right = model->forward(links, features).argmax(1).eq(labels) & known.logical_not();
  return run.done("accuracy", right.sum().item<double>() / (kNodes - kLabelled));
}
