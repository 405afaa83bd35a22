// Writes docs/nn.md: which functions and modules of torch::nn run on the device as a whole, found by running
// each forward and backward.
//   sluice_nn_page > docs/nn.md
//   sluice_nn_page --check docs/nn.md HEADERS     fails when the page is not what runs, or when LibTorch's
//   headers
//                                                 (the folder torch/nn/functional) have a function that is
//                                                 not here
#include <torch/torch.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/device/device.h"

namespace {

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using torch::Tensor;

const torch::Device kDevice("xla:0");

// Inputs on the device: floats that want a gradient, floats without, labels below `classes`.
Tensor x(at::IntArrayRef sizes) { return torch::randn(sizes).to(kDevice).requires_grad_(); }
Tensor fixed(at::IntArrayRef sizes) { return torch::rand(sizes).to(kDevice); }
Tensor labels(at::IntArrayRef sizes, int64_t classes) {
  return torch::randint(classes, sizes, torch::kLong).to(kDevice);
}
Tensor whole(std::vector<int64_t> numbers) { return torch::tensor(numbers).to(kDevice); }

template <typename Module>
Module on_device(Module module) {
  module->to(kDevice);
  return module;
}

using Run = std::function<Tensor()>;
using Cases = std::map<std::string, Run>;

Cases activations() {
  return {
      {"celu",
       [] {
         return F::celu(x({3, 4}));
       }},
      {"elu",
       [] {
         return F::elu(x({3, 4}));
       }},
      {"gelu",
       [] {
         return F::gelu(x({3, 4}));
       }},
      {"glu",
       [] {
         return F::glu(x({3, 4}));
       }},
      {"gumbel_softmax",
       [] {
         return F::gumbel_softmax(x({3, 4}), F::GumbelSoftmaxFuncOptions().hard(true).dim(1));
       }},
      {"hardshrink",
       [] {
         return F::hardshrink(x({3, 4}));
       }},
      {"hardtanh",
       [] {
         return F::hardtanh(x({3, 4}));
       }},
      {"leaky_relu",
       [] {
         return F::leaky_relu(x({3, 4}));
       }},
      {"log_softmax",
       [] {
         return F::log_softmax(x({3, 4}), 1);
       }},
      {"logsigmoid",
       [] {
         return F::logsigmoid(x({3, 4}));
       }},
      {"mish",
       [] {
         return F::mish(x({3, 4}));
       }},
      {"prelu",
       [] {
         return F::prelu(x({3, 4}), x({4}));
       }},
      {"relu",
       [] {
         return F::relu(x({3, 4}));
       }},
      {"relu6",
       [] {
         return F::relu6(x({3, 4}));
       }},
      {"rrelu",
       [] {
         return F::rrelu(x({3, 4}), F::RReLUFuncOptions().training(true));
       }},
      {"selu",
       [] {
         return F::selu(x({3, 4}));
       }},
      {"silu",
       [] {
         return F::silu(x({3, 4}));
       }},
      {"softmax",
       [] {
         return F::softmax(x({3, 4}), 1);
       }},
      {"softmin",
       [] {
         return F::softmin(x({3, 4}), 1);
       }},
      {"softplus",
       [] {
         return F::softplus(x({3, 4}));
       }},
      {"softshrink",
       [] {
         return F::softshrink(x({3, 4}));
       }},
      {"softsign",
       [] {
         return F::softsign(x({3, 4}));
       }},
      {"tanhshrink",
       [] {
         return F::tanhshrink(x({3, 4}));
       }},
      {"threshold",
       [] {
         return F::threshold(x({3, 4}), F::ThresholdFuncOptions(0.1, 2));
       }},
  };
}

Cases layers() {
  return {
      {"alpha_dropout",
       [] {
         return F::alpha_dropout(x({3, 4}), F::AlphaDropoutFuncOptions().training(true));
       }},
      {"batch_norm",
       [] {
         return F::batch_norm(x({4, 3}), fixed({3}), fixed({3}), F::BatchNormFuncOptions().training(true));
       }},
      {"bilinear",
       [] {
         return F::bilinear(x({3, 4}), x({3, 5}), x({2, 4, 5}), x({2}));
       }},
      {"conv1d",
       [] {
         return F::conv1d(x({2, 3, 8}), x({4, 3, 3}));
       }},
      {"conv2d",
       [] {
         return F::conv2d(x({2, 3, 8, 8}), x({4, 3, 3, 3}));
       }},
      {"conv3d",
       [] {
         return F::conv3d(x({2, 3, 4, 4, 4}), x({4, 3, 3, 3, 3}));
       }},
      {"conv_transpose1d",
       [] {
         return F::conv_transpose1d(x({2, 3, 8}), x({3, 4, 3}));
       }},
      {"conv_transpose2d",
       [] {
         return F::conv_transpose2d(x({2, 3, 8, 8}), x({3, 4, 3, 3}));
       }},
      {"conv_transpose3d",
       [] {
         return F::conv_transpose3d(x({2, 3, 4, 4, 4}), x({3, 4, 3, 3, 3}));
       }},
      {"dropout",
       [] {
         return F::dropout(x({3, 4}), F::DropoutFuncOptions().training(true));
       }},
      {"dropout2d",
       [] {
         return F::dropout2d(x({2, 3, 4, 4}), F::Dropout2dFuncOptions().training(true));
       }},
      {"dropout3d",
       [] {
         return F::dropout3d(x({2, 3, 2, 4, 4}), F::Dropout3dFuncOptions().training(true));
       }},
      {"embedding",
       [] {
         return F::embedding(labels({3, 4}, 7), x({7, 5}));
       }},
      {"embedding_bag",
       [] {
         return F::embedding_bag(labels({9}, 7), x({7, 5}),
                                 F::EmbeddingBagFuncOptions().mode(torch::kMax).offsets(whole({0, 4})));
       }},
      {"feature_alpha_dropout",
       [] {
         return F::feature_alpha_dropout(x({3, 4}), F::FeatureAlphaDropoutFuncOptions().training(true));
       }},
      {"group_norm",
       [] {
         return F::group_norm(x({2, 4, 3}), F::GroupNormFuncOptions(2));
       }},
      {"instance_norm",
       [] {
         return F::instance_norm(x({2, 4, 3}));
       }},
      {"layer_norm",
       [] {
         return F::layer_norm(x({2, 4}), F::LayerNormFuncOptions({4}));
       }},
      {"linear",
       [] {
         return F::linear(x({3, 4}), x({5, 4}), x({5}));
       }},
      {"local_response_norm",
       [] {
         return F::local_response_norm(x({2, 4, 3}), F::LocalResponseNormFuncOptions(2));
       }},
      {"multi_head_attention_forward",
       [] {
         const Tensor q = x({5, 2, 8});
         return std::get<0>(F::multi_head_attention_forward(
             q, q, q,
             F::MultiheadAttentionForwardFuncOptions(8, 2, x({24, 8}), x({24}), {}, {}, false, 0.1, x({8, 8}),
                                                     x({8}))));
       }},
      {"normalize",
       [] {
         return F::normalize(x({3, 4}));
       }},
      {"one_hot", [] { return F::one_hot(labels({3}, 4), 4); }},
  };
}

Cases losses() {
  return {
      {"binary_cross_entropy",
       [] {
         return F::binary_cross_entropy(torch::sigmoid(x({3, 4})), fixed({3, 4}));
       }},
      {"binary_cross_entropy_with_logits",
       [] {
         return F::binary_cross_entropy_with_logits(x({3, 4}), fixed({3, 4}));
       }},
      {"cosine_embedding_loss",
       [] {
         return F::cosine_embedding_loss(x({3, 4}), x({3, 4}), whole({1, -1, 1}));
       }},
      {"cosine_similarity",
       [] {
         return F::cosine_similarity(x({3, 4}), x({3, 4}));
       }},
      {"cross_entropy",
       [] {
         return F::cross_entropy(x({3, 4}), labels({3}, 4));
       }},
      {"ctc_loss",
       [] {
         return F::ctc_loss(F::log_softmax(x({7, 2, 4}), 2), labels({2, 3}, 3) + 1, torch::tensor({7, 5}),
                            torch::tensor({3, 2}));
       }},
      {"hinge_embedding_loss",
       [] {
         return F::hinge_embedding_loss(x({3}), whole({1, -1, 1}));
       }},
      {"huber_loss",
       [] {
         return F::huber_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"kl_div",
       [] {
         return F::kl_div(x({3, 4}), fixed({3, 4}));
       }},
      {"l1_loss",
       [] {
         return F::l1_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"margin_ranking_loss",
       [] {
         return F::margin_ranking_loss(x({3}), x({3}), whole({1, -1, 1}));
       }},
      {"mse_loss",
       [] {
         return F::mse_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"multi_margin_loss",
       [] {
         return F::multi_margin_loss(x({3, 4}), labels({3}, 4));
       }},
      {"multilabel_margin_loss",
       [] {
         return F::multilabel_margin_loss(x({1, 4}), whole({3, 1, -1, 0}).view({1, 4}));
       }},
      {"multilabel_soft_margin_loss",
       [] {
         return F::multilabel_soft_margin_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"nll_loss",
       [] {
         return F::nll_loss(x({3, 4}), labels({3}, 4));
       }},
      {"pairwise_distance",
       [] {
         return F::pairwise_distance(x({3, 4}), x({3, 4}));
       }},
      {"pdist",
       [] {
         return F::pdist(x({3, 4}));
       }},
      {"poisson_nll_loss",
       [] {
         return F::poisson_nll_loss(x({3, 4}), fixed({3, 4}), F::PoissonNLLLossFuncOptions().full(true));
       }},
      {"smooth_l1_loss",
       [] {
         return F::smooth_l1_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"soft_margin_loss",
       [] {
         return F::soft_margin_loss(x({3, 4}), fixed({3, 4}));
       }},
      {"triplet_margin_loss",
       [] {
         return F::triplet_margin_loss(x({3, 4}), x({3, 4}), x({3, 4}),
                                       F::TripletMarginLossFuncOptions().swap(true));
       }},
      {"triplet_margin_with_distance_loss",
       [] {
         return F::triplet_margin_with_distance_loss(x({3, 4}), x({3, 4}), x({3, 4}));
       }},
  };
}

Cases poolings() {
  return {
      {"adaptive_avg_pool1d",
       [] {
         return F::adaptive_avg_pool1d(x({2, 3, 7}), F::AdaptiveAvgPool1dFuncOptions(3));
       }},
      {"adaptive_avg_pool2d",
       [] {
         return F::adaptive_avg_pool2d(x({2, 3, 7, 5}), F::AdaptiveAvgPool2dFuncOptions(3));
       }},
      {"adaptive_avg_pool3d",
       [] {
         return F::adaptive_avg_pool3d(x({2, 3, 5, 5, 5}), F::AdaptiveAvgPool3dFuncOptions(3));
       }},
      {"adaptive_max_pool1d",
       [] {
         return F::adaptive_max_pool1d(x({2, 3, 7}), F::AdaptiveMaxPool1dFuncOptions(3));
       }},
      {"adaptive_max_pool2d",
       [] {
         return F::adaptive_max_pool2d(x({2, 3, 7, 5}), F::AdaptiveMaxPool2dFuncOptions(3));
       }},
      {"adaptive_max_pool3d",
       [] {
         return F::adaptive_max_pool3d(x({2, 3, 5, 5, 5}), F::AdaptiveMaxPool3dFuncOptions(3));
       }},
      {"avg_pool1d",
       [] {
         return F::avg_pool1d(x({2, 3, 8}), F::AvgPool1dFuncOptions(2));
       }},
      {"avg_pool2d",
       [] {
         return F::avg_pool2d(x({2, 3, 8, 8}), F::AvgPool2dFuncOptions(2));
       }},
      {"avg_pool3d",
       [] {
         return F::avg_pool3d(x({2, 3, 4, 4, 4}), F::AvgPool3dFuncOptions(2));
       }},
      {"fractional_max_pool2d",
       [] {
         return F::fractional_max_pool2d(x({2, 3, 8, 8}),
                                         F::FractionalMaxPool2dFuncOptions(2).output_size(3));
       }},
      {"fractional_max_pool3d",
       [] {
         return F::fractional_max_pool3d(x({2, 3, 6, 6, 6}),
                                         F::FractionalMaxPool3dFuncOptions(2).output_size(3));
       }},
      {"lp_pool1d",
       [] {
         return F::lp_pool1d(x({2, 3, 8}), F::LPPool1dFuncOptions(2, 2));
       }},
      {"lp_pool2d",
       [] {
         return F::lp_pool2d(x({2, 3, 8, 8}), F::LPPool2dFuncOptions(2, 2));
       }},
      {"lp_pool3d",
       [] {
         return F::lp_pool3d(x({2, 3, 4, 4, 4}), F::LPPool3dFuncOptions(2, 2));
       }},
      {"max_pool1d",
       [] {
         return F::max_pool1d(x({2, 3, 8}), F::MaxPool1dFuncOptions(2));
       }},
      {"max_pool2d",
       [] {
         return F::max_pool2d(x({2, 3, 8, 8}), F::MaxPool2dFuncOptions(2));
       }},
      {"max_pool3d",
       [] {
         return F::max_pool3d(x({2, 3, 4, 4, 4}), F::MaxPool3dFuncOptions(2));
       }},
      {"max_unpool1d",
       [] {
         const auto [values, indices] = F::max_pool1d_with_indices(x({2, 3, 8}), F::MaxPool1dFuncOptions(2));
         return F::max_unpool1d(values, indices, F::MaxUnpool1dFuncOptions(2));
       }},
      {"max_unpool2d",
       [] {
         const auto [values, indices] =
             F::max_pool2d_with_indices(x({2, 3, 8, 8}), F::MaxPool2dFuncOptions(2));
         return F::max_unpool2d(values, indices, F::MaxUnpool2dFuncOptions(2));
       }},
      {"max_unpool3d",
       [] {
         const auto [values, indices] =
             F::max_pool3d_with_indices(x({2, 3, 4, 4, 4}), F::MaxPool3dFuncOptions(2));
         return F::max_unpool3d(values, indices, F::MaxUnpool3dFuncOptions(2));
       }},
  };
}

Cases images() {
  return {
      {"affine_grid",
       [] {
         return F::affine_grid(x({2, 2, 3}), {2, 3, 4, 5});
       }},
      {"fold",
       [] {
         return F::fold(x({2, 12, 9}), F::FoldFuncOptions({4, 4}, {2, 2}));
       }},
      {"grid_sample (images)",
       [] {
         return F::grid_sample(x({2, 3, 4, 5}), x({2, 3, 4, 2}),
                               F::GridSampleFuncOptions().align_corners(false));
       }},
      {"grid_sample (volumes)",
       [] {
         return F::grid_sample(x({2, 3, 4, 5, 4}), x({2, 3, 4, 2, 3}),
                               F::GridSampleFuncOptions().align_corners(false));
       }},
      {"interpolate (cubic)",
       [] {
         return F::interpolate(
             x({2, 3, 4, 5}),
             F::InterpolateFuncOptions().size(std::vector<int64_t>{7, 7}).mode(torch::kBicubic));
       }},
      {"interpolate (linear)",
       [] {
         return F::interpolate(
             x({2, 3, 4, 5}),
             F::InterpolateFuncOptions().size(std::vector<int64_t>{7, 7}).mode(torch::kBilinear));
       }},
      {"interpolate (nearest)",
       [] {
         return F::interpolate(
             x({2, 3, 4, 5}),
             F::InterpolateFuncOptions().size(std::vector<int64_t>{8, 7}).mode(torch::kNearest));
       }},
      {"pad (circular)",
       [] {
         return F::pad(x({2, 3, 4}), F::PadFuncOptions({1, 2}).mode(torch::kCircular));
       }},
      {"pad (constant)",
       [] {
         return F::pad(x({2, 3, 4}), F::PadFuncOptions({1, 2}));
       }},
      {"pad (reflect)",
       [] {
         return F::pad(x({2, 3, 4}), F::PadFuncOptions({1, 2}).mode(torch::kReflect));
       }},
      {"pad (replicate)",
       [] {
         return F::pad(x({2, 3, 4}), F::PadFuncOptions({1, 2}).mode(torch::kReplicate));
       }},
      {"pixel_shuffle",
       [] {
         return F::pixel_shuffle(x({2, 4, 3, 3}), F::PixelShuffleFuncOptions(2));
       }},
      {"pixel_unshuffle",
       [] {
         return F::pixel_unshuffle(x({2, 1, 4, 4}), F::PixelUnshuffleFuncOptions(2));
       }},
      {"unfold",
       [] {
         return F::unfold(x({2, 3, 4, 4}), F::UnfoldFuncOptions({2, 2}));
       }},
  };
}

// Modules that are more than one of the functions.
Cases modules() {
  return {
      {"AdaptiveLogSoftmaxWithLoss",
       [] {
         auto module =
             on_device(nn::AdaptiveLogSoftmaxWithLoss(nn::AdaptiveLogSoftmaxWithLossOptions(16, 12, {4, 8})));
         return module(x({5, 16}), labels({5}, 12)).output;
       }},
      {"CrossMapLRN2d",
       [] {
         return on_device(nn::CrossMapLRN2d(3))(x({2, 4, 3, 3}));
       }},
      {"Embedding (max_norm)",
       [] {
         auto module = on_device(nn::Embedding(nn::EmbeddingOptions(7, 5).max_norm(1.0)));
         return module(labels({3, 4}, 7));
       }},
      {"GRU",
       [] {
         return std::get<0>(
             on_device(nn::GRU(nn::GRUOptions(4, 5).num_layers(2).bidirectional(true)))(x({3, 2, 4})));
       }},
      {"GRUCell",
       [] {
         return on_device(nn::GRUCell(4, 5))(x({2, 4}));
       }},
      {"LSTM",
       [] {
         return std::get<0>(
             on_device(nn::LSTM(nn::LSTMOptions(4, 5).num_layers(2).dropout(0.1)))(x({3, 2, 4})));
       }},
      {"LSTMCell",
       [] {
         return std::get<0>(on_device(nn::LSTMCell(4, 5))(x({2, 4})));
       }},
      {"MultiheadAttention",
       [] {
         const Tensor q = x({5, 2, 8});
         return std::get<0>(on_device(nn::MultiheadAttention(8, 2))(q, q, q));
       }},
      {"RNN",
       [] {
         return std::get<0>(on_device(nn::RNN(nn::RNNOptions(4, 5)))(x({3, 2, 4})));
       }},
      {"RNNCell",
       [] {
         return on_device(nn::RNNCell(4, 5))(x({2, 4}));
       }},
      {"Transformer",
       [] {
         return on_device(nn::Transformer(nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16)))(
             x({5, 2, 8}), x({4, 2, 8}));
       }},
      {"LSTM (packed sequence)",
       [] {
         const auto packed = nn::utils::rnn::pack_padded_sequence(x({3, 2, 4}), torch::tensor({3, 2}));
         return std::get<0>(on_device(nn::LSTM(nn::LSTMOptions(4, 5)))->forward_with_packed_input(packed))
             .data();
       }},
  };
}

struct Outcome {
  std::vector<std::string> on_the_cpu;  // operations
  int64_t reads = 0;                    // values that the host waited for
};

std::map<std::string, int64_t> calls_on_the_cpu() {
  std::map<std::string, int64_t> calls;
  for (const auto& [name, count] : sluice::fallback_counts()) calls[name] = count;
  return calls;
}

Outcome run(const Run& function) {
  sluice::sync();
  const auto before = calls_on_the_cpu();
  const int64_t reads = sluice::counters().host_reads;
  const Tensor result = function();
  if (result.requires_grad()) result.sum().backward();
  Outcome outcome;
  outcome.reads = sluice::counters().host_reads - reads;
  for (const auto& [name, count] : calls_on_the_cpu())
    if (!before.count(name) || before.at(name) < count) outcome.on_the_cpu.push_back(name);
  sluice::sync();
  return outcome;
}

constexpr const char* kIntroduction =
    "# torch::nn on the device\n"
    "\n"
    "Which functions and modules of LibTorch's `torch::nn` run on `xla:0` as a whole, forward and backward. "
    "This page "
    "is written by `sluice_nn_page`, which runs each of them; the operations that they are made of are in "
    "[ops.md](ops.md).\n";

// How the counts of fallbacks name operations that run on the host for the sake of their lengths.
constexpr std::string_view kNewLengths = "what is made of results of ever new lengths";

std::string section(const char* title, const Cases& cases, std::string& rest) {
  std::vector<std::string> plain;
  for (const auto& [name, function] : cases) {
    Outcome outcome;
    try {
      outcome = run(function);
    } catch (const std::exception& error) {
      throw std::runtime_error("torch::nn's " + name + ": " + error.what());
    }
    if (outcome.on_the_cpu.empty() && outcome.reads == 0) {
      plain.push_back("`" + name + "`");
      continue;
    }
    std::vector<std::string> operations, reasons;
    for (const std::string& op : outcome.on_the_cpu) {
      if (op == kNewLengths) {
        reasons.push_back("makes " + op.substr(op.find("results")));
      } else {
        operations.push_back("`" + op + "`");
      }
    }
    if (!operations.empty()) reasons.insert(reasons.begin(), "no row");
    if (outcome.reads > 0) reasons.push_back("reads values on the host");
    rest += "| `" + name + "` | " + sluice::base::join(operations, ", ") + " | " +
            sluice::base::join(reasons, "; ") + " |\n";
  }
  return std::string("\n## ") + title + "\n\n" + sluice::base::join(plain, ", ") + "\n";
}

std::string page() {
  std::string rest, text = kIntroduction;
  text += section("Activations", activations(), rest) + section("Layers", layers(), rest) +
          section("Losses and distances", losses(), rest) + section("Pooling", poolings(), rest) +
          section("Images", images(), rest) + section("Modules", modules(), rest);
  if (!rest.empty())
    text +=
        "\n## Not as a whole\n\nWhat runs on the CPU ([device.md](device.md#fallback)) or makes the host "
        "wait, and why.\n\n"
        "| function or module | operations | why |\n| --- | --- | --- |\n" +
        rest;
  return text;
}

// Functions of the headers that no case is named after.
std::vector<std::string> missing(const std::filesystem::path& headers) {
  std::set<std::string> known = {"padding_unwrap"};  // a helper
  for (const Cases& cases : {activations(), layers(), losses(), poolings(), images()})
    for (const auto& entry : cases) known.insert(entry.first.substr(0, entry.first.find(' ')));
  std::vector<std::string> names;
  const std::regex declaration(R"(inline [\w:<>, ]+ ([a-z]\w*)\()");
  for (const auto& file : std::filesystem::directory_iterator(headers)) {
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (auto it = std::sregex_iterator(text.begin(), text.end(), declaration); it != std::sregex_iterator();
         ++it) {
      const std::string name = (*it)[1];
      const std::string stem = name.substr(0, name.find("_with_indices"));
      if (known.insert(stem).second) names.push_back(name);
    }
  }
  return names;
}

int check(const std::string& path, const std::filesystem::path& headers) {
  std::ifstream file(path, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(file), {}}, expected = page();
  int result = 0;
  if (found != expected) {
    std::fprintf(stderr, "%s is not what runs; expected:\n%s", path.c_str(), expected.c_str());
    result = 1;
  }
  for (const std::string& name : missing(headers)) {
    std::fprintf(stderr, "torch::nn::functional::%s is not in tests/docs/nn_page.cc\n", name.c_str());
    result = 1;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && !(argc == 4 && std::string(argv[1]) == "--check")) {
    std::fprintf(stderr, "usage: sluice_nn_page [--check PAGE HEADERS]\n");
    return 2;
  }
  try {
    torch::manual_seed(1);
    sluice::init();
    if (argc == 4) return check(argv[2], argv[3]);
    std::fputs(page().c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice_nn_page: %s\n", error.what());
    return 1;
  }
}
