// sluice export
#include <cstdio>
#include <memory>

#include "sluice/cli/verbs.h"
#include "sluice/train/export.h"

namespace sluice::cli {

void add_export_verb(CLI::App& program, Action& action) {
  struct Paths {
    std::string from, to;
  };
  CLI::App* verb = program.add_subcommand("export", "Write a checkpoint's weights for Python");
  auto paths = std::make_shared<Paths>();
  verb->add_option("CHECKPOINT", paths->from,
                   "A checkpoint folder (LOGDIR/best) or a file of weights; also gs://… and https://…")
      ->required();
  verb->add_option("OUT", paths->to,
                   "OUT.pt: torch.load(weights_only=True) reads it as a state dict; OUT.safetensors: the "
                   "safetensors package; also gs://…")
      ->required();
  verb->callback([paths, &action] {
    action = [paths] {
      const auto report = train::export_weights(paths->from, paths->to);
      std::printf("%s: %lld tensors, %lld bytes\n", paths->to.c_str(), static_cast<long long>(report.tensors),
                  static_cast<long long>(report.bytes));
      return 0;
    };
  });
}

}  // namespace sluice::cli
