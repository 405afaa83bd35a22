// Language models from and to folders of Hugging Face's transformers.
#pragma once

#include <string>

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN
namespace sluice {

// A folder with config.json and weights (model.safetensors or pytorch_model.bin, or the files that an index
// beside it names), as save_pretrained and the hub have it. The model is on the CPU, in f32. Throws
// sluice::Error for a model that Sluice does not know, for a head that is neither of words nor of classes
// of sequences, and for a tensor that is missing, too many or of another shape.
//
// new_classes: above 0, a classifier of so many classes whose head is fresh (drawn from LibTorch's CPU
// generator) on the folder's body; the head that the folder has, of words or of classes, is left out.
// recompute: see LanguageOptions.
struct PretrainedOptions {
  int64_t new_classes = 0;
  bool recompute = false;
};
models::LanguageModelPtr load_pretrained(const std::string& folder, const PretrainedOptions& options = {});

// What transformers' from_pretrained(folder) loads without a missing key: config.json and model.safetensors.
// The folder is made; other files in it (a tokenizer.json) stay. Waits for the device. Throws sluice::Error.
void save_pretrained(const models::LanguageModel& model, const std::string& folder);

}  // namespace sluice
SLUICE_API_END
