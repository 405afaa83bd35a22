#include "sluice/cli/verbs.h"

#include <cstdio>
#include <functional>
#include <memory>

#include "sluice/cli/flags/completion.h"
#include "sluice/cli/flags/flags_page.h"
#include "sluice/cli/program.h"

namespace sluice::cli {
namespace {

// Prints a text that is made from the whole program's command line.
int with_program(const std::function<std::string(const CLI::App&)>& text_of) {
  CLI::App program("", "sluice");
  program.option_defaults()->always_capture_default();
  program.set_version_flag("--version", "");
  Action none;
  add_verbs(program, all_verbs({}), none);
  std::fputs(text_of(program).c_str(), stdout);
  return 0;
}

}  // namespace

Verb completion_verb() {
  auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .help = "Print the completion of sluice's verbs and flags for a shell",
          .footer =
              "`make install` puts it where the shells look for it. Otherwise, for this user:\n"
              "  eval \"$(sluice completion bash)\"        in ~/.bashrc\n"
              "  eval \"$(sluice completion zsh)\"         in ~/.zshrc, after compinit\n"
              "  sluice completion fish | source         in ~/.config/fish/config.fish",
          .add_flags =
              [shell](CLI::App& app) {
                app.add_option("SHELL", *shell, "bash, zsh or fish")
                    ->required()
                    ->type_name("bash|zsh|fish")
                    ->check(one_of({"bash", "zsh", "fish"}));
              },
          .run =
              [shell] {
                return with_program([&](const CLI::App& program) {
                  return *shell == "bash"  ? bash_completion(program)
                         : *shell == "zsh" ? zsh_completion(program)
                                           : fish_completion(program);
                });
              }};
}

Verb flags_page_verb() {
  return {.name = "flags-page",
          .help = "Write docs/flags.md",
          .run = [] { return with_program(flags_page); },
          .hidden = true};
}

std::vector<Verb> all_verbs(std::vector<std::string> command) {
  std::vector<Verb> verbs = {train_verb(),
                             export_verb(),
                             bench_verb(),
                             compile_verb(command),
                             estimate_verb(std::move(command)),
                             compile_worker_verb(),
                             devices_verb(),
                             mlflow_verb()};
  for (Verb& verb : plain_verbs()) {
    if (verb.name == "text") {
      verb.verbs.push_back(text_sample_verb());
      verb.verbs.push_back(text_score_verb());
    }
    verbs.push_back(std::move(verb));
  }
  verbs.push_back(completion_verb());
  verbs.push_back(flags_page_verb());
  return verbs;
}

}  // namespace sluice::cli
