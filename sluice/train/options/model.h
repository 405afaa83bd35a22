// The options of the model and of what it starts from.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/export.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

inline bool is_language(Task task) { return task != Task::kImages; }

struct ModelSection {
  Task task = Task::kImages;
  // The model: a name that models::create() takes. For a language model: one of models::language_presets(), a
  // config.json, or a folder with one.
  std::string model;
  // The weights to start from, as read_weights takes them (session/files/weights.h). For a language model
  // also a folder of transformers, which then defines the model.
  std::string weights;
  uint64_t seed = 42;  // of the weights, the order of the data, augmentation and dropout
};

}  // namespace sluice::train

SLUICE_API_END
