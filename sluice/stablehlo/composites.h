// The names of composites (Builder::composite): what rows say that they make, and patterns look for.
//
// Operands → results; attributes. An operand that is not there is an empty value. All are of the type that
// the row computes in.
#pragma once

#include <string_view>

namespace sluice::stablehlo::composites {

// x → max(x, 0); the result's gradient, x or the result → x's gradient.
inline constexpr std::string_view kRelu = "relu", kReluGradient = "relu_gradient";
// x → x Φ(x) with the normal distribution's Φ; the result's gradient, x → x's gradient.
inline constexpr std::string_view kGelu = "gelu", kGeluGradient = "gelu_gradient";
// a, b → the larger one; a NaN wins. (The name is that of the operation that some compilers have for it.)
inline constexpr std::string_view kMaximum = "stablehlo.maximum";

// x → its softmax along dim, or the softmax's logarithm; the result's gradient, the result → x's gradient.
// dim, logarithm (0 or 1).
inline constexpr std::string_view kSoftmax = "softmax", kSoftmaxGradient = "softmax_gradient";
// The gradient of each row's loss [N, 1, …] → that of the scores [N, C, …], 0 but at each row's label.
inline constexpr std::string_view kNllGradient = "nll_gradient";

// Of each channel of x [N, C, …]. x, momentum, running mean, running variance → mean, biased variance,
// 1 / sqrt(variance + eps) and, where momentum is there, both running statistics after this batch. eps.
inline constexpr std::string_view kBatchNormStatistics = "batch_norm_statistics";
// x [N, C, …], mean, inverse deviation, weight, bias [C] → (x - mean) inverse weight + bias.
inline constexpr std::string_view kBatchNorm = "batch_norm";
// The result's gradient g, x, mean, inverse → Σ g and Σ g (x - mean) inverse of each channel.
inline constexpr std::string_view kBatchNormSums = "batch_norm_sums";
// g, x, mean, inverse, weight, the means of g and of g (x - mean) inverse of each channel → x's gradient.
inline constexpr std::string_view kBatchNormGradient = "batch_norm_gradient";

// x, weight, bias [columns…] → the result, and of each row the mean and 1 / sqrt(variance + eps). columns,
// eps.
inline constexpr std::string_view kLayerNorm = "layer_norm";
// The result's gradient, x, mean, inverse, weight → the gradients of x and, where these are 1, of weight and
// bias. columns, weight, bias.
inline constexpr std::string_view kLayerNormGradient = "layer_norm_gradient";

// q [batch, heads, positions, size], k, v [batch, heads of keys, positions, size], of which each serves as
// many heads of q that follow each other → softmax(scale q k^T) v, and the logarithms of the softmax's sums.
// causal, scale, dropout (0 or 1; see attention_dropout.h). The first result's gradient, q, k, v, both
// results → the gradients of q, k and v. One more operand of both: a mask that broadcasts to [batch, heads,
// queries, keys], of bool (false: the query does not see the key) or float (added to the scores). A query
// that sees no key has a result of 0 and an infinite logarithm.
inline constexpr std::string_view kAttention = "attention", kAttentionGradient = "attention_gradient";

// Of an LSTM's steps: what the input adds to the gates [steps, batch, 4 hidden], weight [4 hidden, hidden],
// first hidden state and cell [batch, hidden], how many sequences have each step [steps] or none → each
// step's hidden state, the last one and the last cell; where the gradient is wanted, each step's cell and
// gates after their functions. reverse (0 or 1).
// The gates after their functions, weight, first cell, each step's cell, the gradients of each step's hidden
// state, of the last one and of the last cell, how many sequences have each step or none → the gradients of
// the gates, the first hidden state and the first cell. reverse.
inline constexpr std::string_view kLstm = "lstm", kLstmGradient = "lstm_gradient";

// Of a GRU's steps: what the input adds to the gates [steps, batch, 3 hidden], weight, first hidden state,
// the state's bias [3 hidden] or none, how many sequences have each step or none → each step's hidden state
// and the last one; where the gradient is wanted, the gates after their functions and what the state adds to
// n [steps, batch, 4 hidden]. reverse.
// The latter, weight, first hidden state, each step's, the gradients of each step's or none and of the last
// one, how many sequences have each step or none → the gradients of what the input adds to the gates, of what
// the state adds, and of the first hidden state. reverse.
inline constexpr std::string_view kGru = "gru", kGruGradient = "gru_gradient";

// The same of steps without gates: what the input adds [steps, batch, hidden], weight, first hidden state,
// how many sequences have each step or none → each step's hidden state and the last one. Each step's hidden
// state, weight, the gradients of each step's or none and of the last one, how many sequences have each step
// or none → the gradients of what the input adds and of the first hidden state. reverse, relu (0 or 1).
inline constexpr std::string_view kRnn = "rnn", kRnnGradient = "rnn_gradient";

// x [N, C, in…], w [O, C / groups, k…] → y [N, O, out…]; y's gradient, w → x's; x, y's gradient → w's;
// x, w, y's gradient → x's and w's, made of the two before. stride, padding (in front), dilation (one entry a
// spatial dimension), groups.
inline constexpr std::string_view kConvolution = "convolution", kConvolutionOfX = "convolution_gradient_of_x",
                                  kConvolutionOfW = "convolution_gradient_of_w",
                                  kConvolutionGradients = "convolution_gradients";

// x [(N,) C, in…] → the maximum of each window; x, the result's gradient → x's gradient. kernel, stride,
// padding, dilation (one entry a spatial dimension).
inline constexpr std::string_view kMaxPooling = "max_pooling", kMaxPoolingGradient = "max_pooling_gradient";

}  // namespace sluice::stablehlo::composites
