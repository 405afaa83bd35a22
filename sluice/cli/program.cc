#include "sluice/cli/program.h"

#include "sluice/base/build_id.h"
#include "sluice/base/text/join.h"
#include "sluice/cli/verbs.h"

namespace sluice::cli {

int run_program(const std::vector<Verb>& verbs, int argc, char** argv) {
  CLI::App program("Trains LibTorch models on the xla device.", "sluice");
  program.set_version_flag("--version", base::str("sluice ", SLUICE_VERSION, " build ", base::build_id()));
  program.option_defaults()->always_capture_default();
  program.get_formatter()->column_width(36);
  return parse_and_run(program, verbs, argc, argv);
}

std::vector<Verb> plain_verbs() {
  return {run_verb(),   env_verb(),  tpu_verb(),  keep_verb(), task_verb(),    cost_verb(),
          sweep_verb(), data_verb(), text_verb(), top_verb(),  profile_verb(), doctor_verb()};
}

}  // namespace sluice::cli
