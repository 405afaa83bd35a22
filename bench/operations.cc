// One operation and its gradient, on the device beside LibTorch eager on the same cores.
//
//   bench_operations [rounds [operation…]]
//
// Prints JSON: for each shape both medians in milliseconds, and eager's divided by the device's. Each round
// runs one side after the other; the first run, which compiles, is apart. SLUICE_CPU_KERNELS=0 leaves the
// device to XLA's own code; eager is the same then and makes the two runs comparable.
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/against_eager.h"
#include "sluice/device/device.h"

namespace sluice::bench {
namespace {

namespace functional = torch::nn::functional;

enum class Mask { kNone, kCausal, kFilledUp, kDocuments };

// [batch or 1, 1, positions or 1, positions]: a quarter of each row is filled up, or four documents stand
// beside each other.
Tensor mask_of(Mask kind, int64_t positions) {
  const Tensor place = torch::arange(positions), document = (place * 4).floor_divide(positions);
  if (kind == Mask::kFilledUp) return (place < positions * 3 / 4).view({1, 1, 1, positions});
  return document.view({1, 1, positions, 1}).eq(document.view({1, 1, 1, positions}));
}

// From [batch, positions, heads * size], as models make queries, keys and values.
MakeCase attention(int64_t batch, int64_t heads, int64_t positions, int64_t size, Mask kind = Mask::kNone,
                   int64_t heads_of_keys = 0, double dropout = 0) {
  return [=](torch::Device device) {
    const int64_t of_keys = heads_of_keys > 0 ? heads_of_keys : heads;
    Case made;
    for (const int64_t some : {heads, of_keys, of_keys})
      made.parameters.push_back(random_parameter({batch, positions, some * size}, device));
    std::optional<Tensor> mask;
    if (kind == Mask::kFilledUp || kind == Mask::kDocuments) mask = mask_of(kind, positions).to(device);
    made.operation = [=, parameters = made.parameters] {
      std::vector<Tensor> split;
      for (const Tensor& x : parameters)
        split.push_back(x.view({batch, positions, -1, size}).transpose(1, 2));
      return at::scaled_dot_product_attention(split[0], split[1], split[2], mask, dropout,
                                              kind == Mask::kCausal, {}, of_keys != heads)
          .transpose(1, 2)
          .reshape({batch, positions, heads * size});
    };
    return made;
  };
}

MakeCase layer_norm(int64_t rows, int64_t columns) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, columns}, device), random_parameter({columns}, device),
                       random_parameter({columns}, device)};
    made.operation = [columns, p = made.parameters] {
      return torch::layer_norm(p[0], {columns}, p[1], p[2]);
    };
    return made;
  };
}

MakeCase cross_entropy(int64_t rows, int64_t classes) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, classes}, device)};
    const Tensor target = torch::randint(0, classes, {rows}).to(device);
    made.operation = [target, x = made.parameters[0]] { return functional::cross_entropy(x, target); };
    return made;
  };
}

MakeCase embedding(int64_t words, int64_t columns, int64_t vocabulary) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({vocabulary, columns}, device)};
    const Tensor indices = torch::randint(0, vocabulary, {words}).to(device);
    made.operation = [indices, w = made.parameters[0]] { return torch::embedding(w, indices); };
    return made;
  };
}

MakeCase gelu(int64_t rows, int64_t columns) {
  return [=](torch::Device device) {
    Case made;
    made.parameters = {random_parameter({rows, columns}, device)};
    made.operation = [x = made.parameters[0]] { return torch::gelu(x); };
    return made;
  };
}

// A layer of torch::nn on [steps, batch, features], for its output.
template <typename Module>
MakeCase recurrent(Module module, int64_t steps, int64_t batch) {
  return [=](torch::Device device) {
    Case made;
    auto model = std::dynamic_pointer_cast<typename Module::ContainedType>(module->clone(device));
    made.parameters = model->parameters();
    const Tensor x = torch::randn({steps, batch, model->options_base.input_size()}).to(device);
    made.operation = [model, x] { return std::get<0>(model->forward(x)); };
    return made;
  };
}

