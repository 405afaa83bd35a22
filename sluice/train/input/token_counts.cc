#include "sluice/train/input/token_counts.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"

namespace sluice::train {
namespace token_counts_detail {

// Returns the tokens so far after each update of the run, up to the update that reaches max_tokens or
// max_steps, if these are given.
std::vector<std::uint64_t> tokens_so_far(const Input& train, const TrainOptions& options) {
  std::vector<std::uint64_t> sums;
  std::uint64_t seen = 0;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const std::uint64_t tokens : train.tokens(options.overfit_batches > 0 ? 0 : epoch)) {
      sums.push_back(seen += tokens);
      const bool last = (options.max_tokens > 0 && seen >= static_cast<std::uint64_t>(options.max_tokens)) ||
                        std::ssize(sums) == options.max_steps;
      if (last) return sums;
    }
    if (sums.empty() && train.updates(epoch) > 0) break;  // no token files
  }
  return sums;
}

}  // namespace token_counts_detail

void settle_tokens(const Input& train, TrainOptions& options) {
  const bool warms = options.warmup_tokens > 0, decays = options.decay_tokens > 0;
  if (options.max_tokens == 0 && !warms && !decays) return;
  const std::vector<std::uint64_t> sums = token_counts_detail::tokens_so_far(train, options);
  if (sums.empty())
    throw_error(Code::kInvalidArgument,
                options.max_tokens > 0
                    ? base::str("--max-tokens ", options.max_tokens,
                                ": the training set has no token files, whose tokens are known before the "
                                "run; end it with --max-steps or --max-time")
                    : base::str(warms ? "--warmup-tokens " : "--decay-tokens ",
                                warms ? options.warmup_tokens : options.decay_tokens,
                                ": the training set has no token files, whose tokens are known before the "
                                "run; count in steps or epochs"));
  const std::uint64_t all = sums.back();
  // The number of the update that reaches `tokens`.
  const auto update_of = [&](std::uint64_t tokens) -> int64_t {
    return std::lower_bound(sums.begin(), sums.end(), tokens) - sums.begin() + 1;
  };
  const auto length = std::ssize(sums);
  if (const auto wanted = static_cast<std::uint64_t>(options.max_tokens); wanted > 0) {
    if (all < wanted && length != options.max_steps)
      throw_error(Code::kInvalidArgument, base::str("--max-tokens ", wanted, " has no effect: the run of ",
                                                    base::counted(options.epochs, "epoch"), " ends after ",
                                                    all, "; choose more --epochs"));
    options.max_steps = length;
  }
  const auto check_part = [&](const char* flag, int64_t tokens) {
    if (static_cast<std::uint64_t>(tokens) > all)
      throw_error(Code::kInvalidArgument,
                  base::str(flag, " ", tokens, " is more than the ", all, " tokens of the whole run"));
  };
  if (warms) {
    check_part("--warmup-tokens", options.warmup_tokens);
    options.warmup_steps = update_of(static_cast<std::uint64_t>(options.warmup_tokens));
  }
  if (decays) {
    check_part("--decay-tokens", options.decay_tokens);
    const std::uint64_t before = all - static_cast<std::uint64_t>(options.decay_tokens);
    options.decay_steps = std::max<int64_t>(length - (before == 0 ? 0 : update_of(before)), 1);
  }
}

}  // namespace sluice::train
