#include "sluice/cli/text/model_flags.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/strings.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"

namespace sluice::cli {

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--model", flags.folder,
                 "A folder with config.json, model.safetensors and tokenizer.json: a checkpoint of `sluice "
                 "train`, or one of transformers")
      ->required();
  app.add_option("--tokenizer", flags.tokenizer,
                 "A tokenizer.json, or the folder that it is in (default: the model's)");
  add_flags(app, {{"Options", "--device", train::choice("--device", flags.device), "",
                   "Compute on xla, which --plugin chooses, or on cpu, LibTorch's own CPU"},
                  {"Options", "--precision", train::choice("--precision", flags.precision), "",
                   "Hold the weights and compute with them in this type"},
                  {"Options", "--mesh", train::parsed("--mesh", flags.mesh), "",
                   "Share the model among the devices of this process: tensor=4, or fsdp=2,tensor=2; empty: "
                   "one device"}});
  app.add_option("--plugin", flags.plugin, kPluginHelp);
}

base::Result<models::LanguageOptions> model_options(const ModelFlags& flags) {
  const std::string path = base::join_path(flags.folder, "config.json");
  if (!base::path_exists(path))
    return base::fail(Code::kNotFound, "--model ", flags.folder,
                      ": expected a folder with config.json, model.safetensors and tokenizer.json; ", path,
                      " is not there. A model of Hugging Face's hub is copied first: sluice data cp "
                      "'hf://OWNER/NAME/*' FOLDER/");
  SLUICE_TRY(const std::string text, base::read_file(path));
  return models::parse_language_config(text, path);
}

bool has_tokenizer(const ModelFlags& flags) {
  return !flags.tokenizer.empty() || base::path_exists(base::join_path(flags.folder, "tokenizer.json"));
}

base::Result<text::Tokenizer> model_tokenizer(const ModelFlags& flags) {
  if (!flags.tokenizer.empty()) return text::Tokenizer::load(flags.tokenizer);
  const std::string path = base::join_path(flags.folder, "tokenizer.json");
  if (!has_tokenizer(flags))
    return base::fail(Code::kNotFound, "no tokenizer: ", path,
                      " is not there; copy the tokenizer.json that the model was trained with to it, or name "
                      "it with --tokenizer");
  return text::Tokenizer::load(path);
}

models::LanguageModelPtr ready_model(const ModelFlags& flags) {
  if (flags.device == train::DeviceKind::kCpu && !flags.mesh.empty())
    throw_error(Code::kInvalidArgument, base::str("--mesh ", flags.mesh.str(),
                                                  " needs --device xla: cpu is LibTorch's own, one device"));
  models::LanguageModelPtr model = load_pretrained(flags.folder);
  model->eval();
  if (flags.precision == train::Precision::kBf16) model->to(torch::kBFloat16);
  if (flags.device == train::DeviceKind::kCpu) return model;
  DeviceOptions options;
  options.plugin = flags.plugin;
  if (flags.mesh.empty()) {
    options.devices = 1;
    init(options);
    model->to(torch::Device(torch::kXLA, 0));
  } else {
    init(flags.mesh, options);
    shard(*model);
  }
  return model;
}

std::vector<std::uint32_t> beginning(const text::Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::uint32_t> plain =
      tokenizer.encode(text, {.special_tokens = false, .limits = false}).ids;
  std::vector<std::uint32_t> ids = tokenizer.encode(text, {.special_tokens = true, .limits = false}).ids;
  const auto own = std::search(ids.begin(), ids.end(), plain.begin(), plain.end());
  if (own == ids.end()) return plain;
  ids.erase(own + static_cast<std::ptrdiff_t>(plain.size()), ids.end());
  return ids;
}

}  // namespace sluice::cli
