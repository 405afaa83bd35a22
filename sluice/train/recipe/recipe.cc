#include "sluice/train/recipe/recipe.h"

#include "sluice/base/error.h"
#include "sluice/train/language/language_task.h"
#include "sluice/train/recipe/sections.h"

namespace sluice::train {
namespace recipe_detail {

struct Section {
  std::vector<base::Flag> (*rows)(TrainOptions&);
  void (*check)(const TrainOptions&);  // may be null
};

// In the order in which --help begins them, as far as their rows do not follow rows of others.
constexpr Section kSections[] = {
    {model_rows, nullptr},           {length_rows, nullptr},      {evaluation_rows, nullptr},
    {weights_rows, check_weights},   {trials_rows, check_trials}, {optimizer_rows, check_optimizer},
    {schedule_rows, check_schedule}, {data_rows, check_data},     {augmentation_rows, check_augmentation},
    {language_rows, nullptr},        {machine_rows, nullptr},     {logging_rows, nullptr},
    {checkpoint_rows, nullptr}};

}  // namespace recipe_detail

std::vector<std::vector<base::Flag>> option_sections(TrainOptions& options) {
  std::vector<std::vector<base::Flag>> sections;
  for (const auto& section : recipe_detail::kSections) sections.push_back(section.rows(options));
  return sections;
}

std::vector<base::Flag> option_rows(TrainOptions& options) {
  return base::in_help_order(option_sections(options));
}

void check_options(const TrainOptions& options, bool named, bool own_sets) {
  check_choice("--task", options.task);
  if (named && is_language(options.task)) {
    check_language(options);
    own_sets = true;
  } else if (named) {
    check_model(options);
  }
  check_sets(options, own_sets);
  TrainOptions copy = options;  // rows point to values that may change
  for (const auto& section : option_sections(copy))
    for (const base::Flag& row : section) base::check_value(row);
  for (const auto& section : recipe_detail::kSections)
    if (section.check != nullptr) section.check(options);
}

void check(const TrainOptions& options) {
  check_options(options, /*named=*/true);
  check_machine(options);
  if (!is_language(options.task)) check_classes(options);
  if (options.patience > 0 && !has_test(options)) throw_error(Code::kInvalidArgument, kPatienceNeedsTest);
  check_finders(options);
}

}  // namespace sluice::train
