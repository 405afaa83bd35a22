#include "sluice/train/language/token_loss.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/device/open.h"
#include "sluice/device/sharding/shard.h"

namespace sluice::train {
namespace token_loss_detail {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The logits of a part, on a CPU and on other devices. Each part reads the weight and adds to its gradient,
// and compilers of the other devices store the logits in bf16 only.
constexpr int64_t kMaxLogits = int64_t{1} << 25, kMaxLogitsOfCompiler = int64_t{1} << 27;
// The rows of a TPU's matrix unit. Other numbers of rows are padded, and compile slower.
constexpr int64_t kTile = 128;

// The places of each device are `blocks` blocks of all places, one after the other. A part takes `rows`
// places of each block; the last one may have fewer. So each device computes its own places.
struct Parts {
  int64_t rows, count, blocks = 1;

  // Returns the part of a tensor [places, …] that begins at this place of each block.
  torch::Tensor of(const torch::Tensor& x, int64_t begin) const {
    if (blocks == 1) return x.slice(0, begin, begin + rows);
    return by_block(x).slice(1, begin, begin + rows).flatten(0, 1);
  }
  // The inverse.
  torch::Tensor joined(std::vector<torch::Tensor> parts) const {
    if (blocks == 1) return torch::cat(parts);
    for (torch::Tensor& part : parts) part = by_block(part);
    return torch::cat(parts, 1).flatten(0, 1);
  }

 private:
  torch::Tensor by_block(const torch::Tensor& x) const {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[0] /= blocks;
    sizes.insert(sizes.begin(), blocks);
    return x.reshape(sizes);
  }
};

// Returns over how many devices the places lie: batches lie over these axes (device/sharding/shard.h).
int64_t blocks_of(const torch::Tensor& states) {
  if (!states.is_xla()) return 1;
  const Mesh over = mesh();
  const int64_t blocks = over.size("data") * over.size("fsdp") * over.size("sequence");
  return states.size(0) % blocks == 0 ? blocks : 1;
}

// `limit`: the logits of a part; 0: the device's own limit.
Parts parts_of(const torch::Tensor& states, int64_t vocabulary, int64_t limit) {
  const bool compiled = states.is_xla() && device::compiler_makes_all();
  if (limit <= 0) limit = compiled ? kMaxLogitsOfCompiler : kMaxLogits;
  const int64_t blocks = blocks_of(states), places = states.size(0) / blocks;
  const int64_t count = std::max<int64_t>(1, (places * vocabulary + limit - 1) / limit);
  const int64_t rows = (places + count - 1) / count;
  if (!compiled || count == 1 || rows < kTile) return {rows, count, blocks};
  const int64_t whole = (rows + kTile - 1) / kTile * kTile;
  return {whole, (places + whole - 1) / whole, blocks};
}

// Computes the sum of the cross-entropies of linear(states, weight, bias), and the answers, part by part. The
// gradients are computed with them, while a part's logits exist: they are linear in the gradient of the sum.
class LossInParts : public torch::autograd::Function<LossInParts> {
 public:
  static variable_list forward(AutogradContext* context, const torch::Tensor& states,
                               const torch::Tensor& weight, const std::optional<torch::Tensor>& maybe_bias,
                               const torch::Tensor& targets, const Parts& parts) {
    const torch::Tensor bias = maybe_bias.value_or(torch::Tensor());
    const bool wanted = states.requires_grad() || weight.requires_grad();
    torch::Tensor sum = torch::zeros({}, states.options().dtype(torch::kFloat).requires_grad(false));
    std::vector<torch::Tensor> of_states, answers;
    torch::Tensor of_weight, of_bias;
    const torch::Tensor classes =
        torch::arange(weight.size(0), targets.options().dtype(targets.scalar_type()));
    for (int64_t begin = 0; begin < states.size(0) / parts.blocks; begin += parts.rows) {
      const torch::Tensor part = parts.of(states, begin);
      const torch::Tensor of_part = parts.of(targets, begin), target = of_part.unsqueeze(1);
      const torch::Tensor valid = target.ne(kNoTarget);
      const torch::Tensor logits = torch::nn::functional::linear(part, weight, bias).to(torch::kFloat);
      const torch::Tensor highest = std::get<0>(logits.max(1, /*keepdim=*/true));
      const torch::Tensor powers = (logits - highest).exp();
      const torch::Tensor total = powers.sum(1, /*keepdim=*/true);
      // Less the target's logit, which nll_loss reads as the device does best.
      const torch::Tensor loss =
          total.log() + highest +
          torch::nll_loss(logits, of_part, {}, torch::Reduction::None, kNoTarget).unsqueeze(1);
      sum = sum + torch::where(valid, loss, torch::zeros_like(loss)).sum();
      answers.push_back(logits.argmax(1));
      if (!wanted) continue;
      const torch::Tensor share = powers / total;
      torch::Tensor of_logits = torch::where(classes.eq(target), share - 1, share) * valid.to(torch::kFloat);
      of_bias = !bias.defined()     ? torch::Tensor()
                : of_bias.defined() ? of_bias + of_logits.sum(0)
                                    : of_logits.sum(0);
      of_states.push_back(torch::matmul(of_logits, weight).to(states.scalar_type()));
      const torch::Tensor more = torch::matmul(of_logits.t(), part).to(weight.scalar_type());
      of_weight = of_weight.defined() ? of_weight + more : more;
    }
    if (wanted) context->save_for_backward({parts.joined(of_states), of_weight, of_bias});
    torch::Tensor all_answers = parts.joined(answers);
    context->mark_non_differentiable({all_answers});
    return {sum, all_answers};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto scaled = [&](const torch::Tensor& gradient) {
      return gradient.defined() ? gradient * gradients[0].to(gradient.scalar_type()) : gradient;
    };
    return {scaled(saved[0]), scaled(saved[1]), scaled(saved[2]), torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace token_loss_detail

TokenLoss token_loss(models::LanguageModel& model, const torch::Tensor& states, const torch::Tensor& targets,
                     int64_t max_logits) {
  namespace detail = token_loss_detail;
  const models::LanguageModel::Head head = model.head();
  const torch::Tensor input = model.before_head(states);
  const auto parts = detail::parts_of(states, head.weight.size(0), max_logits);
  TokenLoss result;
  result.count = targets.ne(kNoTarget).sum();
  if (parts.count > 1) {
    const auto bias = head.bias.defined() ? std::optional(head.bias) : std::nullopt;
    const auto found = detail::LossInParts::apply(input, head.weight, bias, targets, parts);
    result.sum = found[0];
    result.answers = found[1];
    return result;
  }
  const torch::Tensor logits = torch::nn::functional::linear(input, head.weight, head.bias).to(torch::kFloat);
  result.sum = torch::nn::functional::cross_entropy(
      logits, targets,
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum).ignore_index(kNoTarget));
  result.answers = logits.detach().argmax(1);
  return result;
}

}  // namespace sluice::train