MakeCase lstm(int64_t features, int64_t hidden, int64_t layers, bool both, int64_t steps, int64_t batch) {
  return recurrent(
      torch::nn::LSTM(torch::nn::LSTMOptions(features, hidden).num_layers(layers).bidirectional(both)), steps,
      batch);
}

MakeCase gru(int64_t features, int64_t hidden, int64_t layers, bool both, int64_t steps, int64_t batch) {
  return recurrent(
      torch::nn::GRU(torch::nn::GRUOptions(features, hidden).num_layers(layers).bidirectional(both)), steps,
      batch);
}

MakeCase plain_rnn(int64_t features, int64_t hidden, int64_t layers, int64_t steps, int64_t batch) {
  return recurrent(torch::nn::RNN(torch::nn::RNNOptions(features, hidden).num_layers(layers)), steps, batch);
}

int run(int argc, char** argv) {
  const std::map<std::string, std::map<std::string, MakeCase>> all = {
      {"attention",
       {{"16 x 8 heads, 128 x 32", attention(16, 8, 128, 32)},
        {"4 x 12 heads, 512 x 64", attention(4, 12, 512, 64)},
        {"1 x 12 heads, 2048 x 64, causal", attention(1, 12, 2048, 64, Mask::kCausal)},
        {"8 x 12 heads, 197 x 64", attention(8, 12, 197, 64)},
        {"16 x 12 heads, 128 x 64, filled up", attention(16, 12, 128, 64, Mask::kFilledUp)},
        {"4 x 12 heads, 512 x 64, documents", attention(4, 12, 512, 64, Mask::kDocuments)},
        {"4 x 12 heads, 512 x 64, causal, keys of 4", attention(4, 12, 512, 64, Mask::kCausal, 4)},
        {"16 x 12 heads, 128 x 64, dropout", attention(16, 12, 128, 64, Mask::kNone, 0, 0.1)},
        {"4 x 12 heads, 512 x 64, dropout", attention(4, 12, 512, 64, Mask::kNone, 0, 0.1)},
        {"4 x 12 heads, 512 x 64, causal", attention(4, 12, 512, 64, Mask::kCausal)},
        {"4 x 12 heads, 512 x 64, causal, dropout", attention(4, 12, 512, 64, Mask::kCausal, 0, 0.1)}}},
      {"layer_norm",
       {{"2048 x 256", layer_norm(2048, 256)},
        {"4096 x 768", layer_norm(4096, 768)},
        {"8192 x 100", layer_norm(8192, 100)}}},
      {"cross_entropy",
       {{"2048 x 1000", cross_entropy(2048, 1000)}, {"1024 x 32000", cross_entropy(1024, 32000)}}},
      {"embedding",
       {{"2048 x 256 of 1000", embedding(2048, 256, 1000)},
        {"2048 x 256 of 30000", embedding(2048, 256, 30000)},
        {"8192 x 768 of 1000", embedding(8192, 768, 1000)}}},
      {"gelu", {{"2048 x 1024", gelu(2048, 1024)}}},
      {"lstm",
       {{"28 steps of 100 x 28, 2 layers of 128", lstm(28, 128, 2, false, 28, 100)},
        {"28 steps of 100 x 28, 2 layers of 128, both directions", lstm(28, 128, 2, true, 28, 100)},
        {"100 steps of 32 x 256, 1 layer of 256", lstm(256, 256, 1, false, 100, 32)}}},
      {"gru",
       {{"28 steps of 100 x 28, 2 layers of 128", gru(28, 128, 2, false, 28, 100)},
        {"28 steps of 100 x 28, 2 layers of 128, both directions", gru(28, 128, 2, true, 28, 100)}}},
      {"rnn", {{"28 steps of 100 x 28, 2 layers of 128", plain_rnn(28, 128, 2, 28, 100)}}},
  };
  const Rounds rounds{.count = argc > 1 ? std::atoi(argv[1]) : 15};
  const std::vector<std::string> chosen(argv + std::min(argc, 2), argv + argc);
  torch::set_num_threads(kThreads);
  init();
  nlohmann::json found;
  for (const auto& [operation, shapes] : all) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), operation) == chosen.end()) continue;
    for (const auto& [shape, make] : shapes) found[operation][shape] = compare(make, rounds);
  }
  std::cout << found.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
