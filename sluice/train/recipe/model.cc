#include "sluice/train/recipe/sections.h"

#include <unistd.h>
#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/models/language/language.h"
#include "sluice/models/models.h"
#include "sluice/train/recipe/choice.h"

namespace sluice::train {
namespace recipe_model_detail {

constexpr int64_t kMinManyClasses = 1'000'000;  // from here on, check_classes counts the weights

// The number of an image model's weights that one more class adds.
int64_t weights_of_a_class(const std::string& model) {
  const auto weights = [&](int64_t classes) {
    int64_t all = 0;
    for (const auto& parameter : models::create(model, {.classes = classes})->parameters())
      all += parameter.numel();
    return all;
  };
  return weights(2) - weights(1);
}

}  // namespace recipe_model_detail

// clang-format off
std::vector<base::Flag> model_rows(TrainOptions& o) {
  using base::Flag;
  return {
      Flag{"Recipe", "--task", choice("--task", o.task), "", "Choose what to train: a classifier of images, or a language model that predicts the next token (clm), hidden tokens (mlm) or the class of a text (classify)"}
          .setting_if(is_language(o.task)),
      Flag{"Recipe", "--model", &o.model, "", "Train this model: resnet18, resnet50, cifar_resnet20, mlp, lenet, transformer, …; for language tasks gpt2, llama-mini, … or a config.json"}
          .setting(),
      Flag{"Recipe", "--weights", &o.weights, "", "Start from these weights: a folder of transformers (clm, mlm, classify), safetensors, a state dict of Python's torch.save, or a checkpoint; also gs://…, s3://…, az://…, hf://… and https://…"}
          .setting(),
      Flag{"Recipe", "--seed", &o.seed, "", "Seed the weights, the order, augmentation and dropout"}
          .after("--min-lr").setting_if(true, ranks::kSeed),
  };
}
// clang-format on

void check_model(const TrainOptions& o) {
  const auto presets = models::language_presets();
  if (std::find(presets.begin(), presets.end(), o.model) != presets.end())
    throw_error(Code::kInvalidArgument,
                base::str(o.model, " is a language model: give --task clm or --task mlm"));
  const auto known = models::names();
  if (o.model.empty())
    throw_error(Code::kInvalidArgument,
                base::str("the model is missing: give it with --model (", base::join(known, ", "), ")"));
  // create() has the messages.
  if (std::find(known.begin(), known.end(), o.model) == known.end()) models::create(o.model, {});
  if (o.recompute.value_or(false) && o.model != "transformer") models::create(o.model, {.recompute = true});
}

void check_classes(const TrainOptions& o) {
  namespace detail = recipe_model_detail;
  if (o.classes < detail::kMinManyClasses) return;
  const double bytes =
      4.0 * static_cast<double>(o.classes) * static_cast<double>(detail::weights_of_a_class(o.model));
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (memory > 0 && bytes > memory)
    throw_error(Code::kInvalidArgument,
                base::str("--classes ", o.classes, ": the last layer of ", o.model, " takes ",
                          base::memory_text(static_cast<uint64_t>(bytes)), ", and this machine has ",
                          base::memory_text(static_cast<uint64_t>(memory))));
}

}  // namespace sluice::train
