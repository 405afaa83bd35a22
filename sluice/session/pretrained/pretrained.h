// Language models that are loaded from, and saved to, folders of Hugging Face's transformers.
#pragma once

#include <string>

#include "sluice/base/export.h"
#include "sluice/models/language/language.h"

SLUICE_API_BEGIN
namespace sluice {

// Returns whether a folder, of this machine or in a bucket (gs://, s3://, az://, hf://OWNER/NAME), has a
// config.json; and what it says. Throws sluice::Error.
bool has_language_config(const std::string& folder);
models::LanguageOptions read_language_config(const std::string& folder);

// Loads a folder with config.json and weights (model.safetensors or pytorch_model.bin, or the files that an
// index in the folder names), as save_pretrained writes it and the hub has it; of a folder in a bucket only
// safetensors. The model is on the CPU, in f32. Throws sluice::Error for a model that Sluice does not know,
// for a head that neither predicts words nor classifies sequences, and for a tensor that is missing,
// unexpected or of another shape.
//
// new_classes: above 0, the model is a classifier with this number of classes whose new head (drawn from
// LibTorch's CPU generator) is on the folder's body; the folder's own head, of words or of classes, is left
// out. recompute: see LanguageOptions.
struct PretrainedOptions {
  int64_t new_classes = 0;
  bool recompute = false;
};
models::LanguageModelPtr load_pretrained(const std::string& folder, const PretrainedOptions& options = {});

// Does so with the model over the mesh of the open device, in this element type: each process reads only what
// its own devices hold, so neither a host nor a device needs room for the whole model.
models::LanguageModelPtr load_pretrained_over_mesh(const std::string& folder,
                                                   const PretrainedOptions& options = {},
                                                   torch::ScalarType type = torch::kFloat);

// Writes config.json and model.safetensors, which transformers' from_pretrained(folder) loads without a
// missing key. Creates the folder; other files in it (a tokenizer.json) stay. Waits for the device. Throws
// sluice::Error.
void save_pretrained(const models::LanguageModel& model, const std::string& folder);

}  // namespace sluice
SLUICE_API_END
