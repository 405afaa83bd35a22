// Calls of the kernels that a machine has besides its compiler: their form in a program's text, and whether
// there is a kernel. They are pure functions; all tensors are dense f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/stablehlo/type.h"

namespace sluice::stablehlo {

// "sluice_convolution": y[o] = sum x[o * stride + k * dilation - padding] w[k], or a gradient of it.
// Activations are in memory with the channels last or, with channels_first, in the order of their dims;
// weights in the order of theirs. Attributes: kind, stride, padding, dilation, groups, channels_first (0 or
// 1).
struct ConvolutionCall {
  static constexpr std::string_view kTarget = "sluice_convolution";
  // Operands → results: (x, w) → y, (y's gradient, w) → x's, (x, y's gradient) → w's; or both gradients at
  // once, (x, w, y's gradient) → x's, w's: then nothing reads w after its gradient exists, and an update of w
  // can take its place without a copy. With channels_first and one result that is an activation, one more
  // operand may be a bias, which is added to its channels.
  enum class Kind : int64_t { kForward, kData, kWeights, kBackward };
  Kind kind = Kind::kForward;
  Dims x;                          // [N, C, in…], one to three spatial dimensions
  Dims w;                          // [O, C / groups, k…]
  Dims y;                          // [N, O, out…]
  Dims stride, padding, dilation;  // one entry for each spatial dimension; padding in front
  int64_t groups = 1;
  bool channels_first = false;
};

// "sluice_product": c [batch, m, n] = a [batch, m, k] b [batch, k, n]. Without a batch there are two
// dimensions, and more operands may be a bias [n] that is added to each row, and a matrix [m, n] that is
// added to all. A transposed operand is passed as it is in memory: [batch, k, m], [batch, n, k]. Attributes:
// transposed_a, transposed_b (0 or 1); rectified (0 or 1), with a bias: max(0, a b + bias); gated (0 or 1):
// the matrix is not added; instead, c is 0 where the matrix is 0 or less.
struct ProductCall {
  static constexpr std::string_view kTarget = "sluice_product";
  // "sluice_product_update": the update (UpdateCode) of one tensor by a product without a batch. Nothing else
  // reads the product: it is the code's tensor number `product` and is not written to memory. Operands: the
  // tensors that become results, the code's other tensors and its units; if the code uses numbers, one vector
  // that holds them; a, b; then operands that are not read and must only be computed before. Attributes:
  // code, numbers, product, transposed_a, transposed_b.
  static constexpr std::string_view kUpdateTarget = "sluice_product_update";
  int64_t batch = 1, m = 0, k = 0, n = 0;
  bool transposed_a = false, transposed_b = false;
};

// "sluice_moments": x [N, C, …], eps → mean [C], biased variance [C], 1 / sqrt(variance + eps) [C]. The
// operands momentum, running mean [C] and running variance [C] may follow, for two more results: the running
// statistics after the batch, which has the weight momentum and an unbiased variance. eps and momentum have
// no dimensions.
// "sluice_channel_sums": g, x [N, C, …], mean [C], inverse [C] → sum [C] = Σ g, product [C] = Σ g (x - mean)
// inverse. The operands weight [C] and bias [C] may follow; then g counts as 0 where the normalized x, which
// is (x - mean) inverse weight + bias, is 0 or less.
//
// "sluice_normalize": x [N, C, …], its mean, inverse, weight, bias [C] → max(0, normalized x). More operands:
// a tensor like x that is added before the maximum is taken; its own mean, inverse, weight, bias if it is to
// be normalized too.
// "sluice_normalization_gradient": g, x [N, C, …], mean, inverse, weight, mean of g, mean of g (x - mean)
// inverse [C] → x's gradient. The operand bias [C] may follow; then g counts as 0 where the normalized x is 0
// or less.
// Activations are in memory with the channels last.
inline constexpr std::string_view kMomentsTarget = "sluice_moments";
inline constexpr std::string_view kChannelSumsTarget = "sluice_channel_sums";
inline constexpr std::string_view kNormalizeTarget = "sluice_normalize";
inline constexpr std::string_view kNormalizationGradientTarget = "sluice_normalization_gradient";

// "sluice_sum_of_rows": x [rows…, columns…] → its sums over the rows [columns…]. Row-major.
inline constexpr std::string_view kSumOfRowsTarget = "sluice_sum_of_rows";

// "sluice_sum_of_planes": x [N, C, …] → the sum of each channel [C]. Row-major.
inline constexpr std::string_view kSumOfPlanesTarget = "sluice_sum_of_planes";

// "sluice_softmax": x [rows…, columns] → its softmax along the last dimension, in x's memory.
// "sluice_softmax_gradient": y's gradient, y → x's gradient, in the memory of y's gradient. Row-major.
// Attribute: logarithm (0 or 1): of the softmax.
inline constexpr std::string_view kSoftmaxTarget = "sluice_softmax";
inline constexpr std::string_view kSoftmaxGradientTarget = "sluice_softmax_gradient";

// "sluice_layer_norm": x [rows…, columns…], eps → y = (x - mean) inverse weight + bias, mean [rows…, 1…],
// inverse = 1 / sqrt(variance + eps) [rows…, 1…]. More operands: weight [columns…], then bias [columns…]. eps
// has no dimensions.
// "sluice_layer_norm_gradient": y's gradient, x, mean, inverse → x's gradient. One more operand: weight. More
// results: weight's gradient and bias's.
// Row-major.
inline constexpr std::string_view kLayerNormTarget = "sluice_layer_norm";
inline constexpr std::string_view kLayerNormGradientTarget = "sluice_layer_norm_gradient";

// "sluice_attention": q [batch, queries, heads, size], k, v [batch, keys, heads of keys, size] →
// softmax(scale q k^T + mask) v [batch, queries, heads, size], and the logarithm of the softmax's sums
// [batch, heads, queries]. Each head of keys serves the same number of consecutive heads of q. Causal: query
// i sees keys 0 to i. A query that sees no key has a result of 0 and an infinite logarithm.
// "sluice_attention_gradient": the gradient of the first result, q, k, v, both results → q's, k's, v's
// gradients. If a linear layer made q, k and v at once, [batch, positions, 3 heads size], this one operand
// takes their place, and one result like it takes the place of their gradients. Both take one more operand: a
// mask [batch or 1, heads or 1, queries or 1, keys], added to the scores. Attributes: causal, dropout (0 or
// 1; see attention_dropout.h), scale. Row-major.
struct AttentionCall {
  static constexpr std::string_view kTarget = "sluice_attention";
  static constexpr std::string_view kGradientTarget = "sluice_attention_gradient";
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, size = 0;
};

// "sluice_lstm": the input's part of the gates [steps, batch, 4 hidden], weight [4 hidden, hidden], first
// hidden state and cell [batch, hidden] → the gates after their functions (i, f, g, o next to each other), in
// the first operand's memory; each step's hidden state and cell [steps, batch, hidden].
// "sluice_lstm_gradient": the gates after their functions, weight, first cell, each step's cell, the
// gradients of each step's hidden state, of the last hidden state and of the last cell → the gradients of the
// gates, in the first operand's memory, and of the first hidden state and cell.
// "sluice_gru": the input's part of the gates (r, z, n) [steps, batch, 3 hidden], weight [3 hidden, hidden],
// first hidden state, the vector that is added to the state's product [3 hidden] → the gates after their
// functions and the state's part of n [steps, batch, 4 hidden]; each step's hidden state.
// "sluice_gru_gradient": the first result, weight, first hidden state, each step's hidden state, the
// gradients of each step's and of the last one → the gradients of the input's part of the gates, of the
// state's part, and of the first hidden state.
// "sluice_rnn": the input's part [steps, batch, hidden], weight [hidden, hidden], first hidden state → each
// step's hidden state, in the first operand's memory.
// "sluice_rnn_gradient": each step's hidden state, weight, the gradients of each step's and of the last one →
// the gradients of the input's part, and of the first hidden state. Attribute of both: relu (0 or 1), else
// tanh.
// All take one more operand: the number of sequences of the batch, the first ones, that have each step
// [steps]; the others keep their state in it. The first operand may have any dims that end as written here,
// and a result in its memory has the same dims. Row-major. Attribute: reverse (0 or 1): the last step comes
// first.
inline constexpr std::string_view kLstmTarget = "sluice_lstm";
inline constexpr std::string_view kLstmGradientTarget = "sluice_lstm_gradient";
inline constexpr std::string_view kGruTarget = "sluice_gru";
inline constexpr std::string_view kGruGradientTarget = "sluice_gru_gradient";
inline constexpr std::string_view kRnnTarget = "sluice_rnn";
inline constexpr std::string_view kRnnGradientTarget = "sluice_rnn_gradient";

// "sluice_gelu": x → x Φ(x), with the normal distribution's Φ. "sluice_gelu_gradient": the result's gradient,
// x → x's gradient. Row-major.
inline constexpr std::string_view kGeluTarget = "sluice_gelu";
inline constexpr std::string_view kGeluGradientTarget = "sluice_gelu_gradient";

// "sluice_max_pooling": x [N, C, in…] → the maximum of each window [N, C, out…]; a NaN wins.
// "sluice_max_pooling_gradient": x, y's gradient [N, C, out…] → x's gradient. A window's gradient goes to the
// first of its equal maxima, or to its last NaN.
// All have the channels last. Attributes: kernel, stride, padding, dilation (one entry for each spatial
// dimension).
inline constexpr std::string_view kMaxPoolingTarget = "sluice_max_pooling";
inline constexpr std::string_view kMaxPoolingGradientTarget = "sluice_max_pooling_gradient";

// "sluice_update": one chain of element-wise steps for each of many tensors (the members), as an optimizer
// does them; each result takes the memory of a tensor that the chain reads. All tensors of a member have the
// same dims. Operands: the tensors that become results, member by member; the members' other tensors; their
// units (tensors of one element); if the code uses numbers, one vector that holds them. Results: the members'
// results, in the order of the first operands. Attributes: code (to_words), numbers (positions in the vector,
// member by member).
struct UpdateCode {
  static constexpr std::string_view kTarget = "sluice_update";
  enum class Op : int64_t { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kSqrt };
  // a and b are registers, numbered in this order: the tensors, the units, the numbers, the steps. kSqrt has
  // its operand twice.
  struct Step {
    Op op;
    int64_t a, b;
  };
  size_t tensors = 0, units = 0, numbers = 0;
  std::vector<Step> steps;
  std::vector<int64_t> results;  // registers of steps; result i takes the memory of tensor i

  int64_t first_step() const { return static_cast<int64_t>(tensors + units + numbers); }
  Dims to_words() const;
  // Returns nothing if the words are not a code: a register that does not exist yet, or too few words.
  static std::optional<UpdateCode> from_words(const Dims& words);
};

// The kernels that a machine has. Any thread.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  // Returns whether there is a kernel that is faster than the compiler's code. The first call may take
  // milliseconds.
  virtual bool has(const ConvolutionCall& call) const = 0;
  virtual bool has(const ProductCall& call) const = 0;
  virtual bool has(const AttentionCall& call) const = 0;
  virtual bool has_recurrent() const = 0;
  // Returns whether there is a kernel for a product together with the update whose gradient it is.
  virtual bool has_with_update(const ProductCall& call) const = 0;
  // Returns whether this run leaves out the pattern of this name.
  virtual bool leaves_out(std::string_view /*pattern*/) const { return false; }
};

}  // namespace sluice::stablehlo
