// The names of composites (Builder::composite), which rows mark and patterns look for.
//
// Written as operands → results; attributes. A missing operand is an empty value. All have the type that the
// row computes in.
#pragma once

#include <string_view>

namespace sluice::stablehlo::composites {

// x → max(x, 0); the result's gradient, x or the result → x's gradient.
inline constexpr std::string_view kRelu = "relu", kReluGradient = "relu_gradient";
// x → x Φ(x) with the normal distribution's Φ; the result's gradient, x → x's gradient.
inline constexpr std::string_view kGelu = "gelu", kGeluGradient = "gelu_gradient";
// a, b → the larger one; a NaN wins. (Named after the operation that some compilers have for it.)
inline constexpr std::string_view kMaximum = "stablehlo.maximum";

// x → its softmax along dim, or the softmax's logarithm. The gradient: the result's gradient, the result →
// x's gradient. dim, logarithm (0 or 1).
inline constexpr std::string_view kSoftmax = "softmax", kSoftmaxGradient = "softmax_gradient";
// The gradient of each row's loss [N, 1, …] → the scores' gradient [N, C, …], 0 except at each row's label.
inline constexpr std::string_view kNllGradient = "nll_gradient";
// Scores [N, C], a label of each row in [0, C), an integer [N, 1] → each row's score of its label, [N, 1].
inline constexpr std::string_view kLabelScore = "label_score";

// For each channel of x [N, C, …]: x, momentum, running mean, running variance → mean, biased variance, 1 /
// sqrt(variance + eps) and, if there is a momentum, both running statistics after this batch. eps.
inline constexpr std::string_view kBatchNormStatistics = "batch_norm_statistics";
// x [N, C, …], mean, inverse deviation, weight, bias [C] → (x - mean) inverse weight + bias.
inline constexpr std::string_view kBatchNorm = "batch_norm";
// The result's gradient g, x, mean, inverse → Σ g and Σ g (x - mean) inverse for each channel.
inline constexpr std::string_view kBatchNormSums = "batch_norm_sums";
// g, x, mean, inverse, weight, each channel's means of g and of g (x - mean) inverse → x's gradient.
inline constexpr std::string_view kBatchNormGradient = "batch_norm_gradient";

// x, weight, bias [columns…] → the result, and each row's mean and 1 / sqrt(variance + eps). columns, eps.
inline constexpr std::string_view kLayerNorm = "layer_norm";
// The result's gradient, x, mean, inverse, weight → the gradients of x and, if these attributes are 1, of
// weight and bias. columns, weight, bias.
inline constexpr std::string_view kLayerNormGradient = "layer_norm_gradient";

// q [batch, heads, positions, size], k, v [batch, heads of keys, positions, size] → softmax(scale q k^T) v,
// and the logarithms of the softmax's sums. Each head of keys serves the same number of consecutive heads of
// q. causal, scale, dropout (0 or 1; see attention_dropout.h). The gradient: the first result's gradient, q,
// k, v, both results → the gradients of q, k and v. Both take one more operand: a mask that broadcasts to
// [batch, heads, queries, keys], of bool (false: the query does not see the key) or float (added to the
// scores). A query that sees no key has a result of 0 and an infinite logarithm.
inline constexpr std::string_view kAttention = "attention", kAttentionGradient = "attention_gradient";

// The steps of an LSTM: the input's part of the gates [steps, batch, 4 hidden], weight [4 hidden, hidden],
// first hidden state and cell [batch, hidden], the number of sequences that have each step [steps] or none →
// each step's hidden state, the last one and the last cell; if the gradient is wanted, also each step's cell
// and gates after their functions. reverse (0 or 1).
// The gradient: the gates after their functions, weight, first cell, each step's cell, the gradients of each
// step's hidden state, of the last one and of the last cell, the number of sequences that have each step or
// none → the gradients of the gates, the first hidden state and the first cell. reverse.
inline constexpr std::string_view kLstm = "lstm", kLstmGradient = "lstm_gradient";

// The steps of a GRU: the input's part of the gates [steps, batch, 3 hidden], weight, first hidden state, the
// state's bias [3 hidden] or none, the number of sequences that have each step or none → each step's hidden
// state and the last one; if the gradient is wanted, also the gates after their functions with the state's
// part of n [steps, batch, 4 hidden]. reverse.
// The gradient: that last result, weight, first hidden state, each step's hidden state, the gradients of each
// step's or none and of the last one, the number of sequences that have each step or none → the gradients of
// the input's part of the gates, of the state's part, and of the first hidden state. reverse.
inline constexpr std::string_view kGru = "gru", kGruGradient = "gru_gradient";

// Steps without gates: the input's part [steps, batch, hidden], weight, first hidden state, the number of
// sequences that have each step or none → each step's hidden state and the last one. The gradient: each
// step's hidden state, weight, the gradients of each step's or none and of the last one, the number of
// sequences that have each step or none → the gradients of the input's part and of the first hidden state.
// reverse, relu (0 or 1).
inline constexpr std::string_view kRnn = "rnn", kRnnGradient = "rnn_gradient";

// x [N, C, in…], w [O, C / groups, k…] → y [N, O, out…]; y's gradient, w → x's; x, y's gradient → w's; x, w,
// y's gradient → x's and w's, made of the two before. stride, padding (in front), dilation (one entry for
// each spatial dimension), groups.
inline constexpr std::string_view kConvolution = "convolution", kConvolutionOfX = "convolution_gradient_of_x",
                                  kConvolutionOfW = "convolution_gradient_of_w",
                                  kConvolutionGradients = "convolution_gradients";

// x [(N,) C, in…] → the maximum of each window; x, the result's gradient → x's gradient. kernel, stride,
// padding, dilation (one entry for each spatial dimension).
inline constexpr std::string_view kMaxPooling = "max_pooling", kMaxPoolingGradient = "max_pooling_gradient";

}  // namespace sluice::stablehlo::composites
