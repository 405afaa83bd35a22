// A choice of train/choices.h as the value of a flag.
#pragma once

#include <string>

#include "sluice/base/flag.h"
#include "sluice/train/choices.h"

namespace sluice::train {

// `value` must outlive what this returns.
template <typename Choice>
base::ChoiceValue choice(const std::string& flag, Choice& value) {
  return {choice_names<Choice>(), name_of(value),
          [flag, &value](const std::string& text) { value = parse_choice<Choice>(flag, text); }};
}

}  // namespace sluice::train
