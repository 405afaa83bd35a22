#include "sluice/session/pretrained/pretrained.h"

#include "sluice/base/file.h"
#include "sluice/session/checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice {

models::LanguageModelPtr load_pretrained(const std::string& folder) {
  const std::string config = base::join_path(folder, "config.json");
  const models::LanguageOptions options =
      models::parse_language_config(base::value_or_throw(base::read_file(config)), config);
  const sessions::NamedTensors tensors = base::value_or_throw(sessions::read_weight_files(folder));
  models::LanguageModelPtr model = models::language_model(options);
  base::value_or_throw(sessions::load_module(*model, models::with_own_names(options, tensors), folder));
  return model;
}

void save_pretrained(const models::LanguageModel& model, const std::string& folder) {
  sessions::NamedTensors tensors = sessions::module_tensors(model);
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().cpu();
  base::value_or_throw(base::make_directories(folder));
  base::value_or_throw(sessions::write_safetensors(base::join_path(folder, "model.safetensors"), tensors));
  base::value_or_throw(base::write_file_atomically(base::join_path(folder, "config.json"),
                                                   models::language_config(model.options())));
}

}  // namespace sluice
