// Language, time series, attention.
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

torch::Tensor tokens(int64_t batch, int64_t length, int64_t vocabulary, torch::Device device) {
  return torch::randint(vocabulary, {batch, length}, torch::kLong).to(device);
}

template <typename Forward>
void train_on_text(torch::optim::Optimizer& optimizer, const Forward& loss_of, Curve& curve) {
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = loss_of(step);
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

struct CharacterImpl : nn::Module {
  CharacterImpl() {
    embedding = register_module("embedding", nn::Embedding(12, 8));
    lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 16).batch_first(true)));
    fc = register_module("fc", nn::Linear(16, 12));
  }
  torch::Tensor forward(torch::Tensor x) {
    return fc->forward(std::get<0>(lstm->forward(embedding->forward(x))));
  }
  nn::Embedding embedding{nullptr};
  nn::LSTM lstm{nullptr};
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Character);

void character_lstm(torch::Device device, Curve& curve) {
  Character model;
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 1e-2);
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor text = tokens(4, 9, 12, device);
        torch::Tensor scores = model->forward(text.slice(1, 0, 8));
        return F::cross_entropy(scores.reshape({-1, 12}), text.slice(1, 1, 9).reshape(-1));
      },
      curve);
}

void bidirectional_sentiment(torch::Device device, Curve& curve) {
  nn::Embedding embedding(nn::EmbeddingOptions(20, 8).padding_idx(0));
  nn::GRU gru(nn::GRUOptions(8, 8).num_layers(2).bidirectional(true));
  nn::Linear fc(16, 2);
  std::vector<torch::Tensor> parameters;
  embedding->to(device);
  gru->to(device);
  fc->to(device);
  for (const auto& some : {embedding->parameters(), gru->parameters(), fc->parameters()})
    parameters.insert(parameters.end(), some.begin(), some.end());
  torch::optim::Adam optimizer(parameters, 1e-2);
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor hidden = std::get<1>(gru->forward(embedding->forward(tokens(6, 5, 20, device))));
        torch::Tensor last = torch::cat({hidden[-2], hidden[-1]}, 1);
        return F::cross_entropy(fc->forward(last), labels(5, 2, device));
      },
      curve);
}

void sine_wave(torch::Device device, Curve& curve) {
  nn::LSTMCell first(1, 8), second(8, 8);
  nn::Linear out(8, 1);
  first->to(device);
  second->to(device);
  out->to(device);
  std::vector<torch::Tensor> parameters;
  for (const auto& some : {first->parameters(), second->parameters(), out->parameters()})
    parameters.insert(parameters.end(), some.begin(), some.end());
  torch::optim::RMSprop optimizer(parameters, 1e-2);
  torch::Tensor wave = torch::sin(torch::linspace(0, 6, 7)).expand({3, 7}).contiguous().to(device);
  train_on_text(
      optimizer,
      [&](int) {
        auto zeros = [&] { return torch::zeros({3, 8}, device); };
        std::tuple<torch::Tensor, torch::Tensor> one{zeros(), zeros()}, two{zeros(), zeros()};
        std::vector<torch::Tensor> outputs;
        for (const torch::Tensor& value : wave.slice(1, 0, 6).split(1, 1)) {
          one = first->forward(value, one);
          two = second->forward(std::get<0>(one), two);
          outputs.push_back(out->forward(std::get<0>(two)));
        }
        return F::mse_loss(torch::cat(outputs, 1), wave.slice(1, 1, 7));
      },
      curve);
}

