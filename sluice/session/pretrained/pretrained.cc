#include "sluice/session/pretrained/pretrained.h"

#include <algorithm>
#include <functional>
#include <set>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/device/start/without_values.h"
#include "sluice/session/files/module_values.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/pretrained/weight_files.h"
#include "sluice/session/stored/source_files.h"

namespace sluice {

namespace pretrained_detail {

// Replaces the folder's heads in `tensors` by the model's own head.
void replace_head(const models::LanguageModel& model, sessions::NamedTensors& tensors) {
  const std::string body = models::body_prefix(model.options());
  const auto is_of_body = [&body](const auto& named) { return base::starts_with(named.first, body); };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), std::not_fn(is_of_body)), tensors.end());
  for (auto& named : sessions::module_tensors(model))
    if (!is_of_body(named)) tensors.push_back(std::move(named));
}

// Checks that the folder has the model's head, and not only another one (for questions, for classes of
// tokens, …). load_module() reports the tensors of a head that are missing.
void check_head(const models::LanguageModel& model, const std::vector<std::string>& names,
                const std::string& folder) {
  const std::string body = models::body_prefix(model.options());
  std::set<std::string> own, others;
  for (const auto& [name, tensor] : sessions::module_tensors(model))
    if (!base::starts_with(name, body)) own.insert(name);
  bool has_head = own.empty();
  for (const std::string& name : names) {
    if (name.empty() || base::starts_with(name, body)) continue;
    if (own.count(name) > 0)
      has_head = true;
    else
      others.insert(name);
  }
  if (has_head) return;
  const char* const head = model.options().classes > 0 ? "classes" : "words";
  throw_error(
      Code::kInvalidArgument,
      base::str(folder, " has no head of ", head, " (", *own.begin(), " …), but ",
                others.empty() ? "only the body"
                               : base::str("another head (", *others.begin(), " …), which is not known"),
                ": take a folder of a model for causal or masked language modelling or for the "
                "classification of sequences, or give its body a fresh head of classes (--task "
                "classify, PretrainedOptions::new_classes)"));
}

std::vector<std::string> names_of(const sessions::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

void keep_body(const models::LanguageOptions& options, std::vector<std::string>& names) {
  const std::string body = models::body_prefix(options);
  for (std::string& name : names)
    if (!base::starts_with(name, body)) name.clear();
}

std::string config_of(const std::string& folder) {
  return sessions::is_elsewhere(folder) ? sessions::without_slash(folder) + "/config.json"
                                        : base::join_path(folder, "config.json");
}

models::LanguageOptions options_of(const std::string& folder, const PretrainedOptions& how) {
  models::LanguageOptions options = read_language_config(folder);
  if (how.new_classes > 0) {
    if (options.classes != how.new_classes) options.labels.clear();
    options.classes = how.new_classes;
  }
  options.recompute = how.recompute;
  return options;
}

}  // namespace pretrained_detail

bool has_language_config(const std::string& folder) {
  if (!sessions::is_elsewhere(folder))
    return base::is_directory(folder) && base::path_exists(base::join_path(folder, "config.json"));
  if (!cloud::is_object_url(folder)) return false;
  return base::value_or_throw(sessions::object_exists(pretrained_detail::config_of(folder)));
}

models::LanguageOptions read_language_config(const std::string& folder) {
  const std::string config = pretrained_detail::config_of(folder);
  if (!sessions::is_elsewhere(folder))
    return models::parse_language_config(base::value_or_throw(base::read_file(config)), config);
  const std::string text = base::value_or_throw(sessions::object_text(config));
  if (text.empty()) throw_error(Code::kNotFound, base::str("there is no ", config));
  return models::parse_language_config(text, config);
}

models::LanguageModelPtr load_pretrained(const std::string& folder, const PretrainedOptions& how) {
  const models::LanguageOptions options = pretrained_detail::options_of(folder, how);
  sessions::NamedTensors tensors = models::with_own_names(
      options, base::value_or_throw(sessions::is_elsewhere(folder) ? sessions::read_all_stored(folder)
                                                                   : sessions::read_weight_files(folder)));
  models::LanguageModelPtr model = models::language_model(options);
  if (how.new_classes > 0)
    pretrained_detail::replace_head(*model, tensors);
  else
    pretrained_detail::check_head(*model, pretrained_detail::names_of(tensors), folder);
  base::value_or_throw(sessions::load_module(*model, tensors, folder));
  return model;
}

models::LanguageModelPtr load_pretrained_over_mesh(const std::string& folder, const PretrainedOptions& how,
                                                   torch::ScalarType type) {
  const models::LanguageOptions options = pretrained_detail::options_of(folder, how);
  models::LanguageModelPtr model;
  {
    const WithoutValues scope(StartNumbers::kHost);
    model = models::language_model(options);
  }
  model->to(type);
  const bool fresh_head = how.new_classes > 0;
  const auto renamed = [&](std::vector<std::string> names) {
    names = models::own_names(options, std::move(names));
    if (fresh_head)
      pretrained_detail::keep_body(options, names);
    else
      pretrained_detail::check_head(*model, names, folder);
    return names;
  };
  base::value_or_throw(sessions::load_over_mesh(*model, folder, renamed,
                                                {.may_lack = fresh_head ? models::is_of_head : nullptr}));
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
