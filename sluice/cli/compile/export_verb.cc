// sluice export
#include <cstdio>
#include <memory>

#include "sluice/cli/verbs.h"
#include "sluice/session/files/export_weights.h"

namespace sluice::cli {

Verb export_verb() {
  struct Paths {
    std::string from, to;
  };
  auto paths = std::make_shared<Paths>();
  return {.name = "export",
          .help = "Write a checkpoint's weights for Python",
          .add_flags =
              [paths](CLI::App& app) {
                app.add_option("CHECKPOINT", paths->from,
                               "A checkpoint folder (LOGDIR/best) or a file of weights; also gs://…, s3://…, "
                               "az://…, hf://… and https://…")
                    ->required();
                app.add_option(
                       "OUT", paths->to,
                       "OUT.pt: torch.load(weights_only=True) reads it as a state dict; OUT.safetensors: the "
                       "safetensors package; also gs://…, s3://… or az://…")
                    ->required();
              },
          .run =
              [paths] {
                const auto report = sessions::export_weights(paths->from, paths->to);
                std::printf("%s: %lld tensors, %lld bytes\n", paths->to.c_str(),
                            static_cast<long long>(report.tensors), static_cast<long long>(report.bytes));
                return 0;
              }};
}

}  // namespace sluice::cli