struct TranslatorImpl : nn::Module {
  TranslatorImpl() {
    source = register_module("source", nn::Embedding(10, 8));
    target = register_module("target", nn::Embedding(10, 8));
    encoder = register_module("encoder", nn::GRU(8, 8));
    decoder = register_module("decoder", nn::GRUCell(16, 8));
    fc = register_module("fc", nn::Linear(8, 10));
  }
  torch::Tensor forward(torch::Tensor from, torch::Tensor to) {
    auto [memory, hidden] = encoder->forward(source->forward(from));
    torch::Tensor state = hidden[0], loss = torch::zeros({}, from.device());
    for (int64_t i = 0; i + 1 < to.size(0); ++i) {
      torch::Tensor weights = torch::softmax((memory * state).sum(-1), 0);
      torch::Tensor context = (memory * weights.unsqueeze(-1)).sum(0);
      state = decoder->forward(torch::cat({target->forward(to[i]), context}, 1), state);
      loss = loss + F::cross_entropy(fc->forward(state), to[i + 1]);
    }
    return loss;
  }
  nn::Embedding source{nullptr}, target{nullptr};
  nn::GRU encoder{nullptr};
  nn::GRUCell decoder{nullptr};
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Translator);

void translation_with_attention(torch::Device device, Curve& curve) {
  Translator model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  train_on_text(
      optimizer, [&](int) { return model->forward(tokens(5, 4, 10, device), tokens(4, 4, 10, device)); },
      curve);
}

void skip_gram(torch::Device device, Curve& curve) {
  nn::Embedding centers(20, 8), contexts(20, 8);
  centers->to(device);
  contexts->to(device);
  torch::optim::Adagrad optimizer(std::vector<torch::Tensor>{centers->weight, contexts->weight}, 0.5);
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor center = centers->forward(labels(8, 20, device));
        torch::Tensor near = contexts->forward(labels(8, 20, device));
        torch::Tensor far = contexts->forward(tokens(8, 3, 20, device));
        torch::Tensor good = F::logsigmoid((center * near).sum(1));
        torch::Tensor bad = F::logsigmoid(-torch::bmm(far, center.unsqueeze(2)).squeeze(2)).sum(1);
        return -(good + bad).mean();
      },
      curve);
}

void n_grams(torch::Device device, Curve& curve) {
  nn::Embedding embedding(15, 6);
  nn::Sequential model(nn::Linear(12, 16), nn::ReLU(), nn::Linear(16, 15), nn::LogSoftmax(1));
  embedding->to(device);
  model->to(device);
  std::vector<torch::Tensor> parameters = model->parameters();
  parameters.push_back(embedding->weight);
  torch::optim::SGD optimizer(parameters, 0.2);
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor context = embedding->forward(tokens(8, 2, 15, device)).view({8, 12});
        return F::nll_loss(model->forward(context), labels(8, 15, device));
      },
      curve);
}

void transformer_encoder(torch::Device device, Curve& curve) {
  nn::Embedding embedding(12, 16);
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(16, 2).dim_feedforward(32).dropout(0.0)),
      2);
  nn::Linear fc(16, 3);
  embedding->to(device);
  encoder->to(device);
  fc->to(device);
  std::vector<torch::Tensor> parameters;
  for (const auto& some : {embedding->parameters(), encoder->parameters(), fc->parameters()})
    parameters.insert(parameters.end(), some.begin(), some.end());
  torch::optim::AdamW optimizer(parameters, 1e-3);
  torch::Tensor padding = torch::zeros({4, 6}, torch::kBool);
  padding.slice(1, 4).slice(0, 2).fill_(true);
  padding = padding.to(device);
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor x = embedding->forward(tokens(6, 4, 12, device));
        x = encoder->forward(x, {}, padding);
        return F::cross_entropy(fc->forward(x.mean(0)), labels(4, 3, device));
      },
      curve);
}

