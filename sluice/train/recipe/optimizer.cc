#include "sluice/train/recipe/sections.h"

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {
namespace recipe_optimizer_detail {

constexpr const char* kZeroOrMore = "takes a number of 0 or more";

void check_betas(const std::vector<double>& betas) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!betas.empty() && !(betas.size() == 2 && is_beta(betas[0]) && is_beta(betas[1])))
    throw_error(Code::kInvalidArgument,
                base::str("--betas takes two numbers of 0 or more and below 1, such as 0.9,0.95, not ",
                          base::join(betas, ",")));
}

}  // namespace recipe_optimizer_detail

// clang-format off
std::vector<base::Flag> optimizer_rows(TrainOptions& o) {
  using base::Flag;
  using namespace recipe_optimizer_detail;
  using Kind = OptimizerKind;
  const bool is_sgd = o.optimizer == Kind::kSgd;
  const bool has_momentum = is_sgd || o.optimizer == Kind::kRmsProp;
  const bool is_adam = o.optimizer == Kind::kAdam || o.optimizer == Kind::kAdamW;
  const std::string optimizer = base::str("--optimizer ", name_of(o.optimizer));
  return {
      Flag{"Recipe", "--optimizer", choice("--optimizer", o.optimizer), "", "Update the weights with this optimizer"}
          .setting(),
      Flag{"Recipe", "--lr", &o.lr, "", "Set the learning rate; it is never scaled by the number of replicas"}
          .within(base::from(0), kZeroOrMore).setting_if(true),
      Flag{"Recipe", "--momentum", &o.momentum, "", "Set the momentum of sgd and rmsprop"}
          .within(base::from_below(0, 1), "takes a number of 0 or more and below 1")
          .idle(!has_momentum, {"--optimizer"}, base::str(optimizer, " has no momentum")).setting_if(has_momentum),
      Flag{"Recipe", "--nesterov", &o.nesterov, "", "Use Nesterov's momentum in sgd"}
          .idle(!is_sgd, {"--optimizer"}, base::str(optimizer, " has no Nesterov momentum")).setting(),
      Flag{"Recipe", "--betas", &o.betas, "", "Set the betas of adam and adamw, such as 0.9,0.95; empty: 0.9,0.999"}
          .checked([&o] { check_betas(o.betas); }).idle(!is_adam, {"--optimizer"}, base::str(optimizer, " has no betas"))
          .setting_if(o.betas.size() == 2).in_recipe_if(is_adam),
      Flag{"Recipe", "--eps", &o.eps, "", "Set epsilon of all optimizers but sgd; 0: PyTorch's default"}
          .within({.low = 0}, "must be 0 or more").idle(is_sgd, {"--optimizer"}, "--optimizer sgd has no epsilon").setting(),
      Flag{"Recipe", "--weight-decay", &o.weight_decay, "", "Set the weight decay of all weights; --no-decay spares some"}
          .within(base::from(0), kZeroOrMore).setting_if(true),
      Flag{"Recipe", "--no-decay", &o.no_decay, "", "Apply no weight decay to biases and norms: parameters with fewer than two dimensions"}
          .idle(o.weight_decay == 0, {"--weight-decay"}, "--weight-decay 0 makes no parameter smaller").setting_if(o.weight_decay > 0),
      Flag{"Recipe", "--label-smoothing", &o.label_smoothing, "", "Spread this share of each label over all classes"}
          .within(base::from_below(0, 1), "takes a share of 0 or more and below 1").idle(without_samples(o)).setting(ranks::kSmoothing),
      Flag{"Recipe", "--clip-norm", &o.clip_norm, "", "Limit the norm of the gradients to this; 0: no limit"}
          .unless_given({"--clip-value"}).setting(ranks::kClipping),
      Flag{"Recipe", "--clip-value", &o.clip_value, "", "Limit each element of the gradients to this; 0: no limit"}
          .setting(ranks::kClipping),
      Flag{"Recipe", "--on-nan", choice("--on-nan", o.on_nan), "", "Choose what happens when an update's loss or gradients are NaN or infinite: stop ends the run, skip leaves the update out"},
  };
}
// clang-format on

void check_optimizer(const TrainOptions& o) {
  if (o.nesterov && !(o.momentum > 0))
    throw_error(Code::kInvalidArgument,
                base::str("--nesterov looks ahead by the momentum, which must be above 0, not ", o.momentum));
  if (!(o.clip_norm >= 0 && o.clip_value >= 0))
    throw_error(Code::kInvalidArgument, base::str("--clip-norm and --clip-value must be 0 or more, not ",
                                                  o.clip_norm, " and ", o.clip_value));
  if (o.clip_norm > 0 && o.clip_value > 0)
    throw_error(Code::kInvalidArgument,
                "--clip-norm and --clip-value both cut the gradients: give one of them");
}

}  // namespace sluice::train
