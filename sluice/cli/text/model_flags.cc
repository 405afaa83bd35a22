#include "sluice/cli/text/model_flags.h"

#include <algorithm>

#include "sluice/base/error.h"
#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cloud/object_reader.h"
#include "sluice/cloud/store.h"
#include "sluice/device/device.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/pretrained/pretrained.h"
#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"

namespace sluice::cli {

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--model", flags.folder,
                 "A folder with config.json, model.safetensors and tokenizer.json: a checkpoint of `sluice "
                 "train`, or one of transformers; also gs://…, s3://…, az://… and hf://OWNER/NAME")
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

base::Result<models::LanguageOptions> model_options(const ModelFlags& flags) try {
  if (has_language_config(flags.folder)) return read_language_config(flags.folder);
  return base::fail(Code::kNotFound, "--model ", flags.folder,
                    ": expected a folder with config.json, model.safetensors and tokenizer.json; ",
                    base::join_path(flags.folder, "config.json"),
                    " is not there. A model of Hugging Face's hub is copied first: sluice data cp "
                    "'hf://OWNER/NAME/*' FOLDER/, or named with its address: --model hf://OWNER/NAME");
} catch (const Error& error) {
  return tl::unexpected<Error>(error);
}

bool has_tokenizer(const ModelFlags& flags) {
  if (!flags.tokenizer.empty()) return true;
  const std::string path = base::join_path(flags.folder, "tokenizer.json");
  if (!cloud::is_object_url(flags.folder)) return base::path_exists(path);
  return base::value_or_throw(sessions::object_exists(path));
}

base::Result<text::Tokenizer> model_tokenizer(const ModelFlags& flags) {
  if (!flags.tokenizer.empty()) return text::Tokenizer::load(flags.tokenizer);
  const std::string path = base::join_path(flags.folder, "tokenizer.json");
  if (!has_tokenizer(flags))
    return base::fail(Code::kNotFound, "no tokenizer: ", path,
                      " is not there; copy the tokenizer.json that the model was trained with to it, or name "
                      "it with --tokenizer");
  if (!cloud::is_object_url(flags.folder)) return text::Tokenizer::load(path);
  SLUICE_TRY(const auto folder, base::TemporaryDirectory::create("sluice-tokenizer"));
  SLUICE_OK(cloud::download(path, folder.path("tokenizer.json")));
  return text::Tokenizer::load(folder.path("tokenizer.json"));
}

models::LanguageModelPtr ready_model(const ModelFlags& flags) {
  if (flags.device == train::DeviceKind::kCpu && !flags.mesh.empty())
    throw_error(Code::kInvalidArgument, base::str("--mesh ", flags.mesh.str(),
                                                  " needs --device xla: cpu is LibTorch's own, one device"));
  if (flags.mesh.size("sequence") != 1)
    throw_error(
        Code::kInvalidArgument,
        base::str("--mesh ", flags.mesh.str(), ": sequence is for training, where all tokens of a row are ",
                  "known; give these devices to tensor or fsdp"));
  const torch::ScalarType type =
      flags.precision == train::Precision::kBf16 ? torch::kBFloat16 : torch::kFloat;
  DeviceOptions options;
  options.plugin = flags.plugin;
  models::LanguageModelPtr model;
  if (flags.mesh.empty()) {
    model = load_pretrained(flags.folder);
    model->to(type);
  } else {
    init(flags.mesh, options);
    model = load_pretrained_over_mesh(flags.folder, {}, type);
  }
  model->eval();
  if (flags.device == train::DeviceKind::kCpu || !flags.mesh.empty()) return model;
  options.devices = 1;
  init(options);
  model->to(torch::Device(torch::kXLA, 0));
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