struct CausalBlockImpl : nn::Module {
  CausalBlockImpl() {
    ln1 = register_module("ln1", nn::LayerNorm(nn::LayerNormOptions({16})));
    ln2 = register_module("ln2", nn::LayerNorm(nn::LayerNormOptions({16})));
    qkv = register_module("qkv", nn::Linear(16, 48));
    proj = register_module("proj", nn::Linear(16, 16));
    mlp = register_module("mlp", nn::Sequential(nn::Linear(16, 64), nn::GELU(), nn::Linear(64, 16)));
  }
  torch::Tensor forward(torch::Tensor x) {
    const int64_t batch = x.size(0), length = x.size(1);
    auto parts = qkv->forward(ln1->forward(x)).chunk(3, -1);
    auto heads = [&](const torch::Tensor& t) { return t.view({batch, length, 2, 8}).transpose(1, 2); };
    torch::Tensor scores = torch::matmul(heads(parts[0]), heads(parts[1]).transpose(-2, -1)) / std::sqrt(8.0);
    torch::Tensor mask = torch::ones({length, length}, x.options().dtype(torch::kBool)).tril().logical_not();
    scores = scores.masked_fill(mask, -std::numeric_limits<float>::infinity());
    torch::Tensor y = torch::matmul(torch::softmax(scores, -1), heads(parts[2]));
    x = x + proj->forward(y.transpose(1, 2).reshape({batch, length, 16}));
    return x + mlp->forward(ln2->forward(x));
  }
  nn::LayerNorm ln1{nullptr}, ln2{nullptr};
  nn::Linear qkv{nullptr}, proj{nullptr};
  nn::Sequential mlp{nullptr};
};
TORCH_MODULE(CausalBlock);

void small_gpt(torch::Device device, Curve& curve) {
  nn::Embedding words(12, 16), positions(8, 16);
  CausalBlock block;
  words->to(device);
  positions->to(device);
  block->to(device);
  std::vector<torch::Tensor> parameters = block->parameters();
  parameters.push_back(words->weight);
  parameters.push_back(positions->weight);
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}));
  train_on_text(
      optimizer,
      [&](int) {
        torch::Tensor text = tokens(4, 9, 12, device), x = text.slice(1, 0, 8);
        torch::Tensor hidden = words->forward(x) + positions->forward(torch::arange(8, text.options()));
        torch::Tensor scores = torch::matmul(block->forward(hidden), words->weight.t());
        return F::cross_entropy(scores.view({-1, 12}), text.slice(1, 1, 9).reshape(-1));
      },
      curve);
}

// A spectrogram's next frame by dilated causal convolutions, whose weights are directions and lengths.
void dilated_convolutions(torch::Device device, Curve& curve) {
  struct Layer {
    torch::Tensor v, g;
    int64_t dilation;
  };
  std::vector<Layer> layers;
  std::vector<torch::Tensor> parameters;
  for (const int64_t dilation : {1, 2}) {
    torch::Tensor v = (0.3 * torch::randn({9, 9, 2})).to(device).requires_grad_();
    torch::Tensor g = torch::norm_except_dim(v.detach(), 2, 0).requires_grad_();
    layers.push_back({v, g, dilation});
    parameters.insert(parameters.end(), {v, g});
  }
  torch::optim::Adam optimizer(parameters, 1e-2);
  const torch::Tensor window = torch::kaiser_window(16, true, 8.0, torch::TensorOptions(device));
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor sound = torch::randn({2, 128}).cumsum(1).sin().to(device);
    const torch::Tensor frames =
        torch::stft(sound, 16, 4, 16, window, /*center=*/true, "reflect",
                    /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
    const torch::Tensor levels = torch::log1p(frames.abs());
    torch::Tensor x = levels.slice(2, 0, -1);
    for (const Layer& layer : layers) {
      const torch::Tensor padded = F::pad(x, F::PadFuncOptions({layer.dilation, 0}));
      x = x + torch::tanh(F::conv1d(padded, torch::_weight_norm(layer.v, layer.g, 0),
                                    F::Conv1dFuncOptions().dilation(layer.dilation)));
    }
    torch::Tensor loss = F::l1_loss(x, levels.slice(2, 1));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

}  // namespace

std::vector<TutorialProgram> sequence_programs() {
  return {{"character_lstm", character_lstm},
          {"bidirectional_sentiment", bidirectional_sentiment},
          {"sine_wave", sine_wave},
          {"translation_with_attention", translation_with_attention},
          {"skip_gram", skip_gram},
          {"n_grams", n_grams},
          {"transformer_encoder", transformer_encoder},
          {"small_gpt", small_gpt},
          {"dilated_convolutions", dilated_convolutions}};
}

}  // namespace sluice::tests
