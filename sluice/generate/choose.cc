#include "sluice/generate/choose.h"

#include <limits>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"

namespace sluice {
namespace choose_detail {

constexpr double kNever = -std::numeric_limits<double>::infinity();

torch::Tensor without_below(const torch::Tensor& logits, const torch::Tensor& least) {
  return logits.masked_fill(logits.lt(least), kNever);
}

// Returns the least of the values that together have the probability: [batch, 1] from ascending values.
torch::Tensor least_of(const torch::Tensor& ascending, double probability) {
  const torch::Tensor dropped = ascending.softmax(-1).cumsum(-1).le(1 - probability);
  // The likeliest always stays, however small `probability` is.
  const torch::Tensor likeliest = ascending.slice(-1, ascending.size(-1) - 1);
  return torch::minimum(ascending.masked_fill(dropped, -kNever).amin(-1, true), likeliest);
}

}  // namespace choose_detail

void check(const SamplingOptions& options) {
  const auto refuse = [](const char* what, const char* expected, double found) {
    throw_error(Code::kInvalidArgument, base::str("expected a ", what, " ", expected, ", found ", found));
  };
  if (!(options.repetition_penalty > 0))
    refuse("repetition penalty", "above 0 (1: none)", options.repetition_penalty);
  if (options.greedy) return;
  if (!(options.temperature > 0)) refuse("temperature", "above 0 (or greedy)", options.temperature);
  if (options.top_k < 0) refuse("top-k", "of at least 0 (0: all tokens)", static_cast<double>(options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1)) refuse("top-p", "above 0 and at most 1", options.top_p);
}

torch::Tensor limited_logits(torch::Tensor logits, const SamplingOptions& options,
                             const torch::Tensor& seen) {
  namespace detail = choose_detail;
  if (options.repetition_penalty != 1 && seen.defined()) {
    const double penalty = options.repetition_penalty;
    logits = torch::where(seen, torch::where(logits.lt(0), logits * penalty, logits / penalty), logits);
  }
  if (options.greedy) return logits;
  logits = logits / options.temperature;
  torch::Tensor ascending;
  if (options.top_k > 0 && options.top_k < logits.size(-1)) {
    ascending = std::get<0>(logits.topk(options.top_k)).flip(-1);
    logits = detail::without_below(logits, ascending.slice(-1, 0, 1));
  }
  if (options.top_p < 1) {
    if (!ascending.defined()) ascending = std::get<0>(logits.sort(-1));
    logits = detail::without_below(logits, detail::least_of(ascending, options.top_p));
  }
  return logits;
}

torch::Tensor draw_tokens(const torch::Tensor& logits, std::optional<at::Generator> generator) {
  // Takes the largest of the logits plus Gumbel's noise, -log of exponential noise, which may be 0.
  const torch::Tensor noise = torch::empty_like(logits).exponential_(1, std::move(generator));
  return (logits - noise.clamp_min(1e-20).log()).argmax(-1);
}

}  // namespace sluice
