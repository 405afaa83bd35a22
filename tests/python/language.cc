// Language models for language_oracle.py. For each folder with config.json, weights and input.safetensors
// (ids and mask):
//   sluice_logits FOLDER…   writes FOLDER/output.safetensors (logits, of words or of classes), FOLDER/again,
//   the model's own folder, and FOLDER/fresh, a classifier of 5 classes on its body.
//   sluice_logits --fresh FOLDER…   writes FOLDER/fresh alone
#include <cstdio>
#include <stdexcept>
#include <string>

#include "sluice/session/files/tensor_file.h"
#include "sluice/session/pretrained/pretrained.h"

namespace {

namespace sessions = sluice::sessions;

// A fresh head on the folder's body.
void write_fresh(const std::string& folder) {
  sluice::save_pretrained(*sluice::load_pretrained(folder, {.new_classes = 5}), folder + "/fresh");
}

void run(const std::string& folder) {
  const sluice::models::LanguageModelPtr model = sluice::load_pretrained(folder);
  model->eval();
  torch::NoGradGuard no_grad;
  torch::Tensor ids, mask;
  for (const auto& [name, tensor] :
       sluice::base::value_or_throw(sessions::read_safetensors(folder + "/input.safetensors")))
    (name == "ids" ? ids : mask) = tensor;
  const bool classifier = model->options().classes > 0;
  const auto answer = [&](const torch::Tensor& of_mask) {
    return classifier ? model->classify({ids, of_mask}) : model->forward(ids, of_mask);
  };
  sluice::base::value_or_throw(sessions::write_safetensors(
      folder + "/output.safetensors", {{"logits", answer(mask)}, {"unmasked", answer({})}}));
  sluice::save_pretrained(*model, folder + "/again");
  write_fresh(folder);
}

}  // namespace

int main(int argc, char** argv) try {
  const bool fresh_alone = argc > 1 && std::string(argv[1]) == "--fresh";
  const int first = fresh_alone ? 2 : 1;
  if (argc <= first) throw std::runtime_error("usage: sluice_logits [--fresh] FOLDER…");
  for (int i = first; i < argc; ++i) fresh_alone ? write_fresh(argv[i]) : run(argv[i]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_logits: %s\n", error.what());
  return 1;
}
