// sluice export
#include <cstdio>
#include <memory>
#include <optional>

#include "sluice/base/text/join.h"
#include "sluice/cli/flags/flag.h"
#include "sluice/cli/verbs.h"
#include "sluice/session/export/export_weights.h"

namespace sluice::cli {
namespace {

struct ExportFlags {
  std::string from, to;
  std::optional<int> part_size;  // MiB
};

// clang-format off
std::vector<Flag> export_rows(ExportFlags& f) {
  return {
      Flag{"", "CHECKPOINT", &f.from, "", "A checkpoint folder (LOGDIR/best) or a file of weights; also gs://…, s3://…, az://…, hf://… and https://…"}.required(),
      Flag{"", "OUT", &f.to, "", "OUT.pt: torch.load(weights_only=True) reads it as a state dict; OUT.safetensors: the safetensors package; another name: a folder for transformers; also gs://…, s3://… or az://…"}.required(),
      Flag{"", "--part-size", &f.part_size, "MiB", "Put at most this much of the weights into each file of a folder; the default is 5 GB", {1, 1'048'576}}
          .shown("4768"),
  };
}
// clang-format on

int export_to(const ExportFlags& flags) {
  sessions::ExportOptions options;
  if (flags.part_size && sessions::exports_one_file(flags.to))
    throw Usage(base::str("--part-size divides the weights of a folder, and ", flags.to,
                          " is one file: leave the flag out, or name a folder"));
  if (flags.part_size) options.part_bytes = static_cast<uint64_t>(*flags.part_size) << 20;
  const auto report = sessions::export_weights(flags.from, flags.to, options);
  std::printf("%s: %lld tensors, %lld bytes%s\n", flags.to.c_str(), static_cast<long long>(report.tensors),
              static_cast<long long>(report.bytes),
              report.files > 1 ? base::str(", ", report.files, " files").c_str() : "");
  return 0;
}

}  // namespace

Verb export_verb() {
  auto flags = std::make_shared<ExportFlags>();
  return {.name = "export",
          .help = "Write a checkpoint's weights for Python",
          .footer =
              "A folder gets model.safetensors, or several such files and their index, and the checkpoint's "
              "config.json and tokenizer. The host needs no room for the weights, except for OUT.pt.\n"
              "Examples: sluice export run/best weights.pt\n"
              "          sluice export run/best hf-model --part-size 2048",
          .add_flags = [flags](CLI::App& app) { add_flags(app, export_rows(*flags)); },
          .run = [flags] { return export_to(*flags); }};
}

}  // namespace sluice::cli
