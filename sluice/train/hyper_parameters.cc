#include "sluice/train/hyper_parameters.h"

#include "sluice/base/shown_url.h"

namespace sluice::train {

std::vector<HyperParameter> hyper_parameters(const TrainOptions& options, int64_t global_batch) {
  std::vector<HyperParameter> all;
  const auto number = [&](const char* name, double value) { all.emplace_back(name, value); };
  const auto text = [&](const char* name, const std::string& value) {
    all.emplace_back(name, base::shown_urls(value));
  };
  const auto above_zero = [&](const char* name, double value) {
    if (value > 0) number(name, value);
  };
  if (options.task != Task::kImages) text("task", name_of(options.task));
  if (!options.model.empty()) text("model", options.model);
  if (!options.weights.empty()) text("weights", options.weights);
  number("global_batch_size", static_cast<double>(global_batch));
  number("epochs", static_cast<double>(options.epochs));
  above_zero("max_steps", static_cast<double>(options.max_steps));
  above_zero("max_tokens", static_cast<double>(options.max_tokens));
  text("optimizer", name_of(options.optimizer));
  number("lr", options.lr);
  const bool has_momentum =
      options.optimizer == OptimizerKind::kSgd || options.optimizer == OptimizerKind::kRmsProp;
  if (has_momentum) number("momentum", options.momentum);
  if (options.nesterov) all.emplace_back("nesterov", true);
  if (options.betas.size() == 2) {
    number("beta1", options.betas[0]);
    number("beta2", options.betas[1]);
  }
  above_zero("eps", options.eps);
  number("weight_decay", options.weight_decay);
  if (options.weight_decay > 0) all.emplace_back("no_decay", options.no_decay);
  text("lr_schedule", name_of(options.lr_schedule));
  if (options.warmup_epochs >= 0) number("warmup_epochs", options.warmup_epochs);
  above_zero("warmup_steps", static_cast<double>(options.warmup_steps));
  above_zero("warmup_tokens", static_cast<double>(options.warmup_tokens));
  if (options.decay_epochs >= 0) number("decay_epochs", options.decay_epochs);
  above_zero("decay_steps", static_cast<double>(options.decay_steps));
  above_zero("decay_tokens", static_cast<double>(options.decay_tokens));
  above_zero("clip_norm", options.clip_norm);
  above_zero("clip_value", options.clip_value);
  above_zero("label_smoothing", options.label_smoothing);
  above_zero("ema", options.ema);
  above_zero("swa_start", static_cast<double>(options.swa_start));
  above_zero("mixup", options.mixup);
  above_zero("cutmix", options.cutmix);
  above_zero("crop", static_cast<double>(options.crop));
  above_zero("random_resized_crop", static_cast<double>(options.random_resized_crop));
  if (options.flip) all.emplace_back("flip", true);
  above_zero("length", static_cast<double>(options.length));
  if (!options.shapes.empty()) text("shapes", options.shapes);
  if (options.pack) all.emplace_back("pack", true);
  text("precision", name_of(options.precision));
  number("seed", static_cast<double>(options.seed));
  return all;
}

}  // namespace sluice::train
