#include "sluice/session/pretrained/pretrained.h"

#include <algorithm>

#include "sluice/base/file.h"
#include "sluice/session/checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice {

namespace pretrained_detail {

// The model's own head in the place of the folder's.
void replace_head(const models::LanguageModel& model, sessions::NamedTensors& tensors) {
  const auto is_of_head = [](const auto& named) { return models::is_of_head(named.first); };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_of_head), tensors.end());
  for (auto& named : sessions::module_tensors(model))
    if (is_of_head(named)) tensors.push_back(std::move(named));
}

}  // namespace pretrained_detail

models::LanguageModelPtr load_pretrained(const std::string& folder, const PretrainedOptions& how) {
  const std::string config = base::join_path(folder, "config.json");
  models::LanguageOptions options =
      models::parse_language_config(base::value_or_throw(base::read_file(config)), config);
  sessions::NamedTensors tensors =
      models::with_own_names(options, base::value_or_throw(sessions::read_weight_files(folder)));
  if (how.new_classes > 0) {
    if (options.classes != how.new_classes) options.labels.clear();
    options.classes = how.new_classes;
  }
  models::LanguageModelPtr model = models::language_model(options);
  if (how.new_classes > 0) pretrained_detail::replace_head(*model, tensors);
  base::value_or_throw(sessions::load_module(*model, tensors, folder));
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
